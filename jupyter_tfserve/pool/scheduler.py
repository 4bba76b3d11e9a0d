"""Where a call runs: in the loop's own thread when it was measured short, else in a worker.

Handing a call to another thread costs more than a small model takes; running a long one in the
loop would delay everybody. So every kind of call is timed (see :mod:`.pace`). Nothing is known
about a new kind: it starts in a worker.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Code, ServingError
from .batching.deferral import queue_of, wait_in
from .call import Call, error_response
from .pace import Pace
from .turn import run_turn
from .workers import Workers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable
    from concurrent.futures import Future

    from ..wire import Response

_MAX_KINDS = 10_000
"""Kinds come from request lines, so their number is bounded."""
_WAITED = "Run() timeout exceeded while waiting in batching queue"
_MAX_TURN = 64
"""So many short calls hold the loop at a time, and what they have read is in memory."""


class _Pending:
    """A call that ends later: answered once, by its end or by the end of its time."""

    __slots__ = ("_call", "_finished", "_respond", "future", "timer")

    def __init__(
        self, call: Call, respond: Callable[[Response], None], finished: Callable[[], None]
    ) -> None:
        self._call = call
        self._respond: Callable[[Response], None] | None = respond
        self._finished = finished
        self.timer: asyncio.TimerHandle | None = None
        self.future: Future[None] | None = None

    def finish(self, response: Response) -> None:
        """The call has been run."""
        self._finished()
        self._answer(response)

    def expire(self) -> None:
        """Its time is up."""
        # The words of TensorFlow Serving's batching, and of a session run that is out of time.
        if self._leave_queue():
            code, text = Code.RESOURCE_EXHAUSTED, _WAITED
        else:
            code, text = Code.DEADLINE_EXCEEDED, "Timed out waiting for notification"
        self._answer(error_response(ServingError(code, text)))
        self._drop()

    def give_up(self) -> None:
        """Nobody waits for it any more."""
        self._take_respond()
        self._leave_queue()
        self._drop()

    def undo(self) -> None:
        """It does not come to wait at all; somebody else answers it."""
        self._take_respond()
        self._finished()

    def _answer(self, response: Response) -> None:
        respond = self._take_respond()
        if respond is not None:
            respond(response)

    def _take_respond(self) -> Callable[[Response], None] | None:
        if self.timer is not None:
            self.timer.cancel()
        respond, self._respond = self._respond, None
        return respond

    def _leave_queue(self) -> bool:
        """Whether its run was still waiting for a batch, and waits no longer."""
        withdraw = self._call.withdraw
        if withdraw is None or not withdraw():
            return False
        self._call.close()
        self._finished()
        return True

    def _drop(self) -> None:
        """Spare a worker the work if it has not begun it."""
        if self.future is not None and self.future.cancel():
            self._finished()


class Scheduler:
    """Runs calls and answers each exactly once, in the loop's thread.

    All methods are called in the loop's thread; the calls themselves run in any.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        timeout_s: float,
        max_in_flight: int,
        max_in_flight_per_model: int,
        num_threads: int = 0,
        has_queues: bool = False,
    ) -> None:
        """Take part in a loop.

        Args:
            loop: where calls come from and answers go to.
            timeout_s: each call's time; 0 is none.
            max_in_flight: calls admitted and not yet finished.
            max_in_flight_per_model: the same of one model.
            num_threads: there for long calls; see :class:`.workers.Workers`.
            has_queues: whether runs may wait in a queue for others; see :mod:`.batching`.
        """
        self._loop = loop
        self._timeout_s = timeout_s
        self._max_in_flight = max_in_flight
        self._max_in_flight_per_model = max_in_flight_per_model
        self._in_flight: Counter[str] = Counter()
        self._total = 0
        self._paces: dict[Hashable, Pace] = {}
        self._short: list[Call] = []
        self._gathering = False
        self._workers = Workers(num_threads)
        self._defer = self._into_queue if has_queues else None

    @property
    def in_flight(self) -> int:
        """Calls handed to the workers and not yet finished."""
        return self._total

    @property
    def queue_depth(self) -> int:
        """Calls that wait for a worker."""
        return self._workers.queue_depth

    def gather(self) -> None:
        """Let short calls wait for each other until :meth:`run_gathered`, which must follow."""
        self._gathering = True

    def run_gathered(self) -> None:
        """Run the short calls submitted since :meth:`gather`, and any that come of it."""
        while self._short:
            calls, self._short = self._short, []
            run_turn(calls, self._defer)
        self._gathering = False

    def submit(
        self,
        kind: Hashable,
        model: str,
        call: Call,
        respond: Callable[[Response], None],
        timeout_s: float = 0.0,
    ) -> Callable[[], None] | None:
        """Run ``call`` and respond with its answer, or with 504 once the time is up.

        Args:
            kind: calls of one kind are expected to take about equally long.
            model: the name whose limit the call counts against.
            call: what to run.
            respond: called once in the loop's thread, possibly before this returns.
            timeout_s: the caller's own limit in seconds; 0 is none.

        Returns:
            A function that gives the call up: ``respond`` is then not called any more. None where
            there is nothing to give up: a short call is answered before other events are seen,
            unless its run waits in a queue.
        """
        pace = self._paces.get(kind)
        if pace is None:
            pace = self._new_pace(kind)
        elif pace.is_short:
            call.pace = pace
            call.respond = respond
            if self._defer is not None:
                call.model, call.timeout_s = model, timeout_s
            if not self._gathering:
                run_turn((call,), self._defer)
            else:
                self._short.append(call)
                if len(self._short) >= _MAX_TURN:
                    calls, self._short = self._short, []
                    run_turn(calls, self._defer)
            return None
        if refusal := self._refusal(model):
            respond(error_response(refusal))
            return None
        return self._hand_over(pace, model, call, respond, timeout_s)

    def _refusal(self, model: str) -> ServingError | None:
        if self._total >= self._max_in_flight:
            limit, what = self._max_in_flight, "pool"
        elif self._in_flight[model] >= self._max_in_flight_per_model:
            limit, what = self._max_in_flight_per_model, f"model {model}"
        else:
            return None
        return ServingError(
            Code.RESOURCE_EXHAUSTED, f"{limit} requests are in flight, the limit of the {what}"
        )

    def _new_pace(self, kind: Hashable) -> Pace:
        if len(self._paces) >= _MAX_KINDS:
            self._paces.clear()
        pace = self._paces[kind] = Pace()
        return pace

    def _hand_over(
        self,
        pace: Pace,
        model: str,
        call: Call,
        respond: Callable[[Response], None],
        timeout_s: float,
    ) -> Callable[[], None]:
        pending = self._admit(call, model, respond, timeout_s)
        call.pace = pace
        pending.future = self._workers.submit(call, partial(self._tell, pending))
        return pending.give_up

    def _admit(
        self, call: Call, model: str, respond: Callable[[Response], None], timeout_s: float
    ) -> _Pending:
        """Count a call among those in flight, and limit its time."""
        self._total += 1
        self._in_flight[model] += 1
        call.withdraw = None
        pending = _Pending(call, respond, partial(self._finished, model))
        limits = [limit for limit in (self._timeout_s, timeout_s) if limit > 0]
        if limits:
            pending.timer = self._loop.call_later(min(limits), pending.expire)
        return pending

    def _tell(self, pending: _Pending, response: Response) -> None:
        self._loop.call_soon_threadsafe(pending.finish, response)

    def _into_queue(self, call: Call) -> bool:
        """Let the run of a short call wait for others, if it is to.

        Raises:
            ServingError: why it may not.
        """
        queue = queue_of(call.run)
        if queue is None:
            return False
        if refusal := self._refusal(call.model):
            raise refusal
        pending = self._admit(call, call.model, call.respond, call.timeout_s)
        try:
            wait_in(queue, call, partial(self._tell, pending))
        except ServingError:
            pending.undo()
            raise
        return True

    def _finished(self, model: str) -> None:
        self._total -= 1
        self._in_flight[model] -= 1
        if not self._in_flight[model]:
            del self._in_flight[model]

    def close(self) -> None:
        """Start nothing more; calls that run are left to end by themselves."""
        self._workers.close()
