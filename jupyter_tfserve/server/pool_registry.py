"""Which pools there are, and which of them a name belongs to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from jupyter_core.paths import jupyter_runtime_dir
from traitlets.log import get_logger

from ..announcement import PoolInfo, find_pools
from ..errors import Code, ServingError
from .pool_mirror import PoolMirror

if TYPE_CHECKING:
    from .admission import Limits

_RESCAN_S = 1.0
"""Announcements are looked through no more often than this, whatever is asked for, in seconds."""
_MAX_ENDED = 8
"""Notebook pools that have ended and are still shown."""


class PoolRegistry:
    """The pools of this server, managed and notebook ones, by the names that they serve.

    A name belongs to one pool. A configured name is that of the managed pool that it is placed on,
    but for as long as that is loading it and a notebook's answers; else the pool that has a live
    version of it keeps it from one that came later. A notebook pool that has ended keeps its names
    until others take them, so that callers are told what became of their model.

    ``is_placed`` tells whether a name stands in the server's configuration and belongs on a pool.

    Attributes:
        on_model: Called with the name of a model whose versions or owner may have changed.
        on_pools: Called when a pool has come or gone.
    """

    def __init__(
        self, is_placed: Callable[[str, PoolMirror], bool], limits: Limits | None = None
    ) -> None:
        self.on_model: Callable[[str], None] = lambda _name: None
        self.on_pools: Callable[[], None] = lambda: None
        self._is_placed = is_placed
        self._limits = limits
        self._pools: dict[str, PoolMirror] = {}
        self._owners: dict[str, PoolMirror] = {}
        self._unsubscribe: dict[str, Callable[[], None]] = {}
        self._scan: asyncio.Task[None] | None = None
        self._next_scan = 0.0
        find_pools()  # what servers and pools that crashed together left lying is removed by it

    @property
    def pools(self) -> list[PoolMirror]:
        """All pools, in the order in which they came."""
        return list(self._pools.values())

    def add(self, pool: PoolMirror) -> None:
        """Take a pool in."""
        self._pools[pool.pool_id] = pool
        self._unsubscribe[pool.pool_id] = pool.bus.subscribe(lambda s: self.elect(s.id.name))
        pool.on_labels = self.elect
        self.on_pools()
        for name in pool.monitor.names():
            self.elect(name)

    def remove(self, pool: PoolMirror) -> None:
        """The pool is gone for good; its names are free."""
        if self._pools.pop(pool.pool_id, None) is not None:
            self._unsubscribe.pop(pool.pool_id)()
            names = pool.monitor.names()
            pool.forget()
            for name in names:
                self.elect(name)
            self.on_pools()

    def names(self) -> list[str]:
        """The names of all models, sorted."""
        return sorted(self._owners)

    def pool_for(self, name: str) -> PoolMirror | None:
        """The pool that a name belongs to, as far as is known; the hot path."""
        return self._owners.get(name)

    def knows(self, name: str) -> bool:
        """Whether a name belongs to a pool that has not ended: there is nothing to look for."""
        owner = self._owners.get(name)
        return owner is not None and not owner.ended

    async def find(self, name: str) -> PoolMirror | None:
        """The same as :meth:`pool_for`, after a look for new announcements of an unknown name."""
        if not self.knows(name):
            await self.rescan()
        return self._owners.get(name)

    async def rescan(self) -> None:
        """Adopt the notebook pools of this server that have been announced since the last look."""
        loop = asyncio.get_running_loop()
        if self._scan is None and loop.time() >= self._next_scan:
            self._next_scan = loop.time() + _RESCAN_S
            self._scan = loop.create_task(self._adopt_announced())
            self._scan.add_done_callback(self._scanned)
        if self._scan is not None:
            await asyncio.shield(self._scan)

    async def adopt(self, pool_id: str) -> PoolMirror:
        """Take in a notebook pool that says it has just been announced.

        Raises:
            ServingError: NOT_FOUND where this server sees no such announcement, or cannot connect.
        """
        if pool_id not in self._pools:
            if self._scan is not None:
                await asyncio.shield(self._scan)  # it may have begun before the announcement
            self._next_scan = 0.0
            await self.rescan()
        pool = self._pools.get(pool_id)
        if pool is None or pool.ended:
            text = (
                f"This server finds no pool {pool_id} of its notebooks in {jupyter_runtime_dir()}"
            )
            raise ServingError(Code.NOT_FOUND, text)
        return pool

    async def close(self) -> None:
        """Let go of every pool."""
        if self._scan is not None:
            self._scan.cancel()
        for pool in self.pools:
            self.remove(pool)
            pool.detach()

    def _scanned(self, _task: asyncio.Task[None]) -> None:
        self._scan = None

    async def _adopt_announced(self) -> None:
        found = await asyncio.to_thread(find_pools, os.getpid())
        self._drop_ended()
        for info in found:
            if info.kind == "notebook" and info.pool_id not in self._pools:
                await self._adopt(info)

    async def _adopt(self, info: PoolInfo) -> None:
        pool = PoolMirror(info.pool_id, info.kind, self._limits)
        try:
            client = await pool.attach(info)
        except ServingError as error:
            get_logger().warning("An announced pool is left aside: %s", error.message)
            return
        self.add(pool)
        client.closed.add_done_callback(lambda _: self._ended())

    def _ended(self) -> None:
        self.on_pools()
        self._drop_ended()

    def _drop_ended(self) -> None:
        """Forget the ended pools whose names are others' by now, and the oldest of the rest."""
        owners = set(self._owners.values())
        ended = [pool for pool in self._pools.values() if pool.ended]
        for pool in ended:
            if pool not in owners:
                self.remove(pool)
        for pool in [pool for pool in ended if pool in owners][:-_MAX_ENDED]:
            self.remove(pool)

    def elect(self, name: str) -> None:
        """See whom a name belongs to now: its pools have changed, or where it is placed."""
        candidates = [pool for pool in self._pools.values() if pool.monitor.versions(name)]
        if not candidates:
            self._owners.pop(name, None)
            self.on_model(name)
            return
        owner = self._owners.get(name)

        is_answered = any(pool.is_available(name) for pool in candidates)
        configured = any(self._is_placed(name, pool) for pool in candidates)

        def rank(pool: PoolMirror) -> tuple[bool, bool, bool, bool]:
            is_available = pool.is_available(name)
            is_loading = pool.is_coming(name) and not is_available
            return (
                self._is_placed(name, pool) and not (is_loading and is_answered),
                configured and is_available,
                pool.is_live(name),
                pool is owner,
            )

        self._owners[name] = max(candidates, key=rank)
        self.on_model(name)
