"""What is found out at load about batching real models, and what batching does to their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_tfserve.pool.batching.greedy import run_merged
from jupyter_tfserve.pool.batching.version import Mode, VersionBatching
from jupyter_tfserve.pool.model_run import ModelRun
from jupyter_tfserve.pool.servables.live import LiveServable
from jupyter_tfserve.pool.servables.saved_model import SavedModelServable
from jupyter_tfserve.pool.servables.signature import Signature

if TYPE_CHECKING:
    from jupyter_tfserve.pool.servables.base import Servable

Load = Callable[[str], SavedModelServable]
STATE = "its operation {} keeps state or draws random numbers"


@pytest.fixture(scope="module")
def load(model_dir: Path) -> Iterator[Load]:
    loaded: dict[str, SavedModelServable] = {}

    def load(path: str) -> SavedModelServable:
        if path not in loaded:
            loaded[path] = SavedModelServable(str(model_dir / path))
        return loaded[path]

    yield load
    for servable in loaded.values():
        servable.close()


@pytest.mark.parametrize(
    ("path", "reasons"),
    [
        (
            "half_plus_two/00000123",
            {"serving_default": None, "regress_x_to_y": None, "classify_x_to_y": None},
        ),
        (
            "half_plus_three/00000123",
            {"serving_default": "input x is a scalar", "tensorflow/serving/regress": None},
        ),
        (
            "counter/123",
            {
                "get_counter": "it has no inputs",
                "reset_counter": "it has no inputs",
                "incr_counter": "it has no inputs",
                "incr_counter_by": "input delta is a scalar",
            },
        ),
        ("multi_io/1", {"serving_default": None, "one_out": None}),
        ("mlp/1", {"serve": None, "serving_default": None}),
        (
            "scalar_out/1",
            {
                "serving_default": "output s is a scalar",
                "scalar_and_vec": "output s is a scalar",
                "scalar_in": "input x is a scalar",
                "scalar_str": "output s_bytes is a scalar",
            },
        ),
        (
            "rows/1",
            {
                "serving_default": None,
                "length": None,
                "anything": None,
                "lookup": None,
                "fixed_input": "input x has a first dimension that is fixed at 2",
                "one_query": "input q has a first dimension that is fixed at 1",
                "fixed_output": "output y has a first dimension that is fixed at 3",
                "hidden_output": None,
                "noise": STATE.format("RandomUniform"),
                "same_noise": STATE.format("StatelessRandomGetKeyCounter"),
                "counts": STATE.format("AssignAdd"),
            },
        ),
        (
            "functions/1",
            {"serving_default": None, "counts": STATE.format("AssignAddVariableOp")},
        ),
    ],
)
def test_signatures_that_cannot_be_batched_are_found_at_load(
    load: Load, path: str, reasons: dict[str, str | None]
) -> None:
    found = load(path).why_not_batched()
    assert {key: found[key] for key in reasons} == reasons


def test_models_of_this_process_are_judged_by_what_they_run() -> None:
    spec = tf.TensorSpec([None], name="x")
    weight, count = tf.Variable(2.0), tf.Variable(0.0)

    @tf.function(input_signature=[spec])
    def times(x):
        return {"y": x * weight}

    @tf.function(input_signature=[spec])
    def counts(x):
        return {"y": x + count.assign_add(1.0)}

    @tf.function(input_signature=[spec])
    def noise(x):
        return {"y": x + tf.random.uniform(tf.shape(x))}

    module = tf.Module()
    module.weight, module.count = weight, count
    module.times, module.counts, module.noise = times, counts, noise
    found = LiveServable(
        module, {"times": times, "counts": counts, "noise": noise}
    ).why_not_batched()
    assert found == {
        "times": None,
        "counts": STATE.format("AssignAddVariableOp"),
        "noise": STATE.format("RandomUniform"),
    }
    plain = Signature({"x": ("float32", [-1])}, {"y": ("float32", [-1])})
    found = LiveServable(lambda x: x * 2, plain).why_not_batched()
    assert found == {"serving_default": "it is a Python function, which may do anything"}


def greedy(servable: Servable) -> VersionBatching:
    batching = servable.batching = VersionBatching("m")
    batching.switch(Mode.GREEDY, servable.why_not_batched())
    return batching


def merged(servable: Servable, signature: str, inputs: list[dict[str, np.ndarray]]) -> list:
    """What comes out of a batch, once its signature has shown that it has rows."""
    info = servable.signatures[signature]
    for _ in range(2):
        runs = [ModelRun(servable, info, each) for each in inputs]
        assert len({run.key() for run in runs}) == 1
        assert run_merged(runs) == [None] * len(runs)
    return [run.outputs for run in runs]


@settings(deadline=None, max_examples=40)
@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=8), seed=st.integers(0, 2**32 - 1))
def test_rows_of_a_batch_are_those_of_runs_alone(load: Load, sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for path, alias, width, exact in (
        ("half_plus_two/00000123", "x", 1, True),
        ("mlp/1", "x", 16, False),
    ):
        servable = load(path)
        greedy(servable)
        inputs = [{alias: rng.normal(size=(n, width)).astype(np.float32)} for n in sizes]
        together = merged(servable, "serving_default", inputs)
        for given_, outputs in zip(inputs, together, strict=True):
            for name, expected in servable.call("serving_default", given_).items():
                if exact:
                    np.testing.assert_array_equal(outputs[name], expected)
                else:
                    np.testing.assert_allclose(outputs[name], expected, rtol=1e-5, atol=1e-5)


def test_an_output_of_hidden_size_is_never_cut_wrongly(load: Load) -> None:
    servable = load("rows/1")
    batching = greedy(servable)
    info = servable.signatures["hidden_output"]
    # Three rows of three callers, and the output has three whatever comes in.
    runs = [ModelRun(servable, info, {"x": np.ones(1, np.float32)}) for _ in range(3)]
    assert run_merged(runs) == [None] * 3
    assert [run.outputs["y"].tolist() for run in runs] == [[1.0, 2.0, 3.0]] * 3
    text = "output y of 1 rows has the shape [3]"
    assert batching.describe()["not_batched"]["hidden_output"] == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("mixed_batch/1", "output b of 2 rows has the shape [4]"),
        ("empty_out/1", "output y of 2 rows has the shape [0]"),
    ],
)
def test_outputs_of_other_sizes_are_found_at_the_first_batch(
    load: Load, path: str, text: str
) -> None:
    servable = load(path)
    batching = greedy(servable)
    assert "serving_default" in batching.mergeable
    info = servable.signatures["serving_default"]
    x = [np.array([n], np.float32) for n in (1, 2)]
    runs = [ModelRun(servable, info, {"x": each}) for each in x]
    assert run_merged(runs) == [None, None]
    for run, each in zip(runs, x, strict=True):
        for name, expected in servable.call("serving_default", {"x": each}).items():
            np.testing.assert_array_equal(run.outputs[name], expected)
    assert batching.describe()["not_batched"]["serving_default"] == text
    assert ModelRun(servable, info, {"x": x[0]}).key() is None


def test_unknown_ranks_are_judged_run_by_run(load: Load) -> None:
    servable = load("rows/1")
    batching = greedy(servable)
    info = servable.signatures["anything"]
    assert ModelRun(servable, info, {"x": np.float32(1).reshape(())}).key() is None
    inputs = [{"x": np.full((1, 2), n, np.float32)} for n in range(3)]
    together = merged(servable, "anything", inputs)
    assert [outputs["y"].tolist() for outputs in together] == [[[0, 0]], [[2, 2]], [[4, 4]]]
    assert "anything" in batching.mergeable


def test_a_model_that_takes_inputs_of_unequal_sizes_is_not_batched_any_more(load: Load) -> None:
    servable = load("multi_io/1")
    batching = greedy(servable)
    info = servable.signatures["serving_default"]

    def run(a: int, b: int) -> ModelRun:
        return ModelRun(servable, info, {"a": np.ones(a, np.float32), "b": np.ones(b, np.float32)})

    bad = run(2, 3)  # which nothing can make of
    assert bad.key() is None
    with pytest.raises(Exception, match="ncompatible shapes"):
        bad.run()
    assert "serving_default" in batching.mergeable
    one = run(1, 3)
    assert one.key() is None
    one.run()
    assert "serving_default" not in batching.mergeable
    assert "different numbers of rows" in batching.describe()["not_batched"]["serving_default"]
