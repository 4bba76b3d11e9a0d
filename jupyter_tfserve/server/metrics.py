"""What the server and all of its pools have to tell in numbers."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING

from ..metrics import Family, Kind, merge

if TYPE_CHECKING:
    from .pool_manager import PoolManager


async def families(manager: PoolManager) -> list[Family]:
    """The numbers of every pool, added up where they count the same; starts nothing.

    A pool that does not answer in time is left out.
    """
    pools = manager.registry.pools
    answers = await asyncio.gather(*(pool.ask("metrics") for pool in pools))
    told = (Family.from_dict(family) for answer in answers for family in answer.get("families", ()))
    return merge(chain(manager.requests.families(), _pools(manager), told))


def _pools(manager: PoolManager) -> list[Family]:
    up = Family(
        "jupyter_tfserve_pool_up",
        Kind.GAUGE,
        ("pool", "kind", "name"),
        "Whether the pool can be asked",
    )
    waiting = Family(
        "jupyter_tfserve_door_in_flight",
        Kind.GAUGE,
        ("pool",),
        "Requests that the server has passed to the pool and not yet answered",
    )
    restarts = Family(
        "jupyter_tfserve_pool_restarts",
        Kind.COUNTER,
        ("pool",),
        "How often the pool's process has died and been replaced",
    )
    for pool in manager.registry.pools:
        client = pool.client
        up.cells[pool.pool_id, pool.kind, pool.name] = int(client is not None)
        waiting.cells[(pool.pool_id,)] = client.admission.in_flight if client else 0
    for managed in manager.fleet:
        restarts.cells[(managed.mirror.pool_id,)] = managed.restarts_ever
    return [up, waiting, restarts]
