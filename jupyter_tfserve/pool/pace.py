"""How long a kind of call takes: short enough for the loop's thread, or one for a worker.

Workers wait for each other's interpreter lock, so what a call took there by the clock says little:
under load, calls of microseconds take milliseconds. There only the thread's own computing counts.
A call may also wait for something else, such as a disk; that shows when it runs in the loop and
takes long by the clock although it computed little. Once may be the machine's noise; a kind that
does it again and again stays in the workers until it is seen to be short by the clock.
"""

from __future__ import annotations

SHORT_S = 0.001
"""A call that takes less than this, in seconds, may hold the loop."""
_DECAY = 0.98
"""How fast a slow call is forgotten, for each call after it."""
_WAITS = 3.0
"""So many unexplained waits make a kind one that waits."""
_FORGIVEN = 0.02
"""How much of a wait a call without one takes back."""


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

    def ran_in_loop(self, wall: float, waited: float) -> None:
        """Take note of a call in the loop's thread.

        Args:
            wall: how long it took by the clock, in seconds.
            waited: how much of that, and of the time of the calls that ran with it, the thread did
                not compute.
        """
        if wall <= SHORT_S:
            computing = wall
        else:
            computing = max(wall - waited, 0.0)
            if computing < wall / 2:
                self._waits += 1 + _FORGIVEN
        if self._waits:
            self._waits = max(self._waits - _FORGIVEN, 0.0)
        self._seconds = max(computing, self._seconds * _DECAY)

    def ran_in_worker(self, wall: float, computing: float) -> None:
        """Take note of a call in a worker."""
        if wall < SHORT_S:
            self._waits = max(self._waits - _FORGIVEN, 0.0)
        self._seconds = max(computing, self._seconds * _DECAY)
