"""Where a request body of known length is received, straight from the socket."""

from __future__ import annotations

from .limits import MIB

_BLANK = memoryview(bytes(MIB))
_MOVED = 8 * MIB
_ALONE = 33 * MIB
"""More than the most that glibc takes from common pages, whatever it was asked for before."""


class BodyBuffer:
    """Grows to the announced length as bytes arrive, and is handed on without a copy.

    It grows by a MiB at a time, so a client's word alone commits no more; only at ``_MOVED`` bytes
    it jumps to ``_ALONE``. An allocator such as glibc's carves out of common pages what is smaller
    and keeps what growing blocks leave there, as much as the body itself; what is larger has pages
    of its own, which the system moves and takes back.
    """

    __slots__ = ("_data", "_filled", "_length", "_view")

    def __init__(self, length: int, start: bytes | bytearray) -> None:
        self._length = length
        self._filled = len(start)
        self._data = bytearray(min(length, max(MIB, 2 * len(start))))
        self._data[: len(start)] = start
        self._view = memoryview(self._data)[len(start) :]

    def free(self) -> memoryview:
        """Where the next bytes go; never empty before the body is complete."""
        if not self._view:
            self._grow()
        return self._view

    def _grow(self) -> None:
        self._view.release()  # an exported buffer cannot be resized
        if _MOVED <= self._filled < _ALONE:
            data = bytearray(min(self._length, _ALONE))
            data[: self._filled] = self._data
            self._data = data
        else:
            self._data += _BLANK[: self._length - self._filled]
        self._view = memoryview(self._data)[self._filled :]

    def received(self, count: int) -> bool:
        """Take note of ``count`` bytes in :meth:`free`; True when the body is complete."""
        self._filled += count
        rest = self._view[count:]
        self._view.release()
        self._view = rest
        return self._filled == self._length

    def take(self) -> bytearray:
        """The complete body; the buffer is the caller's now."""
        self._view.release()
        return self._data
