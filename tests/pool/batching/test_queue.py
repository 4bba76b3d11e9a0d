"""When runs become batches: the rules of TensorFlow Serving's queue, by a clock of the test's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.parameters import BatchingParameters
from jupyter_tfserve.pool.batching.queue import BatchQueue
from jupyter_tfserve.pool.batching.ticket import Piece, Ticket

FULL = "The batch scheduling queue to which this task was submitted is full; "


def queue(**parameters: int) -> BatchQueue:
    return BatchQueue(BatchingParameters(**{"max_batch_size": 4, **parameters}))


def ticket(rows: int) -> Ticket:
    return Ticket(SimpleNamespace(rows=rows, inputs={}), "kind", lambda _: None)


def sizes(pieces: list[Piece]) -> list[int]:
    return [piece.rows for piece in pieces]


def test_without_a_timeout_a_batch_is_due_at_once() -> None:
    waiting = queue()
    assert waiting.due is None
    assert waiting.take(0.0) == []
    waiting.add(ticket(1), 5.0)
    assert waiting.due == 5.0
    waiting.add(ticket(2), 6.0)
    assert sizes(waiting.take(6.0)) == [1, 2]
    assert waiting.due is None


def test_an_open_batch_waits_for_its_timeout_or_until_it_is_full() -> None:
    waiting = queue(batch_timeout_micros=2_000_000)
    waiting.add(ticket(1), 10.0)
    waiting.add(ticket(1), 11.9)  # does not prolong the wait
    assert waiting.take(11.9) == []
    assert waiting.due == 12.0
    assert sizes(waiting.take(12.0)) == [1, 1]
    waiting.add(ticket(4), 13.0)
    assert sizes(waiting.take(13.0)) == [4]


def test_what_does_not_fit_closes_the_batch_which_is_due_then() -> None:
    waiting = queue(batch_timeout_micros=1_000_000)
    waiting.add(ticket(3), 0.0)
    waiting.add(ticket(2), 0.5)
    assert sizes(waiting.take(0.5)) == [3]
    assert waiting.take(0.5) == []
    assert sizes(waiting.take(1.5)) == [2]


def test_nothing_waits_for_more_in_a_hurry() -> None:
    waiting = queue(batch_timeout_micros=1_000_000)
    waiting.add(ticket(1), 0.0)
    assert sizes(waiting.take(0.0, hurry=True)) == [1]


def test_a_request_that_is_too_large_is_refused_also_where_requests_are_split() -> None:
    for waiting in (queue(), queue(enable_large_batch_splitting=True, max_execution_batch_size=2)):
        with pytest.raises(ServingError) as refused:
            waiting.add(ticket(5), 0.0)
        assert refused.value.code is Code.INVALID_ARGUMENT
        assert refused.value.message == "Task size 5 is larger than maximum input batch size 4"
        assert waiting.due is None


def test_a_full_queue_refuses_at_once() -> None:
    waiting = queue(max_enqueued_batches=2)
    for _ in range(4):
        waiting.add(ticket(2), 0.0)
    with pytest.raises(ServingError) as refused:
        waiting.add(ticket(1), 0.0)
    assert refused.value.code is Code.UNAVAILABLE
    assert refused.value.message == (
        f"{FULL}currently 2 batches enqueued and max_enqueued_batches is 2"
    )
    waiting.take(0.0)
    waiting.add(ticket(1), 0.0)


def test_a_queue_of_no_length_has_one_batch() -> None:
    waiting = queue(max_enqueued_batches=0)
    waiting.add(ticket(3), 0.0)
    with pytest.raises(ServingError, match=r"currently 1 batches enqueued and .* is 1"):
        waiting.add(ticket(3), 0.0)


def test_split_requests_fill_the_open_batch_first() -> None:
    waiting = queue(
        max_batch_size=10, enable_large_batch_splitting=True, max_execution_batch_size=4
    )
    waiting.add(ticket(3), 0.0)
    waiting.add(ticket(10), 0.0)
    batches = [waiting.take(0.0) for _ in range(4)]
    assert list(map(sizes, batches)) == [[3, 1], [4], [4], [1]]
    pieces = [batches[0][1], batches[1][0], batches[2][0], batches[3][0]]
    assert [(piece.index, piece.start) for piece in pieces] == [(0, 0), (1, 1), (2, 5), (3, 9)]
    assert len({piece.ticket for piece in pieces}) == 1


def test_a_full_queue_tells_its_capacity_where_requests_are_split() -> None:
    waiting = queue(
        max_enqueued_batches=2, enable_large_batch_splitting=True, max_execution_batch_size=2
    )
    waiting.add(ticket(3), 0.0)
    with pytest.raises(ServingError) as refused:
        waiting.add(ticket(3), 0.0)
    assert refused.value.code is Code.UNAVAILABLE
    assert refused.value.message == (
        f"{FULL}task size is 3 but scheduling capacity is only 1 (num_enqueued_batches=2, "
        "max_enqueued_batches=2, open_batch_size=1, max_execution_batch_size=2)"
    )


def test_withdrawn_runs_are_left_out_and_begun_ones_stay() -> None:
    waiting = queue()
    gone, stays, alone = ticket(1), ticket(1), ticket(4)
    for each in (gone, stays, alone):
        waiting.add(each, 0.0)
    assert gone.withdraw()
    assert alone.withdraw()
    assert [piece.ticket for piece in waiting.take(0.0)] == [stays]
    assert not stays.withdraw()
    assert waiting.take(0.0) == []  # a batch of nothing is not run
    assert waiting.due is None
