"""The managed pools by name, and what each of them is to run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..errors import Code, ServingError
from .managed_pool import ManagedPool, Phase
from .pool_spec import PoolSpec

if TYPE_CHECKING:
    from .pool_client import PoolClient
    from .pool_mirror import PoolMirror


class Fleet:
    """All managed pools, in the order in which they were asked for; none is started by it.

    Args:
        specs: the pools that there are from the start; at least one.
        make: makes a pool.
        on_added: called with each pool that there is from now on.
        on_dropped: called with each that there is no longer.
    """

    def __init__(
        self,
        specs: list[PoolSpec],
        make: Callable[[PoolSpec], ManagedPool],
        on_added: Callable[[ManagedPool], None],
        on_dropped: Callable[[ManagedPool], None],
    ) -> None:
        self._make = make
        self._on_added = on_added
        self._on_dropped = on_dropped
        self._on_trial: set[str] = set()
        self._pools: dict[str, ManagedPool] = {}
        self._by_id: dict[str, ManagedPool] = {}
        for spec in specs:
            self.add(spec)

    def __iter__(self) -> Iterator[ManagedPool]:
        return iter(self._pools.values())

    def __len__(self) -> int:
        return len(self._pools)

    @property
    def first(self) -> ManagedPool:
        """The one that does what any could."""
        return next(iter(self._pools.values()))

    @property
    def running(self) -> ManagedPool | None:
        """One that runs, if any does."""
        return next((pool for pool in self if pool.phase is Phase.RUNNING), None)

    def of(self, mirror: PoolMirror) -> ManagedPool | None:
        """The managed pool behind a mirror; None for a notebook's."""
        return self._by_id.get(mirror.pool_id)

    def by_id(self, pool_id: str) -> ManagedPool:
        """The pool of that id.

        Raises:
            ServingError: NOT_FOUND.
        """
        pool = self._by_id.get(pool_id)
        if pool is None:
            raise ServingError(Code.NOT_FOUND, f"There is no managed pool {pool_id}")
        return pool

    def get(self, name: str) -> ManagedPool:
        """The pool of that name.

        Raises:
            ServingError: NOT_FOUND, with the names that there are.
        """
        pool = self._pools.get(name)
        if pool is None:
            names = ", ".join(self._pools)
            raise ServingError(
                Code.NOT_FOUND, f"There is no managed pool {name}. There are: {names}"
            )
        return pool

    def add(self, spec: PoolSpec, *, on_trial: bool = False) -> ManagedPool:
        """Have one more pool; it starts when it is needed.

        Args:
            spec: what it is.
            on_trial: whether it is dropped again if its first :meth:`start` fails.

        Raises:
            ServingError: ALREADY_EXISTS where its name is taken.
        """
        if spec.name in self._pools:
            raise ServingError(Code.ALREADY_EXISTS, f"There is a pool {spec.name} already")
        pool = self._make(spec)
        self._pools[spec.name] = self._by_id[pool.mirror.pool_id] = pool
        if on_trial:
            self._on_trial.add(spec.name)
        self._on_added(pool)
        return pool

    def make_for(self, device: str) -> ManagedPool:
        """Have one more pool, for a device that none is for yet; to be started at once."""
        plain = device.replace(":", "").lower()
        names = (plain, *(f"{plain}-{number}" for number in range(2, len(self._pools) + 3)))
        name = next(name for name in names if name not in self._pools)
        return self.add(PoolSpec(name, device), on_trial=True)

    async def start(self, pool: ManagedPool) -> PoolClient:
        """Start a pool, or wait for its start; one on trial is dropped if it fails.

        Raises:
            ServingError: see :meth:`.ManagedPool.ensure_running`.
        """
        name = pool.spec.name
        try:
            client = await pool.ensure_running()
        except ServingError:
            if name in self._on_trial and self._pools.get(name) is pool:
                self._on_trial.discard(name)
                del self._pools[name], self._by_id[pool.mirror.pool_id]
                self._on_dropped(pool)
            raise
        self._on_trial.discard(name)
        return client

    def for_device(self, device: str, default: str | None) -> list[ManagedPool]:
        """The pools whose models come to lie on a device.

        Args:
            device: ``CPU`` or ``GPU:n``.
            default: where models of a process come to lie that sees all devices; None where nobody
                knows.
        """
        pinned = [pool for pool in self if pool.spec.device == device]
        return pinned or [p for p in self if not p.spec.device and device == default]

    async def stop(self) -> None:
        """End them all at a time."""
        await asyncio.gather(*(pool.stop() for pool in self))
