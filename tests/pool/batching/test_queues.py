"""How the batches of a version are run: what each caller gets, and what the model sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from batched import Caller, Doubling
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.parameters import BatchingParameters
from jupyter_tfserve.pool.batching.queues import SignatureQueue, VersionQueues
from jupyter_tfserve.pool.batching.records import BatchRecord
from jupyter_tfserve.pool.batching.version import Mode, VersionBatching

if TYPE_CHECKING:
    from jupyter_tfserve.pool.batching.ticket import Ticket


class Hand:
    """Stands for the threads: batches are run when the test says so."""

    def __init__(self) -> None:
        self.queues: dict[SignatureQueue, None] = {}

    def submit(self, queue: SignatureQueue, ticket: Ticket) -> None:
        queue.add(ticket, 0.0)
        self.queues[queue] = None

    def withdraw(self, ticket: Ticket) -> bool:
        return ticket.withdraw()

    def run_all(self) -> None:
        for queue in self.queues:
            while pieces := queue.take(1e9):
                queue.execute(pieces, [0.5] * len(pieces))


class Batched:
    """A model with queues."""

    def __init__(self, servable: Doubling | None = None, **parameters: object) -> None:
        self.servable = servable or Doubling()
        self.hand = Hand()
        self.records: list[BatchRecord] = []
        batching = self.servable.batching = VersionBatching("m", self.records.append)
        made = BatchingParameters(**{"max_batch_size": 8, **parameters})
        queues = VersionQueues(self.servable, made, self.hand)
        batching.switch(Mode.QUEUE, self.servable.why_not_batched(), queues)
        self.servable.prove()
        self.queues = queues

    def submit(self, *rows: object) -> Caller:
        caller = Caller(self.servable.run_of(*rows))
        self.withdraw = self.queues.submit(caller.run, caller.run.key(), caller)
        return caller

    def outcomes(self, *callers: Caller) -> list[object]:
        self.hand.run_all()
        return [caller.outcome for caller in callers]


def test_waiting_requests_are_one_batch() -> None:
    model = Batched()
    callers = [model.submit(1, 2), model.submit(3)]
    assert model.outcomes(*callers) == [[2, 4], [6]]
    assert model.servable.batches == [[1, 2, 3]]
    assert model.records == [BatchRecord(Mode.QUEUE, 3, 3, [0.5, 0.5])]


def test_a_batch_is_padded_to_the_next_allowed_size() -> None:
    model = Batched(allowed_batch_sizes=(4, 8))
    callers = [model.submit(1), model.submit(2, 3)]
    assert model.outcomes(*callers) == [[2], [4, 6]]
    assert model.servable.batches == [[1, 2, 3, 2]]
    assert (model.records[0].rows, model.records[0].processed_rows) == (3, 4)


def test_a_bad_row_fails_its_own_caller_only() -> None:
    model = Batched()
    callers = [model.submit(1), model.submit(13), model.submit(3)]
    assert model.outcomes(*callers) == [[2], "no thirteens", [6]]


def test_rows_of_other_shapes_run_apart() -> None:
    model = Batched()
    callers = [model.submit([1, 1]), model.submit([2, 2, 2]), model.submit([3, 3])]
    assert model.outcomes(*callers) == [[[2, 2]], [[4, 4, 4]], [[6, 6]]]
    assert model.servable.batches == [[[1, 1], [3, 3]], [[2, 2, 2]]]
    assert [record.rows for record in model.records] == [2, 1]


def test_with_padding_rows_of_other_shapes_run_together() -> None:
    model = Batched(pad_variable_length_inputs=True)
    callers = [model.submit([1, 2]), model.submit([3, 4, 5])]
    # As in TensorFlow Serving, answers are not cut back to the shorter rows.
    assert model.outcomes(*callers) == [[[2, 4, 2]], [[6, 8, 10]]]
    callers = [model.submit([1]), model.submit([[1]])]
    assert model.outcomes(*callers) == [[[2]], [[[2]]]]  # other ranks still run apart


def test_a_bad_row_is_run_as_it_came_where_rows_are_padded() -> None:
    model = Batched(pad_variable_length_inputs=True)
    callers = [model.submit([1]), model.submit([13, 13])]
    assert model.outcomes(*callers) == [[[2]], "no thirteens"]
    assert model.servable.batches[1:] == [[[1]], [[13, 13]]]


def test_rows_of_rank_seven_are_not_padded() -> None:
    model = Batched(pad_variable_length_inputs=True)
    small, large = np.ones((1, 1, 1, 1, 1, 1)), np.ones((1, 1, 1, 1, 1, 2))
    callers = [model.submit(small), model.submit(large)]
    assert model.outcomes(*callers) == [[(small * 2).tolist()], [(large * 2).tolist()]]


def test_large_requests_are_split_and_joined_again() -> None:
    model = Batched(enable_large_batch_splitting=True, max_execution_batch_size=3)
    callers = [model.submit(1), model.submit(*range(2, 10))]
    assert model.outcomes(*callers) == [[2], [2 * n for n in range(2, 10)]]
    assert model.servable.batches == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_a_bad_piece_fails_its_whole_request_once() -> None:
    model = Batched(enable_large_batch_splitting=True, max_execution_batch_size=2)
    callers = [model.submit(1, 2, 3), model.submit(13, 4, 5), model.submit(6)]
    assert model.outcomes(*callers) == [[2, 4, 6], "no thirteens", [12]]


def test_pieces_that_were_padded_differently_are_run_again_as_one() -> None:
    model = Batched(
        enable_large_batch_splitting=True,
        max_execution_batch_size=2,
        pad_variable_length_inputs=True,
    )
    callers = [model.submit([1, 1]), model.submit([2], [3], [4])]
    assert model.outcomes(*callers) == [[[2, 2]], [[4], [6], [8]]]


def test_a_withdrawn_run_is_not_run_and_not_told() -> None:
    model = Batched()
    kept = model.submit(1)
    gone = model.submit(2)
    assert model.withdraw()
    assert model.outcomes(kept) == [[2]]
    assert model.servable.batches == [[1]]
    assert not gone._ended.is_set()


class Summing(Doubling):
    """Has one row, whatever it is given."""

    def compute(self, x: np.ndarray) -> np.ndarray:
        return x.sum(axis=0, keepdims=True)


@pytest.mark.parametrize("allowed", [(), (4, 8)])
def test_outputs_without_rows_are_computed_for_each_caller(allowed: tuple[int, ...]) -> None:
    model = Batched(Summing(), allowed_batch_sizes=allowed)
    callers = [model.submit(1, 2), model.submit(3)]
    assert model.outcomes(*callers) == [[3], [3]]
    assert "s" not in model.servable.batching.mergeable


def test_a_lone_answer_without_rows_is_given_whole() -> None:
    class Always(Doubling):
        def compute(self, x: np.ndarray) -> np.ndarray:
            return np.arange(5.0)

    model = Batched(Always())
    (outcome,) = model.outcomes(model.submit(1, 2))
    assert outcome == [0, 1, 2, 3, 4]


def test_what_has_not_been_proven_is_run_apart_until_it_is() -> None:
    model = Batched(allowed_batch_sizes=(4, 8))
    model.servable.batching._proven.clear()
    model.servable.batching._seen.clear()
    callers = [model.submit(1), model.submit(2, 3)]
    assert model.outcomes(*callers) == [[2], [4, 6]]
    assert model.servable.batches == [[1, 2, 3, 2], [1], [2, 3]]
    assert model.outcomes(model.submit(5)) == [[10]]
    assert model.servable.batches[3:] == [[5, 5, 5, 5]]


def test_outputs_are_queued_by_what_is_asked_for() -> None:
    model = Batched()
    some = Caller(model.servable.run_of(1))
    some.run.aliases = ("y",)
    model.queues.submit(some.run, some.run.key(), some)
    model.outcomes(some, model.submit(2))
    assert len(model.hand.queues) == 2
    assert model.servable.batches[0] == [1]


def test_a_refusal_of_the_queue_is_raised_and_not_told() -> None:
    model = Batched()
    with pytest.raises(ServingError, match="Task size 9 is larger than") as refused:
        model.submit(*range(9))
    assert refused.value.code is Code.INVALID_ARGUMENT


requests = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from([1, 2, 3]), st.booleans()), min_size=1, max_size=12
)


@given(requests, st.booleans(), st.booleans(), st.booleans())
def test_every_caller_gets_its_own_answer_whatever_the_parameters(
    requests: list[tuple[int, int, bool]], sizes: bool, pad: bool, split: bool
) -> None:
    parameters: dict[str, object] = {
        "allowed_batch_sizes": (2, 5, 8) if sizes else (),
        "pad_variable_length_inputs": pad,
        "enable_large_batch_splitting": split,
        "max_execution_batch_size": 4,
        "max_enqueued_batches": 1000,
    }
    model = Batched(**parameters)
    callers = []
    for number, (rows, width, bad) in enumerate(requests):
        value = 13 if bad else number + 20
        callers.append((model.submit(*[[value] * width] * rows), rows, width, value))
    model.hand.run_all()
    for caller, rows, width, value in callers:
        if value == 13:
            assert caller.outcome == "no thirteens"
        else:
            answer = np.array(caller.outcome)
            assert answer.shape[0] == rows
            assert answer.shape[1] >= width if pad else answer.shape[1] == width
            assert (answer == 2 * value).all()
