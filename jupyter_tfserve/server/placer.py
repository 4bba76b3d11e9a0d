"""Looks at the machine's devices, keeps the ledger of them, and places models by it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import host_memory
from .description import describe_all
from .devices import CPU, DeviceNames
from .ledger import Account, Ledger
from .nvml import GpuReader
from .placement import Room, asked_for, expected_bytes, is_gpu, no_device, roomiest

if TYPE_CHECKING:
    from ..config import ModelConfig
    from .aspired import Aspired
    from .fleet import Fleet
    from .host_memory import HostMemory
    from .managed_pool import ManagedPool
    from .nvml import Reading
    from .pool_registry import PoolRegistry

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class View:
    """The machine at one moment; ``pending`` are models on their way, as pool and bytes."""

    accounts: Sequence[Account]
    reading: Reading
    host: HostMemory
    names: DeviceNames
    pending: list[tuple[ManagedPool, int]]

    @property
    def devices(self) -> list[str] | None:
        """The names of all devices; None where nobody knows."""
        gpus = self.names.gpus
        return None if gpus is None else [CPU, *gpus]

    @property
    def default(self) -> str | None:
        """Where models of a process come to lie that sees all devices; None where nobody knows."""
        if (devices := self.devices) is not None:
            return devices[1] if len(devices) > 1 else CPU
        told = (
            account.default_device(self.names)
            for account in self.accounts
            if account.managed is not None and not account.managed.spec.device
        )
        return next((device for device in told if device is not None), None)

    def room(self, pool: ManagedPool) -> Room:
        """What a pool has left."""
        device = pool.spec.device or self.default
        coming = sum(size for other, size in self.pending if other is pool)
        held = coming + next((a.held() for a in self.accounts if a.managed is pool), 0)
        if is_gpu(device):
            gpu = (self.names.gpus or {}).get(device or "")
            free = gpu.free_bytes if gpu else None
            if free is not None and pool.spec.memory_limit_mb:
                free = min(free, pool.spec.memory_limit_mb * _MIB - held + coming)
        else:
            free = self.host.free_bytes if device == CPU else None
        return Room(pool, is_gpu(device), None if free is None else free - coming, held)


class Placer:
    """Asks NVML only where it has something to tell: one pool needs no placement.

    Args:
        fleet: the managed pools.
        registry: all pools.
    """

    def __init__(self, fleet: Fleet, registry: PoolRegistry) -> None:
        self._fleet = fleet
        self._registry = registry
        self._gpus = GpuReader()

    async def place(self, models: Sequence[ModelConfig], aspired: Aspired) -> list[ManagedPool]:
        """A pool for each model; one that is served stays where it is, where its words allow it.

        Raises:
            ServingError: see :func:`.placement.asked_for`.
        """
        view: View | None = None
        homes = []
        for model in models:
            home = self._at_once(model, aspired)
            if home is None:
                view = view or await self._look(aspired)
                home = self._choose(model, aspired, view)
                if aspired.homes.get(model.name) is not home:
                    size = await asyncio.to_thread(expected_bytes, model.base_path)
                    view.pending.append((home, size))
            homes.append(home)
        return homes

    async def require(self, device: str) -> None:
        """Nothing where a device is there, or nobody knows.

        Raises:
            ServingError: FAILED_PRECONDITION, with the names of those that there are.
        """
        gpus = DeviceNames((await self._gpus.read()).gpus).gpus if is_gpu(device) else None
        if gpus is not None and device not in gpus:
            raise no_device(device, [CPU, *gpus])

    async def ledger(self) -> Ledger:
        """Who holds what now; starts nothing."""
        await self._registry.rescan()
        pools = self._registry.pools
        told, reading = await asyncio.gather(describe_all(pools), self._gpus.read())
        accounts = [
            Account(pool, answer, self._fleet.of(pool))
            for pool, answer in zip(pools, told, strict=True)
            if not pool.ended
        ]
        return Ledger(accounts, reading, host_memory.read(), DeviceNames(reading.gpus))

    def _at_once(self, model: ModelConfig, aspired: Aspired) -> ManagedPool | None:
        if model.device:
            return None
        if model.pool:
            return self._fleet.get(model.pool)
        home = aspired.homes.get(model.name)
        return self._fleet.first if home is None and len(self._fleet) == 1 else home

    def _choose(self, model: ModelConfig, aspired: Aspired, view: View) -> ManagedPool:
        pools = asked_for(model, self._fleet, view.devices, view.default)
        if not pools:
            return self._fleet.make_for(model.device)
        home = aspired.homes.get(model.name)
        return home if home in pools else roomiest([view.room(pool) for pool in pools])

    async def _look(self, aspired: Aspired) -> View:
        pools = [pool.mirror for pool in self._fleet]
        told, reading = await asyncio.gather(describe_all(pools), self._gpus.read())
        accounts = [
            Account(pool, answer, self._fleet.of(pool))
            for pool, answer in zip(pools, told, strict=True)
        ]
        coming = [m for m in aspired.config.models if aspired.homes[m.name].mirror.awaits(m.name)]
        sizes = await asyncio.to_thread(lambda: [expected_bytes(m.base_path) for m in coming])
        pending = [(aspired.homes[m.name], size) for m, size in zip(coming, sizes, strict=True)]
        names = DeviceNames(reading.gpus)
        return View(accounts, reading, host_memory.read(), names, pending)
