"""Several managed pools, over fake processes and fake GPUs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_gpus import GIB, FakeGpus, gpu
from fake_pool import FakePool, Pools, until

from jupyter_tfserve.config import ModelConfig, ModelServerConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import ModelSpec
from jupyter_tfserve.server import host_memory
from jupyter_tfserve.server.configuration import Unloaded
from jupyter_tfserve.server.managed_pool import Phase
from jupyter_tfserve.server.nvml import GpuProcess, Reading
from jupyter_tfserve.server.pool_manager import PoolManager
from jupyter_tfserve.server.pool_spec import PoolSpec
from jupyter_tfserve.state import ManagerState

TWO = [{"name": "a"}, {"name": "b"}]
ON_GPUS = [
    {"name": "gpu0", "device": "GPU:0"},
    {"name": "gpu1", "device": "gpu:1", "memory_limit_mb": 8192},
    {"name": "cpu", "device": "CPU"},
]
Make = Callable[..., PoolManager]


@pytest.fixture
async def make(pools: Pools) -> AsyncIterator[Make]:
    made: list[PoolManager] = []

    def make(specs: list[dict[str, Any]]) -> PoolManager:
        made.append(PoolManager(pools=specs))
        return made[-1]

    yield make
    for manager in made:
        await manager.stop()


def model(name: str, **where: str) -> ModelConfig:
    return ModelConfig(name, f"/models/{name}", **where)  # type: ignore[arg-type]


def sent(pool: FakePool) -> list[str]:
    return [m["name"] for m in pool.configs[-1]["models"]] if pool.configs else []


def pool_of(manager: PoolManager, name: str) -> str:
    return manager.configuration.aspired.homes[name].spec.name


# Where a model goes


async def test_a_model_goes_to_the_pool_that_it_names(make: Make, pools: Pools) -> None:
    manager = make(TWO)
    await manager.load(model("m", pool="b"))
    assert [host.spec and host.spec.name for host in pools.hosts] == ["b"]
    await manager.load(model("n", pool="a"))
    assert [sent(pools.of(name)[0].pool) for name in "ab"] == [["n"], ["m"]]
    for name in "mn":
        client = manager.client_for(ModelSpec(name))
        assert client is manager.fleet.get(pool_of(manager, name)).mirror.client


async def test_a_model_goes_to_the_pool_of_its_device(
    make: Make, pools: Pools, gpus: FakeGpus
) -> None:
    gpus.have(gpu(0), gpu(1))
    manager = make(ON_GPUS)
    for name, device in (("m", "GPU:1"), ("n", "CPU"), ("o", "GPU:0")):
        await manager.load(model(name, device=device))
    assert [pool_of(manager, name) for name in "mno"] == ["gpu1", "cpu", "gpu0"]


async def test_a_device_without_a_pool_gets_one(make: Make, pools: Pools, gpus: FakeGpus) -> None:
    gpus.have(gpu(0), gpu(1))
    manager = make([])
    await manager.load(model("m", device="GPU:1"))
    await manager.load(model("n", device="GPU:0"))  # where a process that sees all puts it
    await manager.load(model("o", device="CPU"))
    await manager.load(model("p", device="GPU:1"))
    assert [pool_of(manager, name) for name in "mnop"] == ["gpu1", "managed", "cpu", "gpu1"]
    specs = {pool.spec.name: pool.spec.device for pool in manager.fleet}
    assert specs == {"managed": "", "gpu1": "GPU:1", "cpu": "CPU"}


@pytest.mark.parametrize(
    ("where", "code", "words"),
    [
        ({"device": "GPU:2"}, Code.FAILED_PRECONDITION, "no device GPU:2. There are: CPU, GPU:0"),
        ({"pool": "c"}, Code.NOT_FOUND, "no managed pool c. There are: gpu0, gpu1, cpu"),
        (
            {"pool": "gpu1", "device": "CPU"},
            Code.INVALID_ARGUMENT,
            "asks for CPU and for pool gpu1, which is on GPU:1",
        ),
        ({"device": "TPU:0"}, Code.INVALID_ARGUMENT, "to be CPU or GPU:n; got 'TPU:0'"),
    ],
)
async def test_a_place_that_is_not_there_is_refused_and_starts_nothing(
    make: Make, pools: Pools, gpus: FakeGpus, where: dict[str, str], code: Code, words: str
) -> None:
    gpus.have(gpu(0), gpu(1))
    manager = make(ON_GPUS)
    with pytest.raises(ServingError, match=words) as raised:
        await manager.load(model("m", **where))
    assert raised.value.code is code
    assert pools.hosts == []
    assert manager.config_in_force.models == ()


async def test_without_nvml_a_device_is_tried_and_its_pool_forgotten_where_it_fails(
    make: Make, pools: Pools, gpus: FakeGpus
) -> None:
    gpus.reading = Reading(None, "nvidia-ml-py is not installed")
    manager = make([])
    missing = ServingError(Code.FAILED_PRECONDITION, "There is no device GPU:3")
    pools.errors = [missing]
    with pytest.raises(ServingError, match="GPU:3"):
        await manager.load(model("m", device="GPU:3"))
    assert [pool.spec.name for pool in manager.fleet] == ["managed"]
    assert len(manager.registry.pools) == 1
    await manager.load(model("m", device="GPU:3"))
    assert pool_of(manager, "m") == "gpu3"


async def test_a_model_goes_where_most_memory_is_free(
    make: Make, pools: Pools, gpus: FakeGpus
) -> None:
    manager = make(ON_GPUS)
    gpus.have(gpu(0, 2), gpu(1, 7))
    await manager.load(model("m"))
    assert pool_of(manager, "m") == "gpu1"
    gpus.have(gpu(0, 9), gpu(1, 12))  # of which its pool may have 8
    await manager.load(model("n"))
    assert pool_of(manager, "n") == "gpu0"
    gpus.have(gpu(0, 0), gpu(1, 0))
    await manager.load(model("o"))
    assert pool_of(manager, "o") != "cpu"  # a GPU that is full says so; the CPU is asked for


async def test_models_that_are_not_loaded_yet_count(
    make: Make, pools: Pools, gpus: FakeGpus, tmp_path: Path
) -> None:
    gpus.have(gpu(0, 8), gpu(1, 8))
    manager = make(ON_GPUS[:2])
    models = []
    for name in "mno":
        (tmp_path / name / "3").mkdir(parents=True)
        (tmp_path / name / "3" / "weights").write_bytes(bytes(1000))
        models.append(ModelConfig(name, str(tmp_path / name)))
    await manager.reload_config(ModelServerConfig(tuple(models)))
    assert [pool_of(manager, name) for name in "mno"] == ["gpu0", "gpu1", "gpu0"]
    assert gpus.times_read == 1


async def test_without_nvml_the_ledger_decides(make: Make, pools: Pools, gpus: FakeGpus) -> None:
    gpus.reading = Reading(None, "NVML does not answer: GPU is lost")
    manager = make(ON_GPUS[:2])
    memory = {"device": "GPU:0", "memory": {"host": 0, "device": GIB, "estimate": True}}
    pools.prepare = lambda pool: pool.memory.update(m=memory)
    await manager.load(model("m"))
    await manager.load(model("n"))
    assert [pool_of(manager, name) for name in "mn"] == ["gpu0", "gpu1"]


async def test_pools_on_one_device_are_not_started_in_vain(
    make: Make, pools: Pools, gpus: FakeGpus
) -> None:
    manager = make(TWO)
    await manager.load(model("m", pool="b"))
    await manager.load(model("n"))
    assert pool_of(manager, "n") == "b"
    assert len(pools.hosts) == 1


async def test_a_model_stays_where_it_is(make: Make, pools: Pools, gpus: FakeGpus) -> None:
    gpus.have(gpu(0, 8), gpu(1, 2))
    manager = make(ON_GPUS)
    await manager.load(model("m"))
    gpus.have(gpu(0, 1), gpu(1, 8))
    await manager.load(model("m"))
    await manager.reload_config(ModelServerConfig((model("m"),)))
    assert pool_of(manager, "m") == "gpu0"


async def test_one_pool_needs_no_look_at_gpus(make: Make, pools: Pools, gpus: FakeGpus) -> None:
    await make([]).load(model("m"))
    assert gpus.times_read == 0


# Moves


async def test_a_model_that_moves_is_served_all_the_time(make: Make, pools: Pools) -> None:
    manager = make(TWO)
    await manager.load(model("m", pool="a"))
    pools.prepare = lambda pool: pool.problems.update(m="")  # the test tells its states
    moving = asyncio.ensure_future(manager.load(model("m", pool="b")))
    await until(lambda: pools.of("b") and sent(pools.of("b")[0].pool) == ["m"])
    old, new = (manager.fleet.get(name).mirror for name in "ab")
    pools.of("b")[0].pool.set_state("m", 1, ManagerState.LOADING)
    await until(lambda: new.monitor.versions("m"))
    assert manager.client_for(ModelSpec("m")) is old.client
    pools.of("b")[0].pool.set_state("m", 1, ManagerState.AVAILABLE)
    await moving
    assert manager.client_for(ModelSpec("m")) is new.client
    await until(lambda: sent(pools.of("a")[0].pool) == [])
    await until(lambda: not old.is_live("m"))
    assert manager.client_for(ModelSpec("m")) is new.client
    assert [m["name"] for m in await manager.overview.models()] == ["m"]


async def test_a_move_that_fails_leaves_the_model_where_it_was(make: Make, pools: Pools) -> None:
    manager = make(TWO)
    first = model("m", pool="a")
    await manager.load(first)
    failure = ServingError(Code.INTERNAL, "bad graph")
    pools.prepare = lambda pool: pool.failures.update(m=failure)
    with pytest.raises(ServingError, match="bad graph"):
        await manager.load(model("m", pool="b"))
    assert manager.config_in_force.models == (first,)
    assert manager.client_for(ModelSpec("m")) is manager.fleet.get("a").mirror.client
    assert (sent(pools.of("a")[0].pool), sent(pools.of("b")[0].pool)) == (["m"], [])


async def test_a_configuration_that_one_pool_refuses_is_in_force_on_none(
    make: Make, pools: Pools
) -> None:
    manager = make(TWO)
    before = (model("m", pool="a"), model("n", pool="b"))
    for one in before:
        await manager.load(one)
    pools.of("b")[0].pool.refusal = ServingError(Code.FAILED_PRECONDITION, "a label")
    with pytest.raises(ServingError, match="a label"):
        await manager.reload_config(ModelServerConfig((model("o", pool="a"), model("p", pool="b"))))
    assert manager.config_in_force.models == before
    assert sent(pools.of("a")[0].pool) == ["m"]


# Restarts and releases


async def test_a_pool_that_dies_is_told_its_own_models_again(make: Make, pools: Pools) -> None:
    manager = make(TWO)
    await manager.load(model("m", pool="a"))
    await manager.load(model("n", pool="b"))
    await pools.of("a")[0].die()
    assert manager.client_for(ModelSpec("n")) is not None
    await until(lambda: len(pools.of("a")) == 2 and manager.managed.phase is Phase.RUNNING)
    assert sent(pools.of("a")[1].pool) == ["m"]
    assert len(pools.of("b")) == 1


async def test_the_last_model_of_a_pool_takes_its_process_along(make: Make, pools: Pools) -> None:
    manager = make(TWO)
    for name, pool in (("m", "a"), ("n", "a"), ("o", "b")):
        await manager.load(model(name, pool=pool))
    assert await manager.unload("m", release=True) == Unloaded("a", remaining=("n",))
    assert not pools.of("a")[0].ended
    assert await manager.unload("n", release=True) == Unloaded("a", released=True)
    assert pools.of("a")[0].ended
    assert manager.client_for(ModelSpec("n")) is None
    assert manager.client_for(ModelSpec("o")) is not None
    await manager.load(model("n", pool="a"))
    assert len(pools.of("a")) == 2
    assert sent(pools.pool) == ["n"]


async def test_a_release_waits_for_the_model_to_be_gone(make: Make, pools: Pools) -> None:
    manager = make([])
    await manager.load(model("m"))
    pool = pools.pool
    told = pool.set_state
    pool.set_state = lambda *_args: None  # type: ignore[method-assign]
    releasing = asyncio.ensure_future(manager.unload("m", release=True))
    await until(lambda: pool.configs[-1] == {"models": []})
    told("m", 1, ManagerState.UNLOADING)
    await manager.poll()
    assert not pools.hosts[0].ended
    told("m", 1, ManagerState.END)
    assert (await releasing).released


async def test_a_pool_that_is_needed_again_meanwhile_is_not_released(
    make: Make, pools: Pools
) -> None:
    manager = make([])
    await manager.load(model("m"))
    pools.pool.problems["n"] = ""  # it is on its way
    loading = asyncio.ensure_future(manager.load(model("n")))
    await until(lambda: sent(pools.pool) == ["m", "n"])
    assert await manager.unload("m", release=True) == Unloaded("managed", remaining=("n",))
    pools.pool.set_state("n", 1, ManagerState.AVAILABLE)
    await loading
    assert len(pools.hosts) == 1


async def test_a_load_during_a_release_gets_a_new_process(make: Make, pools: Pools) -> None:
    manager = make([])
    await manager.load(model("m"))
    releasing = asyncio.ensure_future(manager.unload("m", release=True))
    await until(lambda: manager.managed._stopping is not None)
    await manager.load(model("n"))
    assert (await releasing).pool == "managed"
    assert len(pools.hosts) == 2
    assert manager.client_for(ModelSpec("n")) is not None


# More pools


async def test_a_pool_is_added_and_started(make: Make, pools: Pools, gpus: FakeGpus) -> None:
    gpus.have(gpu(0))
    manager = make([])
    described = await manager.start_pool(PoolSpec("gpu0", "GPU:0", 4000, "tf-gpu"))
    assert (described["name"], described["phase"]) == ("gpu0", "running")
    assert (described["device"], described["memory_limit_mb"]) == ("GPU:0", 4000)
    assert pools.hosts[0].spec == PoolSpec("gpu0", "GPU:0", 4000, "tf-gpu")
    with pytest.raises(ServingError) as raised:
        await manager.start_pool(PoolSpec("gpu0"))
    assert raised.value.code is Code.ALREADY_EXISTS
    await manager.load(model("m", pool="gpu0"))
    await manager.unload("m", release=True)
    pools.errors = [ServingError(Code.UNAVAILABLE, "busy")]
    with pytest.raises(ServingError, match="busy"):
        await manager.load(model("m", pool="gpu0"))
    assert manager.fleet.get("gpu0")  # it has run: it is no longer on trial


async def test_a_pool_for_a_device_that_is_not_there_is_refused(
    make: Make, pools: Pools, gpus: FakeGpus
) -> None:
    gpus.have(gpu(0))
    manager = make([])
    with pytest.raises(ServingError, match=r"no device GPU:1\. There are: CPU, GPU:0"):
        await manager.start_pool(PoolSpec("gpu1", "GPU:1"))
    assert pools.hosts == []
    assert len(manager.fleet) == 1


async def test_a_pool_that_cannot_start_is_forgotten(make: Make, pools: Pools) -> None:
    manager = make([])
    pools.errors = [ServingError(Code.FAILED_PRECONDITION, "There is no kernel 'x'")]
    with pytest.raises(ServingError, match="no kernel"):
        await manager.start_pool(PoolSpec("x", kernel_name="x"))
    assert [pool.spec.name for pool in manager.fleet] == ["managed"]


def test_a_pools_process_is_told_its_device_and_its_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    manager = PoolManager(per_process_gpu_memory_fraction=0.5)
    options = manager.kernel_options(PoolSpec("p", "GPU:1", 4000, "tf"))
    assert options.kernel_name == "tf"
    assert options.environment["CUDA_VISIBLE_DEVICES"] == "5"
    assert options.pool["name"] == "p"
    assert options.pool["devices"] == {
        "device": "GPU:1",
        "memory_limit_mb": 4000,
        "per_process_gpu_memory_fraction": 0.5,
    }


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ([{"name": "a"}, {"name": "a"}], "Two pools are called a"),
        ([{"device": "CPU"}], "'name' of a pool"),
        ([{"name": "a b"}], "'name' of a pool"),
        ([{"name": "a", "device": "cuda:0"}], "device of pool a to be CPU or GPU:n"),
        ([{"name": "a", "memory": 3}], "Unknown field of a pool: memory"),
        ([{"name": "a", "memory_limit_mb": "8000"}], "'memory_limit_mb' of pool a"),
        ([{"name": "a", "device": "CPU", "memory_limit_mb": 1}], "limits memory on GPUs only"),
        ([{"name": "a", "kernel_name": 3}], "'kernel_name' of pool a"),
    ],
)
def test_a_setting_that_is_wrong_names_what_is(specs: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(ServingError, match=words):
        PoolManager(pools=specs)


# What is told


async def test_the_ledger_tells_who_holds_what(
    make: Make, pools: Pools, gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = host_memory.HostMemory(64 * GIB, 60 * GIB)
    monkeypatch.setattr(host_memory, "read", lambda: memory)
    gpus.have(gpu(0), gpu(1))
    manager = make(ON_GPUS)
    held = {"host": 10, "device": 20, "estimate": True}

    def prepare(pool: FakePool) -> None:
        pool.memory["m"] = {"device": "GPU:0", "memory": held}
        pool.process = {
            "devices": ["CPU:0", "GPU:0"],
            "visible_devices": "1",
            "rss_bytes": 700,
        }

    pools.prepare = prepare
    await manager.load(model("m", pool="gpu1"))
    (described,) = await manager.overview.models()
    assert described["versions"][0]["device"] == "GPU:1"  # not as its process calls it
    told = await manager.overview.devices()
    assert told["nvml"] == {"available": True, "problem": None}
    cpu, first, second = told["devices"]
    assert (cpu["name"], cpu["total_bytes"], cpu["used_bytes"]) == ("CPU", 64 * GIB, 4 * GIB)
    assert [(p["name"], p["pid"]) for p in cpu["pools"]][1] == ("cpu", None)
    assert (cpu["pools"][0]["name"], cpu["pools"][0]["used_bytes"]) == ("gpu1", 700)
    assert cpu["pools"][0]["models"] == []
    assert [(p["name"], p["pid"]) for p in first["pools"]] == [("gpu0", None)]
    (pool,) = second["pools"]
    assert (second["product"], second["free_bytes"]) == ("Tesla T4", 16 * GIB)
    assert (pool["name"], pool["kind"], pool["memory_limit_mb"]) == ("gpu1", "managed", 8192)
    assert pool["pid"] == manager.fleet.get("gpu1").mirror.info.pid  # type: ignore[union-attr]
    assert pool["models"] == [{"name": "m", "version": 1, "memory": held}]
    assert len(pools.hosts) == 1  # a read starts nothing


async def test_a_load_that_finds_no_memory_is_told_who_holds_it(
    make: Make, pools: Pools, gpus: FakeGpus
) -> None:
    manager = make(ON_GPUS)
    stranger = GpuProcess(4242, "/usr/bin/python3", 9 * GIB)
    gpus.have(gpu(0, 1.5, stranger), gpu(1))
    pools.prepare = lambda pool: pool.failures.update(
        m=ServingError(Code.INTERNAL, "Failed to allocate memory: CUDA_ERROR_OUT_OF_MEMORY")
    )
    with pytest.raises(ServingError) as raised:
        await manager.load(model("m", device="GPU:0"))
    assert "GPU:0 has 1.50 GiB of 16.00 GiB free" in raised.value.hint
    assert "/usr/bin/python3 (pid 4242) 9.00 GiB; pool gpu0 (pid " in raised.value.hint
    pools.pool.failures["m"] = ServingError(Code.INTERNAL, "bad graph")
    with pytest.raises(ServingError) as raised:
        await manager.load(model("m", device="GPU:0"))
    assert raised.value.hint == ""
