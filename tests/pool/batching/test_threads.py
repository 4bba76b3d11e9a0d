"""Batches are run by threads, as soon as they are due, and none is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from batched import Caller, Doubling

from jupyter_tfserve.pool.batching.parameters import BatchingParameters
from jupyter_tfserve.pool.batching.queues import VersionQueues
from jupyter_tfserve.pool.batching.threads import BatchThreads
from jupyter_tfserve.pool.batching.version import Mode, VersionBatching


@pytest.fixture
def threads() -> Iterator[BatchThreads]:
    made = BatchThreads(1, "batch")
    yield made
    made.close()
    assert not any(thread.is_alive() for thread in made._threads)


def batched(threads: BatchThreads, **parameters: int) -> Doubling:
    servable = Doubling()
    servable.batching = VersionBatching()
    queues = VersionQueues(servable, BatchingParameters(**parameters), threads)
    servable.batching.switch(Mode.QUEUE, servable.why_not_batched(), queues)
    servable.prove()
    return servable


def submit(servable: Doubling, *rows: int) -> Caller:
    caller = Caller(servable.run_of(*rows))
    caller.withdraw = servable.batching.queues.submit(caller.run, caller.run.key(), caller)
    return caller


def held(servable: Doubling) -> tuple[threading.Event, threading.Event]:
    """Make the model wait in its first run; returns when that has begun, and what ends it."""
    begun, release = threading.Event(), threading.Event()

    def before() -> None:
        begun.set()
        assert release.wait(20)

    servable.before = before
    return begun, release


def test_what_comes_while_a_batch_runs_is_the_next_one(threads: BatchThreads) -> None:
    servable = batched(threads)
    begun, release = held(servable)
    first = submit(servable, 1)
    assert begun.wait(20)
    others = [submit(servable, n) for n in (2, 3, 4)]
    release.set()
    assert [caller.outcome for caller in (first, *others)] == [[2], [4], [6], [8]]
    assert servable.batches == [[1], [2, 3, 4]]


def test_models_take_turns(threads: BatchThreads) -> None:
    busy, other = batched(threads, max_batch_size=1), batched(threads)
    order: list[str] = []
    begun, release = held(busy)
    callers = [submit(busy, 1)]
    assert begun.wait(20)
    busy.before = lambda: order.append("busy")
    other.before = lambda: order.append("other")
    callers += [submit(busy, 2), submit(busy, 3), submit(other, 4)]
    release.set()
    for caller in callers:
        assert caller.outcome
    assert order == ["busy", "other", "busy"]


def test_a_batch_that_waits_for_more_is_run_when_its_time_is_up(threads: BatchThreads) -> None:
    servable = batched(threads, batch_timeout_micros=50_000)
    callers = [submit(servable, 1), submit(servable, 2)]
    assert [caller.outcome for caller in callers] == [[2], [4]]
    assert servable.batches == [[1, 2]]


def test_a_full_batch_waits_for_nothing(threads: BatchThreads) -> None:
    servable = batched(threads, batch_timeout_micros=3_600_000_000, max_batch_size=2)
    assert submit(servable, 1, 2).outcome == [2, 4]


def test_a_run_can_be_withdrawn_until_its_batch_begins(threads: BatchThreads) -> None:
    servable = batched(threads)
    begun, release = held(servable)
    first = submit(servable, 1)
    assert begun.wait(20)
    second, third = submit(servable, 2), submit(servable, 3)
    assert not first.withdraw()
    assert second.withdraw()
    release.set()
    assert [first.outcome, third.outcome] == [[2], [6]]
    assert servable.batches == [[1], [3]]
    assert not third.withdraw()


def test_what_waits_at_the_end_is_run(threads: BatchThreads) -> None:
    servable = batched(threads, batch_timeout_micros=3_600_000_000)
    caller = submit(servable, 1)
    threads.close()
    assert caller.outcome == [2]


def test_several_threads_run_batches_at_a_time() -> None:
    threads = BatchThreads(2, "batch")
    servable = batched(threads, max_batch_size=1)
    both = threading.Barrier(2, timeout=20)
    servable.before = lambda: both.wait() and None
    callers = [submit(servable, 1), submit(servable, 2)]
    assert [caller.outcome for caller in callers] == [[2], [4]]
    threads.close()
