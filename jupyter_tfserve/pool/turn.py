"""Short calls that arrived together, run together in the loop's thread, step by step.

Reading all, running all, then answering all takes about half the time of serving one after the
other: each step's code and data stay in the processor's nearest caches.
"""

from __future__ import annotations

import logging
import time
from operator import methodcaller
from typing import TYPE_CHECKING

from .call import Call, failure
from .pace import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)


_read, _run = methodcaller("read"), methodcaller("run")


def run_turn(calls: Sequence[Call]) -> None:
    """Run calls to their answers, tell their paces how long each took, then respond to each."""
    watch = Watch()
    for call in calls:
        call.response = None
        call.seconds = 0.0
    now = time.perf_counter()
    for step in _read, _run, _answer:
        now = _take(step, calls, now)
    idle, waited = watch.read()
    for call in calls:
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
        if step is _answer:
            call.close()
        now = clock()
        call.seconds += now - then
        then = now
    return then


def _answer(call: Call) -> None:
    call.response = call.answer()
