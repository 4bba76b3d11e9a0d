"""Calls whose runs wait in a queue: how they travel, and how each of them ends."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from batched import Doubling

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.options import BatchingOptions
from jupyter_tfserve.pool.batching.service import Batching
from jupyter_tfserve.pool.call import Call
from jupyter_tfserve.pool.pace import Pace
from jupyter_tfserve.pool.scheduler import Scheduler
from jupyter_tfserve.wire import Response

if TYPE_CHECKING:
    from pathlib import Path

    from jupyter_tfserve.pool.model_run import ModelRun

HELD = "Run() timeout exceeded while waiting in batching queue"


class Predict(Call):
    """Asks for one row; answers with what came out of the run."""

    def __init__(self, servable: Doubling, value: int) -> None:
        self._servable = servable
        self._value = value
        self.threads: list[threading.Thread] = []
        self.closed = 0

    def read(self) -> ModelRun:
        self.threads.append(threading.current_thread())
        if self._value < 0:
            raise ServingError(Code.INVALID_ARGUMENT, "negative")
        return self._servable.run_of(self._value)

    def answer(self, run: ModelRun) -> Response:
        self.threads.append(threading.current_thread())
        return Response(200, json.dumps(run.outputs["y"].tolist()).encode())

    def close(self) -> None:
        self.closed += 1


class Gate:
    """Holds the model in its run."""

    def __init__(self, servable: Doubling) -> None:
        self.begun, self._release = threading.Event(), threading.Event()
        servable.before = self._before

    def _before(self) -> None:
        self.begun.set()
        assert self._release.wait(20)

    async def closed(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 20)

    def open(self) -> None:
        self._release.set()


@pytest.fixture
def batching(tmp_path: Path) -> Iterator[Batching]:
    file = tmp_path / "batching.txt"
    file.write_text("num_batch_threads { value: 1 } max_enqueued_batches { value: 1 }")
    options = BatchingOptions(enable_batching=True, batching_parameters_file=str(file))
    made = Batching(options)
    yield made
    made.close()


@pytest.fixture
def servable(batching: Batching) -> Doubling:
    made = Doubling()
    batching.attach("m", made, batching.version_parameters(""))
    made.prove()
    return made


@pytest.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    made = Scheduler(
        asyncio.get_running_loop(),
        timeout_s=20,
        max_in_flight=100,
        max_in_flight_per_model=50,
        has_queues=True,
    )
    yield made
    made.close()


class Asked:
    """A call on its way."""

    def __init__(self, scheduler: Scheduler, call: Predict, timeout_s: float = 0.0) -> None:
        self.call = call
        self._answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.give_up = scheduler.submit("kind", "m", call, self._answer.set_result, timeout_s)

    @property
    def answered(self) -> bool:
        return self._answer.done()

    async def result(self) -> tuple[int, object]:
        response = await asyncio.wait_for(self._answer, 20)
        told = json.loads(response.body)
        return response.status, told if isinstance(told, list) else told["error"]


@pytest.fixture(params=["in the loop", "in a worker"])
def ask(
    request: pytest.FixtureRequest, scheduler: Scheduler, servable: Doubling
) -> Callable[..., Asked]:
    """Ask for a row, in a call that is read in the loop's thread or in another."""
    pace = scheduler._paces["kind"] = Pace()
    while request.param == "in the loop" and not pace.is_short:
        pace.ran_in_worker(0.0, 0.0)

    def ask(value: int, timeout_s: float = 0.0) -> Asked:
        if request.param == "in a worker":
            scheduler._paces["kind"] = Pace()
        return Asked(scheduler, Predict(servable, value), timeout_s)

    return ask


async def until(probe: Callable[[], bool]) -> None:
    """Return once it holds: worker threads tell nobody that a run has come to wait."""
    async with asyncio.timeout(20):
        while not probe():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def settled(scheduler: Scheduler) -> None:
    await until(lambda: not scheduler._total)


async def test_calls_that_wait_share_a_batch_and_hold_up_nobody(
    ask: Callable[..., Asked], scheduler: Scheduler, servable: Doubling
) -> None:
    gate = Gate(servable)
    first = ask(1)
    await gate.closed()
    others = [ask(n) for n in (2, 13, 4)]
    await until(lambda: all(call.call.withdraw for call in others))
    gate.open()
    assert [await call.result() for call in (first, *others)] == [
        (200, [2]),
        (200, [4]),
        (400, "no thirteens"),
        (200, [8]),
    ]
    await settled(scheduler)
    assert [call.call.closed for call in (first, *others)] == [1] * 4
    assert scheduler._in_flight.total() == 0


