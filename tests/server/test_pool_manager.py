"""The aspired configuration, and what becomes of changes to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from fake_pool import FakePool, Pools, until

from jupyter_tfserve.config import ModelConfig, ModelServerConfig, Specific
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import ModelSpec
from jupyter_tfserve.server.managed_pool import Phase
from jupyter_tfserve.server.pool_manager import PoolManager
from jupyter_tfserve.state import ManagerState

A, B = ModelConfig("a", "/models/a"), ModelConfig("b", "/models/b")
REFUSED = ServingError(Code.FAILED_PRECONDITION, "a label points nowhere")


@pytest.fixture
async def manager(pools: Pools) -> AsyncIterator[PoolManager]:
    manager = PoolManager()
    yield manager
    await manager.stop()


def names(manager: PoolManager) -> list[str]:
    return [model.name for model in manager.config_in_force.models]


def sent(pool: FakePool) -> list[list[str]]:
    return [[model["name"] for model in config["models"]] for config in pool.configs]


async def test_the_first_load_starts_the_pool(manager: PoolManager, pools: Pools) -> None:
    assert pools.hosts == []
    await manager.load(A)
    await manager.load(B)
    assert names(manager) == ["a", "b"]
    assert sent(pools.pool) == [["a"], ["a", "b"]]
    (state,) = manager.status(ModelSpec("a"))
    assert state.state is ManagerState.AVAILABLE


async def test_a_model_that_fails_is_taken_back_and_its_reason_told(
    manager: PoolManager, pools: Pools
) -> None:
    pools.prepare = lambda pool: pool.failures.update(b=ServingError(Code.INTERNAL, "bad graph"))
    await manager.load(A)
    with pytest.raises(ServingError, match="bad graph") as raised:
        await manager.load(B)
    assert raised.value.code is Code.INTERNAL
    assert names(manager) == ["a"]
    assert sent(pools.pool)[-1] == ["a"]


async def test_a_path_without_versions_is_told_and_taken_back(
    manager: PoolManager, pools: Pools
) -> None:
    pools.prepare = lambda pool: pool.problems.update(a="looked for /models/a/N")
    with pytest.raises(ServingError, match="looked for /models/a/N") as raised:
        await manager.load(A)
    assert raised.value.code is Code.NOT_FOUND
    assert names(manager) == []


async def test_a_failed_model_is_tried_again_when_it_is_loaded_again(
    manager: PoolManager, pools: Pools
) -> None:
    pools.prepare = lambda pool: pool.failures.update(a=ServingError(Code.INTERNAL, "bad graph"))
    await (await manager.configuration.begin_with(A)).ensure_running()  # as at server start
    pools.pool.failures.clear()
    await manager.load(A)
    (state,) = manager.status(ModelSpec("a"))
    assert state.state is ManagerState.AVAILABLE


async def test_a_refused_change_leaves_the_configuration(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(A)
    pools.pool.refusal = REFUSED
    for change in (
        manager.load(B),
        manager.unload("a"),
        manager.label("a", "stable", 9),
        manager.reload_config(ModelServerConfig((B,))),
    ):
        with pytest.raises(ServingError, match="points nowhere"):
            await change
    assert manager.config_in_force == ModelServerConfig((A,))


async def test_a_change_stands_that_a_late_pool_has_heard_of(
    manager: PoolManager, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await manager.load(A)
    monkeypatch.setattr("jupyter_tfserve.server.configuration.CALL_S", 0.05)
    pools.pool.late = True
    with pytest.raises(ServingError, match="did not answer the call") as raised:
        await manager.load(B)
    assert raised.value.code is Code.DEADLINE_EXCEEDED
    assert names(manager) == sent(pools.pool)[-1] == ["a", "b"]


async def test_an_invalid_configuration_never_reaches_the_pool(
    manager: PoolManager, pools: Pools
) -> None:
    with pytest.raises(ServingError, match="absolute path"):
        await manager.load(ModelConfig("b", "relative"))
    assert pools.hosts == []
    await manager.load(A)
    with pytest.raises(ServingError, match="absolute path"):
        await manager.load(ModelConfig("b", "relative"))
    with pytest.raises(ServingError, match="multiple times"):
        await manager.reload_config(ModelServerConfig((A, A)))
    assert sent(pools.pool) == [["a"]]


async def test_labels_are_part_of_the_configuration(manager: PoolManager, pools: Pools) -> None:
    await manager.load(A)
    await manager.label("a", "stable", 1)
    assert manager.config_in_force.models[0].labels == {"stable": 1}
    assert pools.pool.configs[-1]["models"][0]["labels"] == {"stable": 1}
    with pytest.raises(ServingError, match="Model b is not configured"):
        await manager.label("b", "stable", 1)


async def test_labels_of_a_new_model_are_assigned_once_it_is_available(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(replace(A, labels={"stable": 1}))
    assert [config["models"][0]["labels"] for config in pools.pool.configs] == [{}, {"stable": 1}]
    assert manager.config_in_force.models[0].labels == {"stable": 1}


async def test_a_label_waits_for_the_version_that_it_points_at(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(A)
    pools.pool.problems["b"] = ""  # the test tells its states
    labelled = replace(B, labels={"old": 1, "gone": 3})
    loading = asyncio.ensure_future(manager.load(labelled))
    await until(lambda: sent(pools.pool)[-1] == ["a", "b"])
    for version, state in ((1, "START"), (2, "START"), (2, "AVAILABLE"), (1, "LOADING")):
        pools.pool.set_state("b", version, ManagerState[state])
    await manager.poll()
    assert pools.pool.configs[-1]["models"][1]["labels"] == {}
    pools.pool.set_state("b", 1, ManagerState.AVAILABLE)
    await loading
    assert pools.pool.configs[-1]["models"][1]["labels"] == {"old": 1, "gone": 3}


async def test_a_new_model_whose_labels_are_refused_is_taken_back(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(A)
    pools.pool.label_refusal = REFUSED
    with pytest.raises(ServingError, match="points nowhere"):
        await manager.load(replace(B, labels={"stable": 9}))
    assert manager.config_in_force == ModelServerConfig((A,))
    assert sent(pools.pool)[-1] == ["a"]


async def test_an_unloaded_model_is_gone_and_the_pool_stays(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(A)
    await manager.unload("a")
    assert names(manager) == []
    assert manager.managed.phase is Phase.RUNNING
    with pytest.raises(ServingError, match="not configured"):
        await manager.unload("a")


async def test_an_empty_configuration_starts_nothing(manager: PoolManager, pools: Pools) -> None:
    await manager.reload_config(ModelServerConfig())
    await manager.poll()
    assert manager.client_for(ModelSpec("a")) is None
    assert pools.hosts == []


async def test_a_new_process_is_told_everything_again(manager: PoolManager, pools: Pools) -> None:
    await manager.load(ModelConfig("a", "/models/a", labels={"stable": 1}))
    await pools.hosts[0].die()
    await until(lambda: len(pools.hosts) == 2 and manager.managed.phase is Phase.RUNNING)
    assert pools.pool.configs == [manager.config_in_force.to_dict()]
    reload = next(params for method, params in pools.pool.calls if method == "reload_config")
    assert reload["replay"] is True  # labels may point at what is not loaded yet


async def test_a_pool_lost_during_a_load_fails_the_load(manager: PoolManager, pools: Pools) -> None:
    # The pool finds nothing and names no problem, so the load waits.
    pools.prepare = lambda pool: pool.problems.update(b="")
    await manager.load(A)
    loading = asyncio.ensure_future(manager.load(B))
    await until(lambda: sent(pools.pool)[-1] == ["a", "b"])
    await pools.hosts[0].die()
    with pytest.raises(ServingError) as raised:
        await loading
    assert raised.value.code is Code.UNAVAILABLE
    assert names(manager) == ["a"]


async def test_while_the_pool_is_down_its_models_are_unavailable_and_say_why(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(A)
    pools.errors = [ServingError(Code.UNAVAILABLE, "no memory")] * 6
    await pools.hosts[0].die()
    await until(lambda: "no memory" in manager.managed.reason)
    with pytest.raises(ServingError, match="is being restarted: no memory") as raised:
        manager.client_for(ModelSpec("a"))
    assert raised.value.code is Code.UNAVAILABLE
    assert [s.state for s in manager.status(ModelSpec("a"))] == [ManagerState.START]
    assert manager.client_for(ModelSpec("unknown")) is None


async def test_the_model_of_the_traits_is_known_while_the_pool_starts(pools: Pools) -> None:
    pools.gate = asyncio.Event()
    manager = PoolManager(model_name="m", model_base_path="/models/m")
    manager.start()
    await until(lambda: pools.hosts)
    for ask in (manager.client_for, manager.status):
        with pytest.raises(ServingError, match="The model pool is starting"):
            ask(ModelSpec("m"))
    pools.gate.set()
    await manager.managed.ensure_running()
    assert sent(pools.pool) == [["m"]]
    await manager.stop()


async def test_the_models_of_a_file_are_read_by_the_pool(pools: Pools) -> None:
    pools.gate = asyncio.Event()
    manager = PoolManager(model_config_file="/etc/models.config")
    manager.start()
    await until(lambda: pools.hosts)
    with pytest.raises(ServingError, match="starting"):
        manager.client_for(ModelSpec("from_file"))  # any name may be in it
    pools.gate.set()
    await until(lambda: names(manager))
    assert names(manager) == ["from_file"]
    assert ("load_config_file", {"path": "/etc/models.config"}) in pools.pool.calls
    await manager.stop()


async def test_a_base_path_beside_a_file_is_told_to_be_ignored(
    pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    manager = PoolManager(model_config_file="/etc/models.config", model_base_path="/models/m")
    manager.log = logging.getLogger("test")
    await manager.start_configured()
    assert names(manager) == ["from_file"]
    assert "model_base_path is ignored" in caplog.text
    await manager.stop()


async def test_a_file_that_is_refused_is_told_in_the_log(
    pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    manager = PoolManager(model_config_file="/no/such/file")
    with pytest.raises(ServingError, match="does not exist"):
        await manager.start_configured()
    await manager.stop()


# Files and labels ---------------------------------------------------------------------------------


async def test_a_policy_that_matches_nothing_is_refused_and_leaves_what_is_served(
    manager: PoolManager, pools: Pools
) -> None:
    await manager.load(A)
    pools.pool.problems["a"] = "Version(s) 9 of servable a not found"
    with pytest.raises(ServingError, match="9 of servable a not found") as raised:
        await manager.load(replace(A, policy=Specific(frozenset({9}))))
    assert raised.value.code is Code.NOT_FOUND
    assert manager.config_in_force == ModelServerConfig((A,))
    assert len(pools.pool.configs) == 1


async def test_labels_are_set_and_removed_one_by_one(manager: PoolManager, pools: Pools) -> None:
    await manager.load(A)
    assert await manager.label("a", "stable", 1) == {"stable": 1}
    assert await manager.label("a", "canary", 1) == {"stable": 1, "canary": 1}
    assert await manager.label("a", "stable", None) == {"canary": 1}
    assert pools.pool.configs[-1]["models"][0]["labels"] == {"canary": 1}
    with pytest.raises(ServingError, match="Model a has no label stable"):
        await manager.label("a", "stable", None)
    with pytest.raises(ServingError, match="Model b is not configured"):
        await manager.label("b", "stable", 1)


async def test_labels_of_a_published_model_are_its_pools(manager: PoolManager) -> None:
    pool = FakePool(kind="notebook", name="train.ipynb")
    pool.set_state("live", 1, ManagerState.AVAILABLE)
    pool.published_labels["live"] = {"first": 1}
    await pool.start()
    await manager.adopt(pool.pool_id)
    changed: list[str] = []
    manager.registry.on_model = changed.append
    known = manager.overview.known_model("live")
    assert known is not None
    assert known["labels"] == {"first": 1}
    assert await manager.label("live", "stable", 1) == {"first": 1, "stable": 1}
    await until(lambda: changed == ["live"])
    known = manager.overview.known_model("live")
    assert known is not None
    assert known["labels"] == {"first": 1, "stable": 1}
    assert await manager.label("live", "first", None) == {"stable": 1}
    await pool.stop()


async def test_a_reload_reads_the_file_again_and_looks_for_versions(
    pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    manager = PoolManager(model_config_file="/models.config")
    try:
        assert await manager.reload()
        assert names(manager) == ["from_file"]
        await manager.load(A)
        assert not await manager.reload()
        assert names(manager) == ["from_file", "a"]  # the file has not changed
        assert [method for method, _ in pools.pool.calls].count("poll") == 2
        manager.model_config_file = "/no/such/file"
        with pytest.raises(ServingError, match="does not exist"):
            await manager.reload()
        assert names(manager) == ["from_file", "a"]
    finally:
        await manager.stop()


async def test_the_file_is_followed_where_a_period_is_set(
    pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    manager = PoolManager(
        model_config_file="/no/such/file", model_config_file_poll_wait_seconds=0.001
    )
    try:
        manager.start()
        await until(lambda: "The configured models are not served" in caplog.text)
        assert names(manager) == []
        manager.model_config_file = "/models.config"
        await until(lambda: names(manager) == ["from_file"])
    finally:
        await manager.stop()
    assert caplog.text.count("does not exist") == 1


async def test_a_reload_without_a_file_or_a_pool_starts_nothing(
    manager: PoolManager, pools: Pools
) -> None:
    assert not await manager.reload()
    assert pools.hosts == []
