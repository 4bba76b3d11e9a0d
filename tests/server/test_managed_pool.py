"""The managed pool's life, over fake processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from fake_pool import Pools, until

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server.managed_pool import MAX_RESTARTS, ManagedPool, Phase

if TYPE_CHECKING:
    from jupyter_tfserve.server.pool_client import PoolClient

BROKEN = ServingError(Code.FAILED_PRECONDITION, "no TensorFlow there")


class Watched:
    """A managed pool and what it did."""

    def __init__(self, pools: Pools) -> None:
        self.phases: list[Phase] = []
        self.replayed: list[PoolClient] = []
        self.managed = ManagedPool(
            pools.new_host, self._replay, on_phase=self.phases.append, delay_s=lambda _n: 0
        )

    async def _replay(self, client: PoolClient) -> None:
        self.replayed.append(client)

    async def reach(self, phase: Phase, after: int = 0) -> None:
        await until(lambda: phase in self.phases[after:])


@pytest.fixture
async def watched(pools: Pools) -> AsyncIterator[Watched]:
    watched = Watched(pools)
    yield watched
    await watched.managed.stop()


async def test_it_starts_once_for_all_who_need_it(watched: Watched, pools: Pools) -> None:
    clients = await asyncio.gather(*[watched.managed.ensure_running() for _ in range(3)])
    assert clients == [clients[0]] * 3
    assert len(pools.hosts) == 1
    assert watched.phases == [Phase.STARTING, Phase.RUNNING]
    assert watched.replayed == clients[:1]


async def test_it_is_restarted_and_told_its_configuration_when_it_dies(
    watched: Watched, pools: Pools
) -> None:
    await watched.managed.ensure_running()
    await pools.hosts[0].die()
    await watched.reach(Phase.RUNNING, after=2)
    assert watched.phases[2:] == [Phase.RESTARTING, Phase.RUNNING]
    assert len(watched.replayed) == 2
    assert pools.hosts[0].ended
    assert watched.managed.mirror.client is watched.replayed[1]


async def test_a_lost_connection_alone_ends_the_process_too(watched: Watched, pools: Pools) -> None:
    await watched.managed.ensure_running()
    await pools.pool.stop()
    await watched.reach(Phase.RUNNING, after=2)
    assert pools.hosts[0].ended


async def test_a_pool_that_never_ran_is_not_tried_again_by_itself(
    watched: Watched, pools: Pools
) -> None:
    pools.errors = [BROKEN]
    with pytest.raises(ServingError, match="no TensorFlow there"):
        await watched.managed.ensure_running()
    assert watched.managed.phase is Phase.FAILED
    assert watched.managed.explanation == "The model pool cannot start: no TensorFlow there"
    assert len(pools.hosts) == 1
    await watched.managed.ensure_running()  # but whoever needs it tries anew
    assert watched.managed.phase is Phase.RUNNING


async def test_a_pool_that_keeps_failing_is_given_up(watched: Watched, pools: Pools) -> None:
    await watched.managed.ensure_running()
    pools.errors = [ServingError(Code.UNAVAILABLE, "out of memory")] * MAX_RESTARTS
    await pools.hosts[0].die()
    await watched.reach(Phase.FAILED)
    assert "6 times in a row, at last: out of memory" in watched.managed.explanation
    assert len(pools.hosts) == 1 + MAX_RESTARTS


async def test_stopping_says_so_to_the_pool_and_leaves_nothing(
    watched: Watched, pools: Pools
) -> None:
    await watched.managed.ensure_running()
    await watched.managed.stop()
    assert ("shutdown", {}) in pools.pool.calls
    assert pools.hosts[0].ended
    assert watched.managed.phase is Phase.STOPPED
    assert watched.managed.mirror.client is None


async def test_stopping_in_the_middle_of_a_start_ends_it(watched: Watched, pools: Pools) -> None:
    pools.gate = asyncio.Event()
    waiting = asyncio.ensure_future(watched.managed.ensure_running())
    await until(lambda: pools.hosts)
    await watched.managed.stop()
    with pytest.raises(ServingError, match="stopped") as raised:
        await waiting
    assert raised.value.code is Code.UNAVAILABLE
    assert pools.hosts[0].ended


async def test_a_restart_that_is_asked_for_gives_a_new_process(
    watched: Watched, pools: Pools
) -> None:
    await watched.managed.ensure_running()
    await watched.managed.restart()
    assert len(pools.hosts) == 2
    assert watched.managed.phase is Phase.RUNNING
