"""Models and pools as the management API tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..config import options_to_dict, policy_to_dict
from .devices import DeviceNames

if TYPE_CHECKING:
    from ..config import ModelConfig
    from ..state import ServableState
    from .managed_pool import ManagedPool
    from .pool_mirror import PoolMirror


async def describe_all(pools: list[PoolMirror]) -> list[Mapping[str, Any]]:
    """What pools tell of themselves, in their order; empty for one that does not answer."""
    return await asyncio.gather(*(pool.ask("describe") for pool in pools))


def models_told(told: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The models that a pool tells of, by name; their devices have this server's names."""
    here, variable = DeviceNames(), (told.get("process") or {}).get("visible_devices")

    def named(version: Mapping[str, Any]) -> Mapping[str, Any]:
        if "device" not in version:
            return version
        return {**version, "device": here.of_process(variable, version["device"])}

    return {
        model["name"]: {**model, "versions": [named(version) for version in model["versions"]]}
        for model in told.get("models", ())
    }


def describe_model(
    name: str, pool: PoolMirror, told: Mapping[str, Any] | None, config: ModelConfig | None
) -> dict[str, Any]:
    """One model: what its pool tells of it, or what the mirror and the configuration know."""
    known = known_model(name, pool, config)
    return {**known, "problem": None} if told is None else {**told, "owner": known["owner"]}


def known_model(name: str, pool: PoolMirror, config: ModelConfig | None) -> dict[str, Any]:
    """What can be told of a model without asking its pool."""
    notebook = pool.name if pool.kind == "notebook" else None
    return {
        "name": name,
        "base_path": config.base_path if config else None,
        "policy": policy_to_dict(config.policy) if config else None,
        "labels": dict(config.labels if config else pool.labels.get(name, {})),
        "options": options_to_dict(config) if config else {},
        "versions": [_version(state) for state in pool.monitor.versions(name)],
        "owner": {
            "pool": pool.pool_id,
            "name": pool.name,
            "kind": pool.kind,
            "notebook": notebook,
        },
    }


def _version(state: ServableState) -> dict[str, Any]:
    return {
        "version": state.id.version,
        "state": state.state.name,
        "error": state.message or None,
        "since": state.since,
    }


def describe_pool(
    pool: PoolMirror, told: Mapping[str, Any], managed: ManagedPool | None
) -> dict[str, Any]:
    """One pool; ``managed`` where it is the server's own."""
    return {
        **known_pool(pool, managed),
        "in_flight": pool.client.admission.in_flight if pool.client else 0,
        "process": told.get("process"),
    }


def known_pool(pool: PoolMirror, managed: ManagedPool | None) -> dict[str, Any]:
    """What can be told of a pool without asking it."""
    described: dict[str, Any] = {
        "id": pool.pool_id,
        "kind": pool.kind,
        "name": pool.name,
        "phase": str(managed.phase) if managed else "ended" if pool.ended else "running",
        "reason": None if managed is None else managed.reason or None,
    }
    if managed is not None:
        described["restarts"] = managed.restarts
        described["device"] = managed.spec.device or None
        described["memory_limit_mb"] = managed.spec.memory_limit_mb or None
    return described
