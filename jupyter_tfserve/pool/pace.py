"""How long a kind of call takes: short enough for the loop's thread, or one for a worker.

Workers wait for each other's interpreter lock, so what a call took there by the clock says little:
under load, calls of microseconds take milliseconds. There only the thread's own computing counts.
A call may also wait for something else, such as a disk; that shows when it runs in the loop and
takes long by the clock although it computed little. Once may be chance; a kind that does it again
and again stays in the workers until it is seen to be short by the clock.
"""

from __future__ import annotations

import resource
import time

SHORT_S = 0.001
"""A call that takes less than this, in seconds, may hold the loop."""
_LONG_S = 0.05
"""No call counts for more, so that a first one that took seconds is forgotten in 200 calls."""
_DECAY = 0.98
"""How fast a slow call is forgotten, for each call after it."""
_WAITS = 3.0
"""So many unexplained waits make a kind one that waits."""
_FORGIVEN = 0.02
"""How much of a wait a call without one takes back."""


# Linux counts for each thread; elsewhere waits of other threads may be taken for this one's.
_WHO = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def _usage() -> tuple[float, int]:
    """How long this thread has computed, in seconds, and how often it has waited of itself.

    Being made to wait by a busy machine does not count.
    """
    return time.thread_time(), resource.getrusage(_WHO).ru_nvcsw


class Watch:
    """Measures what the current thread does, from its making on."""

    __slots__ = ("_computed", "_since", "_waits")

    def __init__(self) -> None:
        self._computed, self._waits = _usage()
        self._since = time.perf_counter()

    def read(self) -> tuple[float, bool]:
        """Seconds in which the thread did not compute, and whether it waited of itself."""
        wall = time.perf_counter() - self._since
        computed, waits = _usage()
        return wall - (computed - self._computed), waits != self._waits


class Pace:
    """The recent calls of one kind; a new kind is not taken for short."""

    __slots__ = ("_seconds", "_waits")

    def __init__(self) -> None:
        self._seconds = SHORT_S
        self._waits = 0.0

    @property
    def is_short(self) -> bool:
        """Whether the next call may run in the loop's thread."""
        return self._seconds < SHORT_S and self._waits < _WAITS

    def ran_in_loop(self, wall: float, idle: float, *, waited: bool) -> None:
        """Take note of a call in the loop's thread.

        Args:
            wall: how long it took by the clock, in seconds.
            idle: for how much of that, and of the time of the calls that ran with it, the thread
                did not compute.
            waited: whether it waited of itself meanwhile; see :class:`Watch`.
        """
        computing = wall if wall <= SHORT_S else max(wall - idle, 0.0)
        if waited and computing < wall / 2:
            self._waits += 1
        elif self._waits:
            self._waits = max(self._waits - _FORGIVEN, 0.0)
        self._seconds = max(min(computing, _LONG_S), self._seconds * _DECAY)

    def ran_in_worker(self, wall: float, computing: float) -> None:
        """Take note of a call in a worker."""
        if wall < SHORT_S:
            self._waits = max(self._waits - _FORGIVEN, 0.0)
        self._seconds = max(min(computing, _LONG_S), self._seconds * _DECAY)
