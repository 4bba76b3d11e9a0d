"""Who holds what: every device with its memory, the pools on it, their models, and strangers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import Code
from .devices import CPU

if TYPE_CHECKING:
    from ..errors import ServingError
    from .devices import DeviceNames
    from .host_memory import HostMemory
    from .managed_pool import ManagedPool
    from .nvml import Gpu, Reading
    from .pool_mirror import PoolMirror

_MAX_NAMED = 5
"""Holders of memory that a hint names."""


# TensorFlow tells some of them as internal errors.
_SHORTAGE = re.compile(r"out of memory|OUT_OF_MEMORY|\bOOM\b|failed to allocate", re.IGNORECASE)


def is_shortage(error: ServingError) -> bool:
    """Whether a model could not be loaded because memory was short."""
    return error.code is Code.RESOURCE_EXHAUSTED or bool(_SHORTAGE.search(error.message))


@dataclass(frozen=True, slots=True)
class Account:
    """One pool: its mirror, what it tells of itself, and what manages it if it is the server's."""

    pool: PoolMirror
    told: Mapping[str, Any]
    managed: ManagedPool | None

    @property
    def process(self) -> Mapping[str, Any]:
        """What it tells of its process; empty where it does not run, or does not answer."""
        return self.told.get("process") or {}

    @property
    def pid(self) -> int | None:
        """Its process, where it has one."""
        return self.pool.info.pid if self.pool.info is not None and self.pool.client else None

    def devices(self, names: DeviceNames) -> list[str]:
        """The devices that it is on: as it tells, or as it was asked for."""
        if seen := self.process.get("devices"):
            variable = self.process.get("visible_devices")
            return list(dict.fromkeys(names.of_process(variable, device) for device in seen))
        return [self.managed.spec.device] if self.managed and self.managed.spec.device else [CPU]

    def default_device(self, names: DeviceNames) -> str | None:
        """Where its models come to lie; None where it does not tell."""
        on = self.devices(names) if self.process.get("devices") else []
        return next((device for device in on if device != CPU), CPU) if on else None

    def models(self, names: DeviceNames) -> list[dict[str, Any]]:
        """Its loaded versions with the devices that they lie on."""
        return [
            {
                "name": model["name"],
                "version": version["version"],
                "device": names.of_process(
                    self.process.get("visible_devices"), version.get("device") or CPU
                ),
                "memory": version["memory"],
            }
            for model in self.told.get("models", ())
            for version in model["versions"]
            if version.get("memory")
        ]

    def held(self) -> int:
        """Bytes that its models hold, wherever."""
        return sum(
            version["memory"]["host"] + version["memory"]["device"]
            for model in self.told.get("models", ())
            for version in model["versions"]
            if version.get("memory")
        )


class Ledger:
    """What is known at one moment."""

    def __init__(
        self, accounts: Iterable[Account], reading: Reading, host: HostMemory, names: DeviceNames
    ) -> None:
        self._accounts = list(accounts)
        self._reading = reading
        self._host = host
        self._names = names

    def describe(self) -> dict[str, Any]:
        """Everything, as the management API tells it."""
        return {
            "devices": [self._cpu(), *(self._gpu(*item) for item in self._gpus().items())],
            "nvml": {
                "available": self._reading.gpus is not None,
                "problem": self._reading.problem or None,
            },
        }

    def _gpus(self) -> dict[str, Gpu | None]:
        """Those that NVML lists, or else those that pools tell of."""
        known = self._names.gpus
        if known is not None:
            return known
        told = {d for account in self._accounts for d in account.devices(self._names) if d != CPU}
        return dict.fromkeys(sorted(told))

    def _cpu(self) -> dict[str, Any]:
        host = self._host
        return {
            "name": CPU,
            "kind": "CPU",
            "product": None,
            "uuid": None,
            "total_bytes": host.total_bytes,
            "used_bytes": host.used_bytes,
            "free_bytes": host.free_bytes,
            "pools": [
                self._pool(account, CPU, account.process.get("rss_bytes"))
                for account in self._accounts
                if account.process or CPU in account.devices(self._names)
            ],
            "processes": [],
        }

    def _gpu(self, name: str, gpu: Gpu | None) -> dict[str, Any]:
        used = {p.pid: p.used_bytes for p in gpu.processes} if gpu else {}
        accounts = [a for a in self._accounts if name in a.devices(self._names)]
        ours = {account.pid for account in accounts}
        return {
            "name": name,
            "kind": "GPU",
            "product": gpu.product if gpu else None,
            "uuid": gpu.uuid if gpu else None,
            "total_bytes": gpu.total_bytes if gpu else None,
            "used_bytes": gpu.used_bytes if gpu else None,
            "free_bytes": gpu.free_bytes if gpu else None,
            "pools": [
                self._pool(account, name, used.get(account.pid) if account.pid else None)
                for account in accounts
            ],
            "processes": [
                {"pid": p.pid, "name": p.name, "used_bytes": p.used_bytes}
                for p in (gpu.processes if gpu else ())
                if p.pid not in ours
            ],
        }

    def _pool(self, account: Account, device: str, used: int | None) -> dict[str, Any]:
        managed = account.managed
        return {
            "id": account.pool.pool_id,
            "name": account.pool.name,
            "kind": account.pool.kind,
            "notebook": account.pool.name if account.pool.kind == "notebook" else None,
            "pid": account.pid,
            "memory_limit_mb": (managed.spec.memory_limit_mb or None) if managed else None,
            "used_bytes": used,
            "models": [
                {key: model[key] for key in ("name", "version", "memory")}
                for model in account.models(self._names)
                if model["device"] == device
            ],
        }

    def shortage(self, pool: ManagedPool) -> str:
        """Who holds the memory of a pool's device, for whoever found too little of it there."""
        told = (a.default_device(self._names) for a in self._accounts if a.managed is pool)
        device = pool.spec.device or next(told, None) or CPU
        return next((_words(d) for d in self.describe()["devices"] if d["name"] == device), "")


def _words(device: Mapping[str, Any]) -> str:
    holders = [(p["used_bytes"], _pool_words(p)) for p in device["pools"] if p["pid"] is not None]
    holders += [
        (p["used_bytes"], f"{p['name'] or 'a process'} (pid {p['pid']})")
        for p in device["processes"]
    ]
    holders.sort(key=lambda holder: -(holder[0] or 0))
    named = [f"{who}{'' if used is None else ' ' + _gib(used)}" for used, who in holders]
    if len(named) > _MAX_NAMED:
        named[_MAX_NAMED:] = [f"{len(named) - _MAX_NAMED} more"]
    free = ""
    if device["free_bytes"] is not None and device["total_bytes"] is not None:
        free = f" has {_gib(device['free_bytes'])} of {_gib(device['total_bytes'])} free and"
    return f"{device['name']}{free} is used by: {'; '.join(named) or 'nobody known'}."


def _pool_words(pool: Mapping[str, Any]) -> str:
    names = sorted({model["name"] for model in pool["models"]})
    what = f", {', '.join(names)}" if names else ""
    return f"pool {pool['name']} (pid {pool['pid']}{what})"


def _gib(number: int) -> str:
    return f"{number / (1 << 30):.2f} GiB"
