"""Calls are answered exactly once, in the loop's thread, within their limits."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.call import Call
from jupyter_tfserve.pool.scheduler import Scheduler
from jupyter_tfserve.wire import Response


class Work:
    """Stands for the run of a model."""

    queues = None

    def __init__(self, work: Callable[[], Response], key: object = None) -> None:
        self.work = work
        self._key = key

    def key(self) -> object:
        return self._key

    def run(self) -> None:
        self.result = self.work()


class Function(Call):
    """A call whose one step of work is a function."""

    def __init__(self, work: Callable[[], Response]) -> None:
        self.work = work
        self.closed = 0

    def read(self) -> Work:
        return Work(self.work)

    def answer(self, run: Work) -> Response:
        return run.result

    def close(self) -> None:
        self.closed += 1


OK = Response(200, b"{}")
FAILED = Response(500)


@pytest.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    made = Scheduler(
        asyncio.get_running_loop(), timeout_s=20, max_in_flight=4, max_in_flight_per_model=2
    )
    yield made
    made.close()


def waiting() -> tuple[asyncio.Future[Response], Callable[[Response], None]]:
    future = asyncio.get_running_loop().create_future()
    return future, future.set_result


async def all_done(scheduler: Scheduler) -> None:
    async with asyncio.timeout(20):
        while scheduler._total:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def answer(scheduler: Scheduler, kind: str, work: Callable[[], Response]) -> Response:
    future, respond = waiting()
    scheduler.submit(kind, "m", Function(work), respond)
    return await asyncio.wait_for(future, 20)


async def test_short_calls_come_to_run_in_the_loops_own_thread(scheduler: Scheduler) -> None:
    threads = []

    def work() -> Response:
        threads.append(threading.current_thread())
        return OK

    for _ in range(1000):
        assert await answer(scheduler, "short", work) is OK
        if threads[-1] is threading.current_thread():
            break
    assert threads[0] is not threading.current_thread()
    assert threads[-1] is threading.current_thread()


async def test_a_slow_call_does_not_hold_the_loop(scheduler: Scheduler) -> None:
    release = threading.Event()
    future, respond = waiting()
    scheduler.submit("slow", "m", Function(lambda: OK if release.wait(20) else FAILED), respond)
    assert await answer(scheduler, "other", lambda: OK) is OK
    assert not future.done()
    release.set()
    assert await asyncio.wait_for(future, 20) is OK


async def test_refusals_become_answers(scheduler: Scheduler) -> None:
    def refuse() -> Response:
        raise ServingError(Code.NOT_FOUND, "no such thing")

    response = await answer(scheduler, "refused", refuse)
    assert response.status == 404
    assert json.loads(response.body) == {"error": "no such thing"}


async def test_an_unforeseen_failure_is_told_in_a_line_and_logged(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> Response:
        return 1 / 0  # type: ignore[return-value]

    response = await answer(scheduler, "failing", fail)
    assert response.status == 500
    assert json.loads(response.body) == {"error": "ZeroDivisionError: division by zero"}
    assert "Traceback" in caplog.text


async def test_a_call_beyond_its_time_is_answered_504_and_only_once(scheduler: Scheduler) -> None:
    release = threading.Event()
    responses: list[Response] = []
    first = asyncio.Event()

    def respond(response: Response) -> None:
        responses.append(response)
        first.set()

    def work() -> Response:
        release.wait(20)
        return OK

    scheduler.submit("slow", "m", Function(work), respond, timeout_s=0.05)
    await asyncio.wait_for(first.wait(), 20)
    release.set()
    await all_done(scheduler)
    assert [r.status for r in responses] == [504]


async def test_a_call_given_up_is_not_answered_and_frees_its_place(scheduler: Scheduler) -> None:
    release = threading.Event()
    answered: list[Response] = []
    give_up = scheduler.submit(
        "slow", "m", Function(lambda: OK if release.wait(20) else FAILED), answered.append
    )
    assert give_up is not None
    give_up()
    release.set()
    await all_done(scheduler)
    assert answered == []


async def test_limits_name_themselves_and_lift_again(scheduler: Scheduler) -> None:
    release = threading.Event()
    futures = []

    def submit(model: str) -> asyncio.Future[Response]:
        future, respond = waiting()
        scheduler.submit(
            f"slow {model}",
            model,
            Function(lambda: OK if release.wait(20) else FAILED),
            respond,
        )
        futures.append(future)
        return future

    submit("a"), submit("a")
    refused = await submit("a")
    assert refused.status == 429
    assert b"2 requests are in flight, the limit of the model a" in refused.body
    submit("b"), submit("b")
    refused = await submit("c")
    assert b"4 requests are in flight, the limit of the pool" in refused.body
    release.set()
    async with asyncio.timeout(20):
        await asyncio.gather(*futures)
    assert (await answer(scheduler, "again", lambda: OK)).status == 200


async def test_kinds_are_forgotten_before_they_fill_the_memory(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_tfserve.pool.scheduler._MAX_KINDS", 50)
    for number in range(200):
        await answer(scheduler, str(number), lambda: OK)
    assert len(scheduler._paces) <= 50


async def test_two_slow_calls_of_a_model_overlap(scheduler: Scheduler) -> None:
    both = threading.Barrier(2, timeout=20)

    def meet() -> Response:
        both.wait()
        return OK

    start = time.monotonic()
    answers = await asyncio.gather(answer(scheduler, "slow", meet), answer(scheduler, "slow", meet))
    assert answers == [OK, OK]
    assert time.monotonic() - start < 20


async def known_for_short(scheduler: Scheduler) -> None:
    while not scheduler._paces["short"].is_short if "short" in scheduler._paces else True:
        await answer(scheduler, "short", lambda: OK)


async def test_gathered_calls_take_each_step_together(scheduler: Scheduler) -> None:
    await known_for_short(scheduler)
    steps: list[str] = []

    class Step(Function):
        def read(self) -> Work:
            steps.append("read")
            return super().read()

        def answer(self, run: Work) -> Response:
            steps.append("answer")
            return super().answer(run)

    calls = [Step(lambda: OK), Step(lambda: FAILED)]
    responses: list[Response] = []
    scheduler.gather()
    for call in calls:
        scheduler.submit("short", "m", call, responses.append)
    assert not responses
    scheduler.run_gathered()
    assert steps == ["read", "read", "answer", "answer"]
    assert responses == [OK, FAILED]
    assert [call.closed for call in calls] == [1, 1]


async def test_a_failing_step_fails_its_own_call_only(scheduler: Scheduler) -> None:
    await known_for_short(scheduler)

    class Unreadable(Function):
        def read(self) -> Work:
            raise ServingError(Code.INVALID_ARGUMENT, "no JSON")

    def refuse() -> Response:
        raise ServingError(Code.NOT_FOUND, "no such thing")

    calls = [Function(lambda: OK), Unreadable(lambda: OK), Function(refuse), Function(lambda: OK)]
    responses: list[Response] = []
    scheduler.gather()
    for call in calls:
        scheduler.submit("short", "m", call, responses.append)
    scheduler.run_gathered()
    assert [response.status for response in responses] == [200, 400, 404, 200]
    assert [call.closed for call in calls] == [1, 1, 1, 1]


async def test_what_an_answer_brings_along_is_run_as_well(scheduler: Scheduler) -> None:
    await known_for_short(scheduler)
    responses: list[Response] = []

    def respond(response: Response) -> None:
        responses.append(response)
        if len(responses) < 200:
            scheduler.submit("short", "m", Function(lambda: OK), respond)

    scheduler.gather()
    scheduler.submit("short", "m", Function(lambda: OK), respond)
    scheduler.run_gathered()
    assert len(responses) == 200
