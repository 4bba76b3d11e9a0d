"""Which pool a name belongs to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from fake_pool import FakePool, until

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import ModelSpec
from jupyter_tfserve.server.pool_mirror import PoolMirror
from jupyter_tfserve.server.pool_registry import PoolRegistry
from jupyter_tfserve.state import ManagerState

CONFIGURED = {"configured"}


@pytest.fixture
async def registry() -> AsyncIterator[PoolRegistry]:
    registry = PoolRegistry(lambda name, pool: name in CONFIGURED and pool.kind == "managed")
    yield registry
    await registry.close()


async def notebook_pool(*names: str, owner_pid: int = 0) -> FakePool:
    pool = FakePool(kind="notebook", owner_pid=owner_pid)
    for name in names:
        pool.set_state(name, 1, ManagerState.AVAILABLE)
    await pool.start()
    return pool


async def until_known(mirror: PoolMirror) -> None:
    """All that the pool has told so far has arrived."""
    assert mirror.client is not None
    await mirror.client.call("poll")


async def test_an_unknown_name_makes_it_look_for_announcements_once(
    registry: PoolRegistry,
) -> None:
    assert await registry.find("published") is None
    pool = await notebook_pool("published")
    assert await registry.find("published") is None  # looked a moment ago
    registry._next_scan = 0.0
    found = await registry.find("published")
    assert found is not None
    assert found.pool_id == pool.pool_id
    assert found.monitor.status(ModelSpec("published"))[0].state is ManagerState.AVAILABLE
    await pool.stop()


async def test_pools_of_other_servers_are_left_alone(registry: PoolRegistry) -> None:
    pool = await notebook_pool("published", owner_pid=1)
    assert await registry.find("published") is None
    await pool.stop()


async def test_a_pool_that_cannot_be_reached_does_not_hide_another(
    registry: PoolRegistry,
) -> None:
    bad, good = await notebook_pool("a"), await notebook_pool("b")
    assert bad._server is not None
    bad._server.close()
    assert await registry.find("b") is not None
    assert await registry.find("a") is None
    await bad.stop()
    await good.stop()


async def test_the_first_publisher_keeps_a_name_until_its_version_ends(
    registry: PoolRegistry,
) -> None:
    first, second = await notebook_pool("m"), await notebook_pool("other")
    mirror = await registry.find("m")
    await registry.find("other")
    second.set_state("m", 1, ManagerState.AVAILABLE)
    assert mirror is not None
    later = registry.pool_for("other")
    assert later is not None
    await until_known(later)
    assert registry.pool_for("m") is mirror
    first.set_state("m", 1, ManagerState.END)
    await until_known(mirror)
    assert registry.pool_for("m") is later
    await first.stop()
    await second.stop()


async def test_a_configured_name_is_the_managed_pools_even_while_it_fails(
    registry: PoolRegistry, fake_pool: FakePool
) -> None:
    notebook = await notebook_pool("configured")
    assert await registry.find("configured") is not None
    assert fake_pool.info is not None
    managed = PoolMirror(fake_pool.pool_id, "managed")
    await managed.attach(fake_pool.info)
    registry.add(managed)
    failed = ServingError(Code.NOT_FOUND, "no such file")
    fake_pool.set_state("configured", 1, ManagerState.END, failed)
    await until_known(managed)
    assert registry.pool_for("configured") is managed
    managed.detach()
    await notebook.stop()


async def test_a_notebook_pool_that_ends_says_so_until_another_takes_its_names(
    registry: PoolRegistry,
) -> None:
    pool = await notebook_pool("m")
    pool.set_state("m", 2, ManagerState.END, ServingError(Code.UNKNOWN, "failed"))
    mirror = await registry.find("m")
    assert mirror is not None
    await pool.stop()
    await until(lambda: mirror.ended)
    assert registry.pool_for("m") is mirror
    states = {s.id.version: (s.state, s.message) for s in mirror.monitor.versions("m")}
    assert states == {
        1: (ManagerState.END, "The kernel that published it (notebook) has ended"),
        2: (ManagerState.END, "failed"),
    }
    with pytest.raises(ServingError, match=r"\(notebook\) has ended") as raised:
        mirror.client_for(ModelSpec("m"))
    assert raised.value.code is Code.NOT_FOUND
    again = await notebook_pool("m")
    found = await registry.adopt(again.pool_id)
    assert registry.pool_for("m") is found
    await again.stop()
    await until(lambda: found.ended)
    assert registry.pools == [found]  # the first has nothing to say any more


async def test_ended_notebook_pools_are_remembered_but_not_for_ever(
    registry: PoolRegistry,
) -> None:
    for number in range(10):
        pool = await notebook_pool(f"m{number}")
        mirror = await registry.adopt(pool.pool_id)
        await pool.stop()
        await until(lambda mirror=mirror: mirror.ended)
    await until(lambda: len(registry.pools) == 8)
    assert registry.names() == [f"m{number}" for number in range(2, 10)]


async def test_a_pool_that_makes_itself_known_is_adopted_at_once(registry: PoolRegistry) -> None:
    await registry.rescan()  # and the next look would not be due yet
    pool = await notebook_pool("m")
    mirror = await registry.adopt(pool.pool_id)
    assert registry.pool_for("m") is mirror
    assert await registry.adopt(pool.pool_id) is mirror
    await pool.stop()


@pytest.mark.parametrize("pool_id", ["nobody", "../../etc/passwd", ""])
async def test_a_pool_that_is_not_announced_to_this_server_is_not_adopted(
    registry: PoolRegistry, pool_id: str
) -> None:
    with pytest.raises(ServingError, match="finds no pool") as raised:
        await registry.adopt(pool_id)
    assert raised.value.code is Code.NOT_FOUND
    theirs = await notebook_pool("m", owner_pid=1)
    with pytest.raises(ServingError, match="finds no pool"):
        await registry.adopt(theirs.pool_id)
    await theirs.stop()


async def test_a_lost_managed_pool_shows_its_models_in_start(fake_pool: FakePool) -> None:
    assert fake_pool.info is not None
    fake_pool.set_state("m", 1, ManagerState.AVAILABLE)
    fake_pool.set_state("m", 2, ManagerState.END, ServingError(Code.UNKNOWN, "failed"))
    mirror = PoolMirror(fake_pool.pool_id, "managed")
    await mirror.attach(fake_pool.info)
    await fake_pool.stop()
    await until(lambda: mirror.client is None)
    states = {s.id.version: s.state for s in mirror.monitor.status(ModelSpec("m"))}
    assert states == {1: ManagerState.START, 2: ManagerState.END}
    with pytest.raises(ServingError, match="gone") as raised:
        mirror.client_for(ModelSpec("m"))
    assert raised.value.code is Code.UNAVAILABLE


async def test_a_model_that_was_served_is_unavailable_until_it_is_loaded_again(
    fake_pool: FakePool,
) -> None:
    assert fake_pool.info is not None
    fake_pool.set_state("m", 1, ManagerState.AVAILABLE)
    mirror = PoolMirror(fake_pool.pool_id, "managed")
    await mirror.attach(fake_pool.info)
    await fake_pool.stop()
    await until(lambda: mirror.client is None)
    again = FakePool(fake_pool.pool_id)
    await mirror.attach(await again.start())
    with pytest.raises(ServingError, match="loading model m again"):
        mirror.client_for(ModelSpec("m"))
    again.set_state("m", 3, ManagerState.LOADING)
    await until_known(mirror)
    assert [s.id.version for s in mirror.monitor.versions("m")] == [3]
    with pytest.raises(ServingError, match="loading model m again"):
        mirror.client_for(ModelSpec("m"))
    again.set_state("m", 3, ManagerState.AVAILABLE)
    await until_known(mirror)
    assert mirror.client_for(ModelSpec("m")) is mirror.client
    mirror.detach()
    await again.stop()


async def test_each_version_that_was_served_is_waited_for(fake_pool: FakePool) -> None:
    assert fake_pool.info is not None
    for version in (1, 2, 3):
        fake_pool.set_state("m", version, ManagerState.AVAILABLE)
    mirror = PoolMirror(fake_pool.pool_id, "managed")
    await mirror.attach(fake_pool.info)
    await fake_pool.stop()
    await until(lambda: mirror.client is None)
    again = FakePool(fake_pool.pool_id)
    await mirror.attach(await again.start())

    def open_to() -> list[int | None]:
        versions = []
        for version in (None, 1, 2):
            with suppress(ServingError):
                mirror.client_for(ModelSpec("m", version))
                versions.append(version)
        return versions

    again.set_state("m", 1, ManagerState.START)  # 3 has been removed meanwhile
    again.set_state("m", 2, ManagerState.START)
    await until_known(mirror)
    assert open_to() == []
    again.set_state("m", 2, ManagerState.AVAILABLE)
    await until_known(mirror)
    assert open_to() == [2]  # the latest may be another once all are there
    again.set_state("m", 1, ManagerState.AVAILABLE)
    await until_known(mirror)
    assert open_to() == [None, 1, 2]
    mirror.detach()
    await again.stop()


async def test_a_published_model_answers_until_the_configured_one_does(
    registry: PoolRegistry, fake_pool: FakePool
) -> None:
    notebook = await notebook_pool("configured")
    published = await registry.find("configured")
    assert fake_pool.info is not None
    managed = PoolMirror(fake_pool.pool_id, "managed")
    await managed.attach(fake_pool.info)
    registry.add(managed)
    for state, owner in (
        (ManagerState.START, published),
        (ManagerState.LOADING, published),
        (ManagerState.AVAILABLE, managed),
        (ManagerState.UNLOADING, managed),
        (ManagerState.END, managed),
    ):
        fake_pool.set_state("configured", 1, state)
        await until_known(managed)
        assert registry.pool_for("configured") is owner
    managed.detach()
    await notebook.stop()
