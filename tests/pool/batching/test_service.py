"""Which versions are batched, by the pool's options and those of their models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from batched import Doubling

from jupyter_tfserve.config import ModelConfig, ModelServerConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.options import BatchingOptions
from jupyter_tfserve.pool.batching.service import Batching
from jupyter_tfserve.pool.core.loader import Loader
from jupyter_tfserve.pool.core.server_core import CoreOptions, ServerCore
from jupyter_tfserve.servable import ModelSpec

if TYPE_CHECKING:
    from jupyter_tfserve.pool.servables.base import Servable

Make = Callable[..., Batching]
SCALAR = {"scalar": "input x is a scalar"}


@pytest.fixture
def make() -> Iterator[Make]:
    made = []

    def make(**options: object) -> Batching:
        made.append(Batching(BatchingOptions(**options)))
        return made[-1]

    yield make
    for batching in made:
        batching.close()


class DoublingLoader(Loader["Servable"]):
    def __init__(self) -> None:
        self.servable = Doubling()
        self.loaded = False

    def load(self) -> Servable:
        self.loaded = True
        return self.servable

    def unload(self) -> None:
        self.servable.close()


def loaded(batching: Batching, path: Path | str = "", name: str = "m") -> Doubling:
    loader = DoublingLoader()
    batching.loader(name, str(path), loader).load()
    return loader.servable


def config(**batching: str) -> ModelServerConfig:
    return ModelServerConfig(
        tuple(ModelConfig(name, "/m", batching=how) for name, how in batching.items())
    )


def described(servable: Doubling) -> dict[str, object]:
    return servable.batching.describe()


def test_nothing_is_batched_unless_asked_for(make: Make) -> None:
    servable = loaded(make())
    assert described(servable) == {"mode": "off", "not_batched": {}}
    assert not servable.batching.mergeable


def test_greedy_batching_of_all_models(make: Make) -> None:
    batching = make(enable_greedy_batching=True)
    assert not batching.has_queues
    servable = loaded(batching)
    assert described(servable) == {"mode": "greedy", "not_batched": SCALAR}
    assert servable.batching.mergeable == {"s"}
    assert servable.run_of(1).queues is None


def test_queues_for_all_models(make: Make) -> None:
    batching = make(enable_batching=True)
    assert batching.has_queues
    assert batching.parameters is not None
    assert batching.parameters.thread_pool_name == "model_server_batch_threads"
    servable = loaded(batching)
    assert described(servable) == {"mode": "queue", "not_batched": SCALAR}
    assert servable.run_of(1).queues is not None


def test_a_models_own_option_counts_more_and_holds_for_what_is_loaded(make: Make) -> None:
    batching = make(enable_batching=True)
    m, n = loaded(batching), loaded(batching, name="n")
    batching.configure(config(m="greedy", n=""))
    assert [described(each)["mode"] for each in (m, n)] == ["greedy", "queue"]
    assert m.batching.queues is None
    batching.configure(config(m="off", n="greedy"))
    assert [described(each)["mode"] for each in (m, n)] == ["off", "greedy"]
    assert not m.batching.mergeable
    batching.configure(config())
    assert [described(each)["mode"] for each in (m, n)] == ["queue", "queue"]
    assert described(loaded(batching))["mode"] == "queue"


def test_an_unloaded_version_is_let_go(make: Make) -> None:
    batching = make(enable_batching=True)
    loader = batching.loader("m", "", DoublingLoader())
    servable = loader.load()
    loader.unload()
    assert servable.batching.queues is None
    batching.configure(config(m="greedy"))
    assert servable.batching.describe()["mode"] == "off"


def test_the_core_tells_of_configurations_before_it_loads(make: Make, tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "saved_model.pb").write_bytes(b"")
    batching = make()

    def load(model: ModelConfig, _: object, path: str) -> Loader[Servable]:
        return batching.loader(model.name, path, DoublingLoader())

    def mode() -> str:
        with core.handle(ModelSpec("m")) as handle:
            return str(handle.servable.batching.mode)

    core = ServerCore(load, CoreOptions(), on_config=batching.configure)
    with core:
        model = ModelConfig("m", str(tmp_path / "m"), batching="greedy")
        core.reload_config(ModelServerConfig((model,)))
        assert mode() == "greedy"
        core.reload_config(ModelServerConfig((ModelConfig("m", str(tmp_path / "m")),)))
        assert mode() == "off"


def test_parameters_that_are_wrong_stop_the_pool_or_the_version(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "batching.txt"
    options = {"enable_batching": True, "batching_parameters_file": str(file)}
    with pytest.raises(ServingError, match="No such file") as refused:
        make(**options)
    assert refused.value.code is Code.NOT_FOUND
    file.write_text("num_batch_threads { value: -1 }")
    with pytest.raises(ServingError, match="num_batch_threads must be positive; was -1"):
        make(**options)
    file.write_text("allowed_batch_sizes: 8")
    batching = make(**options)
    loader = DoublingLoader()
    with pytest.raises(ServingError, match="last entry was 8; expected 1000"):
        batching.loader("m", "", loader).load()
    assert not loader.loaded


def test_each_version_can_bring_its_own_parameters(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "batching.txt"
    # Of this file only the threads count: the sizes would be refused.
    file.write_text("num_batch_threads { value: 1 } allowed_batch_sizes: 8")
    batching = make(
        enable_batching=True,
        batching_parameters_file=str(file),
        enable_per_model_batching_parameters=True,
    )
    assert described(loaded(batching, tmp_path))["mode"] == "off"
    own = tmp_path / "batching_params.pbtxt"
    own.write_text("max_batch_size { value: 2 }")
    servable = loaded(batching, tmp_path)
    assert described(servable)["mode"] == "queue"
    run = servable.run_of(1, 2, 3)
    assert run.queues is not None
    with pytest.raises(ServingError, match="Task size 3 is larger than maximum input batch size 2"):
        run.queues.submit(run, run.key(), lambda _: None)
    own.write_text("max_batch_size: 2")
    with pytest.raises(ServingError, match=f"Invalid protobuf file: '{own}': 1:17") as refused:
        loaded(batching, tmp_path)
    assert refused.value.code is Code.INVALID_ARGUMENT
