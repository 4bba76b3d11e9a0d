"""Short calls that arrived together, run together in the loop's thread, step by step.

Reading all, running all, then answering all takes about half the time of serving one after the
other: each step's code and data stay in the processor's nearest caches. Runs that may be merged
are.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from .batching.greedy import by_key, run_merged
from .call import Call, failure
from .pace import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)


def run_turn(calls: Sequence[Call], defer: Callable[[Call], bool] | None = None) -> None:
    """Run calls to their answers, tell their paces how long each took, then respond to each.

    ``defer`` is asked of each that has been read: it takes those whose runs are to wait for others,
    and sees to the rest of them.
    """
    watch = Watch()
    now = time.perf_counter()
    for call in calls:
        call.response = None
        call.seconds = 0.0
    now = _take(_read, calls, now)
    if defer is not None:
        calls = [call for call in calls if call.response is not None or not _leaves(call, defer)]
    alone, merged = by_key(calls)
    now = _take(_run, alone, now)
    for group in merged:
        now = _run_group(group, now)
    _take(_answer, calls, now)
    idle, waited = watch.read()
    for call in calls:
        call.close()
        call.pace.ran_in_loop(call.seconds, idle, waited=waited)
        assert call.response is not None
        try:
            call.respond(call.response)
        except Exception:
            log.exception("An answer could not be passed on")


def _take(step: Callable[[Call], None], calls: Sequence[Call], then: float) -> float:
    """Take a step of each call that has not failed; from ``then`` to the time returned."""
    clock = time.perf_counter
    for call in calls:
        if call.response is None:
            try:
                step(call)
            except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told
                call.response = failure(error)
        now = clock()
        call.seconds += now - then
        then = now
    return then


def _read(call: Call) -> None:
    call.run = call.read()


def _leaves(call: Call, defer: Callable[[Call], bool]) -> bool:
    # Once it waits its end may come in another thread, so what is noted of it is noted now.
    seconds, pace = call.seconds, call.pace
    try:
        leaves = defer(call)
    except Exception as error:  # noqa: BLE001
        call.response = failure(error)
        return False
    if leaves:
        pace.ran_in_loop(seconds, 0.0, waited=False)
    return leaves


def _run(call: Call) -> None:
    call.run.run()


def _run_group(calls: Sequence[Call], then: float) -> float:
    """Run a group as one; each bears its share of the time."""
    for call, error in zip(calls, run_merged([call.run for call in calls]), strict=True):
        if error is not None:
            call.response = failure(error)
    now = time.perf_counter()
    for call in calls:
        call.seconds += (now - then) / len(calls)
    return now


def _answer(call: Call) -> None:
    call.response = call.answer(call.run)
