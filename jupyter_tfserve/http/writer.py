"""The sending half of a connection: few writes, no copies of large bodies, bounded buffers."""

from __future__ import annotations

import asyncio
from collections import deque

from .limits import KIB

_PIECE = 256 * KIB
"""The transport is never given more at a time, so it never holds much more."""


class Writer:
    """Queues buffers and hands them to the transport as the client takes them."""

    __slots__ = ("_given", "_queue", "_queued", "_transport", "writable")

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=_PIECE)
        self._transport = transport
        self._queue: deque[bytes | memoryview] = deque()
        self._queued = 0  # bytes in the queue
        self._given = 0  # bytes handed to the transport
        self.writable = True  # kept by the protocol's pause_writing and resume_writing

    @property
    def full(self) -> bool:
        """Whether no more should be appended before the client has taken some."""
        if self._queued > _PIECE:
            self.flush()
        return not self.writable

    @property
    def busy(self) -> bool:
        """Whether anything is still to be taken by the client's side."""
        return bool(self._queue) or self._transport.get_write_buffer_size() > 0

    @property
    def sent(self) -> int:
        """Bytes taken by the client's side so far."""
        return self._given - self._transport.get_write_buffer_size()

    def append(self, data: bytes | memoryview) -> None:
        """Queue one buffer; what is larger than a piece must be a memoryview of bytes."""
        self._queue.append(data)
        self._queued += len(data)

    def flush(self) -> bool:
        """Hand on what the transport takes; True when nothing is left in the queue."""
        queue = self._queue
        while queue and self.writable:
            data = queue.popleft()
            if len(data) > _PIECE:
                queue.appendleft(data[_PIECE:])
                data = data[:_PIECE]
            elif queue:
                data = self._joined(data)
            self._queued -= len(data)
            self._given += len(data)
            self._transport.write(data)
        return not queue

    def _joined(self, first: bytes | memoryview) -> bytes:
        """``first`` and all of the queue that fits with it into one piece."""
        parts, size = [first], len(first)
        while self._queue and size + len(self._queue[0]) <= _PIECE:
            parts.append(self._queue.popleft())
            size += len(parts[-1])
        return b"".join(parts)

    def clear(self) -> None:
        """Forget what is queued."""
        self._queue.clear()
        self._queued = 0