async def test_gathered_calls_come_to_one_batch(scheduler: Scheduler, servable: Doubling) -> None:
    pace = scheduler._paces["kind"] = Pace()
    while not pace.is_short:
        pace.ran_in_worker(0.0, 0.0)
    gate = Gate(servable)
    first = Asked(scheduler, Predict(servable, 0))
    await gate.closed()
    scheduler.gather()
    calls = [Asked(scheduler, Predict(servable, n)) for n in (1, -1, 2)]
    scheduler.run_gathered()
    assert [call.answered for call in calls] == [False, True, False]
    gate.open()
    assert [await call.result() for call in (first, *calls)] == [
        (200, [0]),
        (200, [2]),
        (400, "negative"),
        (200, [4]),
    ]
    assert servable.batches == [[0], [1, 2]]
    loop = threading.current_thread()
    assert [call.call.threads[0] is loop for call in calls] == [True] * 3
    assert calls[0].call.threads[1] is not loop
    assert pace.is_short


async def test_a_call_whose_time_is_up_in_the_queue_is_answered_429(
    ask: Callable[..., Asked], scheduler: Scheduler, servable: Doubling
) -> None:
    gate = Gate(servable)
    first = ask(1)
    await gate.closed()
    late = ask(2, timeout_s=0.05)
    assert await late.result() == (429, HELD)
    assert late.call.closed == 1
    gate.open()
    assert await first.result() == (200, [2])
    await settled(scheduler)
    assert late.call.closed == 1
    assert servable.batches == [[1]]


async def test_a_call_whose_time_is_up_in_its_batch_is_answered_504(
    ask: Callable[..., Asked], scheduler: Scheduler, servable: Doubling
) -> None:
    gate = Gate(servable)
    late = ask(1, timeout_s=0.05)
    assert await late.result() == (504, "Timed out waiting for notification")
    assert gate.begun.is_set()
    assert not late.call.closed  # its model is still at it
    gate.open()
    await settled(scheduler)
    assert late.call.closed == 1


async def test_a_full_queue_answers_503_at_once(
    ask: Callable[..., Asked], scheduler: Scheduler, servable: Doubling, batching: Batching
) -> None:
    assert batching.parameters is not None
    gate = Gate(servable)
    first = ask(1)
    await gate.closed()
    servable.run_of = lambda value: Doubling.run_of(servable, *[value] * 600)
    waits = ask(2)
    await until(lambda: waits.call.withdraw is not None)
    status, text = await ask(3).result()
    assert status == 503
    assert text == (
        "The batch scheduling queue to which this task was submitted is full; currently 1 batches "
        "enqueued and max_enqueued_batches is 1"
    )
    gate.open()
    assert (await first.result())[0] == 200
    assert (await waits.result())[0] == 200
    await settled(scheduler)


async def test_limits_hold_for_calls_that_wait(scheduler: Scheduler, servable: Doubling) -> None:
    pace = scheduler._paces["kind"] = Pace()
    while not pace.is_short:
        pace.ran_in_worker(0.0, 0.0)
    gate = Gate(servable)
    calls = [Asked(scheduler, Predict(servable, n)) for n in range(20, 70)]
    refused = Asked(scheduler, Predict(servable, 70))
    assert await refused.result() == (429, "50 requests are in flight, the limit of the model m")
    assert refused.call.closed == 1
    gate.open()
    assert [await call.result() for call in calls] == [(200, [2 * n]) for n in range(20, 70)]


async def test_a_call_that_is_given_up_leaves_the_queue(
    scheduler: Scheduler, servable: Doubling
) -> None:
    gate = Gate(servable)
    first = Asked(scheduler, Predict(servable, 1))
    await gate.closed()
    scheduler._paces["kind"] = Pace()
    gone = Asked(scheduler, Predict(servable, 2))
    assert gone.give_up is not None
    await until(lambda: gone.call.withdraw is not None)
    gone.give_up()
    assert gone.call.closed == 1
    gate.open()
    assert await first.result() == (200, [2])
    await settled(scheduler)
    assert not gone.answered
    assert servable.batches == [[1]]


async def test_what_cannot_be_batched_waits_for_nobody(
    ask: Callable[..., Asked], servable: Doubling
) -> None:
    assert "scalar" not in servable.batching.mergeable
    gate = Gate(servable)
    first = ask(1)
    await gate.closed()
    servable.before = lambda: None
    servable.run_of = lambda value: Doubling.run_of(servable, value, signature="scalar")
    assert await ask(3).result() == (200, [6])
    gate.open()
    assert await first.result() == (200, [2])
