"""What shapes and runs tell about batching."""

from __future__ import annotations

import numpy as np
import pytest

from jupyter_tfserve.pool.batching.shapes import why_not_rowwise
from jupyter_tfserve.pool.batching.version import NEVER, Mode, VersionBatching
from jupyter_tfserve.servable import SignatureInfo, TensorInfo

Shape = tuple[int, ...] | None


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ({"x": (-1,)}, {"y": (-1, 3)}, None),
        ({"x": None}, {"y": None}, None),
        ({}, {"y": (-1,)}, "it has no inputs"),
        ({"x": (-1,), "q": ()}, {"y": (-1,)}, "input q is a scalar"),
        ({"q": (1, 8)}, {"y": (-1,)}, "input q has a first dimension that is fixed at 1"),
        ({"x": (-1,)}, {"y": (-1,), "s": ()}, "output s is a scalar"),
        ({"x": (-1,)}, {"y": (100, 4)}, "output y has a first dimension that is fixed at 100"),
    ],
)
def test_shapes_tell_what_has_no_rows(
    inputs: dict[str, Shape], outputs: dict[str, Shape], reason: str | None
) -> None:
    def tensors(shapes: dict[str, Shape]) -> dict[str, TensorInfo]:
        return {alias: TensorInfo("float", shape) for alias, shape in shapes.items()}

    assert why_not_rowwise(SignatureInfo("s", tensors(inputs), tensors(outputs))) == reason


@pytest.fixture
def batching() -> VersionBatching:
    made = VersionBatching("m")
    made.switch(Mode.GREEDY, {"s": None, "scalar": "input x is a scalar"})
    return made


def look(batching: VersionBatching, rows: int, *shape: int) -> bool:
    return batching.has_a_row_for_each("s", None, {"y": np.zeros(shape)}, rows)


def test_what_may_be_merged_and_why_not_is_told(batching: VersionBatching) -> None:
    assert batching.mergeable == {"s"}
    assert batching.describe() == {
        "mode": "greedy",
        "not_batched": {"scalar": "input x is a scalar"},
    }
    assert NEVER.describe() == {"mode": "off", "not_batched": {}}


def test_one_number_of_rows_may_be_chance_and_two_are_proof(batching: VersionBatching) -> None:
    assert not look(batching, 100, 100)
    assert not look(batching, 100, 100)
    assert look(batching, 3, 3, 2)
    assert look(batching, 100, 100)


@pytest.mark.parametrize("shape", [(100,), (0,), ()])
def test_a_run_without_a_row_for_each_refuses_the_signature_for_good(
    batching: VersionBatching, shape: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    assert not look(batching, 3, *shape)
    assert not batching.mergeable
    text = f"output y of 3 rows has the shape [{','.join(map(str, shape))}]"
    assert batching.describe()["not_batched"]["s"] == text
    assert not look(batching, 3, *shape)
    assert caplog.text.count(text) == 1
    batching.stop()
    batching.switch(Mode.QUEUE, {"s": None})
    assert not batching.mergeable


def test_outputs_are_judged_by_themselves(batching: VersionBatching) -> None:
    for rows in (1, 2):
        batching.has_a_row_for_each("s", ("y",), {"y": np.zeros(rows)}, rows)
    assert not look(batching, 2, 2)
