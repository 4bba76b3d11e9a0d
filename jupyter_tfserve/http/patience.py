"""How long a connection may keep the server waiting."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .limits import Limits


class Wait(Enum):
    """What a connection waits for."""

    REQUEST = auto()
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()  # the application bounds its own time
    READER = auto()  # the client's taking what was answered
    GOODBYE = auto()  # the client's closing after the last answer


class Patience:
    """Times one connection's waits by being asked now and then, so that requests need no timers."""

    __slots__ = ("_limits", "_mark", "_serial", "_since", "_wait")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._wait: Wait | None = None
        self._serial = 0
        self._since = 0.0
        self._mark = 0

    def is_over(self, wait: Wait, serial: int, count: int, now: float) -> bool:
        """Whether a wait has lasted too long.

        A wait begins when it is first seen. ``serial`` tells it from the same kind of wait in
        another request; ``count`` is the bytes moved so far, from which progress is seen.
        """
        if wait is not self._wait or serial != self._serial:
            self._wait, self._serial = wait, serial
            self._since, self._mark = now, count
            return False
        if wait is Wait.ANSWER or now - self._since < self._timeout(wait):
            return False
        progress = count - self._mark
        if wait in (Wait.BODY, Wait.READER) and progress >= self._limits.min_progress_bytes:
            self._since, self._mark = now, count
            return False
        return True

    def _timeout(self, wait: Wait) -> float:
        limits = self._limits
        match wait:
            case Wait.HEAD:
                return limits.header_timeout_s
            case Wait.BODY:
                return limits.body_stall_timeout_s
            case Wait.READER:
                return limits.write_stall_timeout_s
            case Wait.GOODBYE:
                return limits.linger_timeout_s
            case _:
                return limits.idle_timeout_s
