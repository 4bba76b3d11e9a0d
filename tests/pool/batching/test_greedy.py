"""Runs of one key are run as one, and none fails another."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from jupyter_tfserve.codec.deep import DeepTensor
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.greedy import Merger, by_key, run_merged
from jupyter_tfserve.pool.batching.version import Mode, VersionBatching
from jupyter_tfserve.pool.model_run import MAX_MERGED_ROWS, ModelRun
from jupyter_tfserve.pool.servables.base import Servable
from jupyter_tfserve.servable import SignatureInfo, TensorInfo

FLOAT = TensorInfo("float", None)
SIGNATURE = SignatureInfo("s", {"x": FLOAT}, {"y": FLOAT})


class Doubling(Servable):
    """Doubles its input; notes the rows of each call, and refuses the number 13."""

    signatures: Mapping[str, SignatureInfo] = {"s": SIGNATURE}

    def __init__(self) -> None:
        self.batching = VersionBatching()
        self.batching.switch(Mode.GREEDY, {"s": None})
        for rows in (1, 2):  # as its runs have shown
            self.batching.has_a_row_for_each("s", None, {"y": np.zeros(rows)}, rows)
        self.rows: list[int] = []
        self.before = lambda: None

    def call(self, signature, inputs, outputs=None):
        self.before()
        x = inputs["x"]
        self.rows.append(len(x))
        if (x == 13).any():
            raise ServingError(Code.INVALID_ARGUMENT, "no thirteens")
        return {"y": x * 2}

    def debug_text(self, signature: str) -> str:
        return ""

    def close(self) -> None:
        pass


@pytest.fixture
def servable() -> Doubling:
    return Doubling()


def run(servable: Servable, *rows: object, dtype: type = np.float32) -> ModelRun:
    return ModelRun(servable, SIGNATURE, {"x": np.array(rows, dtype)})


def values(runs: Sequence[ModelRun]) -> list[object]:
    return [run.outputs["y"].tolist() for run in runs]


def calls(*runs: ModelRun) -> list[SimpleNamespace]:
    return [SimpleNamespace(run=run, response=None) for run in runs]


def test_each_caller_gets_its_own_rows(servable):
    runs = [run(servable, 1, 2), run(servable, 3), run(servable, 4, 5, 6)]
    assert run_merged(runs) == [None] * 3
    assert servable.rows == [6]
    assert values(runs) == [[2, 4], [6], [8, 10, 12]]


def test_a_bad_row_fails_its_own_caller_only(servable):
    runs = [run(servable, 1), run(servable, 13), run(servable, 3)]
    outcomes = run_merged(runs)
    assert [outcome and outcome.message for outcome in outcomes] == [None, "no thirteens", None]
    assert values([runs[0], runs[2]]) == [[2], [6]]
    assert servable.rows == [3, 1, 1, 1]


def test_outputs_without_a_row_for_each_row_are_computed_for_each_caller(servable):
    class Summing(Doubling):
        def call(self, signature, inputs, outputs=None):
            return {"y": inputs["x"].sum(keepdims=True)}

    runs = [run(Summing(), 1, 2), run(Summing(), 3)]
    assert run_merged(runs) == [None, None]
    assert values(runs) == [[3], [3]]


def test_only_what_fits_is_merged(servable):
    other = Doubling()
    runs = [
        run(servable, 1),
        run(servable, [1, 2]),
        run(other, 1),
        run(servable, 2),
        run(servable, [3, 4]),
    ]
    alone, groups = by_key(calls(*runs))
    assert not alone
    assert [[call.run for call in group] for group in groups] == [
        [runs[0], runs[3]],
        [runs[1], runs[4]],
        [runs[2]],
    ]


@pytest.mark.parametrize(
    "inputs",
    [
        {"x": np.float32(1)},
        {"x": np.zeros(0, np.float32)},
        {"x": np.zeros(2, np.float32), "z": np.zeros(3, np.float32)},
        {"x": DeepTensor(np.zeros(1), (1,) * 70)},
    ],
    ids=["scalar", "no rows", "unequal rows", "deep"],
)
def test_what_has_no_common_rows_runs_alone(servable, inputs):
    assert ModelRun(servable, SIGNATURE, inputs).key() is None


def test_a_signature_that_may_not_be_merged_runs_alone(servable):
    servable.batching.switch(Mode.GREEDY, {"s": "it has a memory"})
    alone, groups = by_key(calls(run(servable, 1), run(servable, 2)))
    assert len(alone) == 2
    assert not groups


def test_failed_calls_are_left_out(servable):
    failed, sound = calls(run(servable, 1), run(servable, 2))
    failed.response = "refused"
    assert by_key([failed, sound]) == ([], [[sound]])


def test_a_batch_is_cut_where_its_rows_become_too_many(servable):
    large = [run(servable, *range(100, 100 + MAX_MERGED_ROWS // 2)) for _ in range(5)]
    _, groups = by_key(calls(*large))
    assert [len(group) for group in groups] == [2, 2, 1]


def test_what_arrives_during_a_run_is_the_next_batch(servable):
    merger = Merger()
    started, release = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert release.wait(20)

    servable.before = hold
    told: list[object] = []
    runs = [run(servable, 1), run(servable, 2), run(servable, 13), run(servable, 3)]

    def submit(each: ModelRun) -> None:
        merger.submit(each.key(), each, lambda outcome, _: told.append((each, outcome)))

    first = threading.Thread(target=submit, args=(runs[0],))
    first.start()
    assert started.wait(20)
    for each in runs[1:]:
        submit(each)  # returns at once: the first thread will see to it
    assert not told
    release.set()
    first.join(20)
    assert servable.rows == [1, 3, 1, 1, 1]
    assert [each for each, _ in told] == runs
    assert [outcome is None for _, outcome in told] == [True, True, False, True]
    assert not merger._waiting
