"""A managed pool as it is asked for: by a trait, or through the management API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..config import device_name
from ..errors import invalid_argument
from .devices import CPU

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FIELDS = ("name", "device", "memory_limit_mb", "kernel_name")


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """What a pool is called and may use.

    Attributes:
        name: What users call it.
        device: ``CPU`` or ``GPU:n``; its process sees no other. Empty is all.
        memory_limit_mb: Most of a GPU's memory that it may take, in MiB as TensorFlow counts;
            0 is no limit.
        kernel_name: The kernel that it runs in; empty is that of the settings.
    """

    name: str = "managed"
    device: str = ""
    memory_limit_mb: int = 0
    kernel_name: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PoolSpec:
        """Read one.

        Raises:
            ServingError: INVALID_ARGUMENT, naming the field.
        """
        if unknown := data.keys() - set(_FIELDS):
            names = ", ".join(sorted(map(str, unknown)))
            raise invalid_argument(f"Unknown field of a pool: {names}. It has {', '.join(_FIELDS)}")
        name = data.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise invalid_argument(
                "Expected 'name' of a pool to be up to 64 letters, digits, dots, dashes and "
                f"underscores; got {name!r}"
            )
        kernel_name = data.get("kernel_name") or ""
        if not isinstance(kernel_name, str):
            raise invalid_argument(f"Expected 'kernel_name' of pool {name} to be a string")
        device = device_name(data.get("device") or "", f"pool {name}")
        limit = data.get("memory_limit_mb") or 0
        if type(limit) is not int or limit < 0:
            raise invalid_argument(f"Expected 'memory_limit_mb' of pool {name} to be megabytes")
        if limit and device == CPU:
            raise invalid_argument(
                f"Pool {name} has a memory_limit_mb, and TensorFlow limits memory on GPUs only"
            )
        return cls(name, device, limit, kernel_name)


def read_specs(pools: Iterable[Mapping[str, Any]]) -> list[PoolSpec]:
    """The pools of a setting; without any it is one that sees all devices.

    Raises:
        ServingError: INVALID_ARGUMENT, also where two have one name.
    """
    specs = [PoolSpec.from_json(pool) for pool in pools] or [PoolSpec()]
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise invalid_argument(f"Two pools are called {name}")
    return specs
