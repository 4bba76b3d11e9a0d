"""How busy each version is, asked of the pools for as long as somebody wants to know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from traitlets.log import get_logger

if TYPE_CHECKING:
    from .pool_registry import PoolRegistry

Rates = Mapping[tuple[str, int], Mapping[str, Any]]

_PERIOD_S = 1.0


class RateWatch:
    """Asks every pool once in a while, while it is watched.

    Args:
        registry: the pools.
        publish: told the traffic of each version that was ever called, by name and number.
        period_s: time between two looks, in seconds.
    """

    def __init__(
        self,
        registry: PoolRegistry,
        publish: Callable[[Rates], None],
        period_s: float = _PERIOD_S,
    ) -> None:
        self._registry = registry
        self._publish = publish
        self._period_s = period_s
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._before: dict[tuple[str, int], tuple[int, int]] = {}
        self._looked_at: float | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Somebody wants to know, for as long as the context lasts."""
        self._watchers += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _watch(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - whatever one look met, the next may not
                get_logger().exception("The rates of calls could not be told")
            await asyncio.sleep(self._period_s)

    async def _look(self) -> None:
        pools = self._registry.pools
        told = await asyncio.gather(*(pool.ask("counts") for pool in pools))
        now = asyncio.get_running_loop().time()
        elapsed = None if self._looked_at is None else now - self._looked_at
        rates: dict[tuple[str, int], Mapping[str, Any]] = {}
        before, self._before, self._looked_at = self._before, {}, now
        for pool, answer in zip(pools, told, strict=True):
            for version in answer.get("versions", ()):
                key = version["name"], version["version"]
                if self._registry.pool_for(version["name"]) is pool:
                    counts = self._before[key] = version["requests"], version["errors"]
                    rates[key] = {**version, **_per_second(before.get(key), counts, elapsed)}
        self._publish(rates)


def _per_second(
    before: tuple[int, int] | None, now: tuple[int, int], elapsed: float | None
) -> dict[str, float]:
    if before is None or now < before:  # a version that was loaded since begins at zero
        before = (0, 0)
    if not elapsed:
        elapsed, before = 1.0, now
    requests, errors = (round((n - b) / elapsed, 1) for n, b in zip(now, before, strict=True))
    return {"requests_per_s": requests, "errors_per_s": errors}
