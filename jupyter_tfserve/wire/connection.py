"""One framed connection over asyncio, the same at both ends.

Small frames are gathered and written once for each turn of the loop, answers to what has just been
read at the end of that reading. A large payload is received straight into a buffer of its own size.
Sizes are checked before anything is allocated.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from .messages import HEADER, MAX_FRAME, Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

_BUFFER_SIZE = 1 << 18
_MAX_FRAME_BEFORE_TRUST = 4096
"""Until the handshake is done a peer may send no more than this in one frame, in bytes."""

Buffer = bytes | bytearray | memoryview


class FrameHandler(Protocol):
    """Who is told what arrives. All calls come in the loop's thread and must not block."""

    def connection_made(self, connection: Connection) -> None:
        """The socket is open; nothing has been read yet."""

    def frame_received(
        self,
        connection: Connection,
        kind: int,
        flags: int,
        exchange: int,
        payload: bytes | bytearray,
    ) -> None:
        """One whole frame. A ValueError raised here closes the connection."""

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        """The connection is gone, whoever ended it. Called once."""


def _nothing() -> None:
    pass


class Connection(asyncio.BufferedProtocol):
    """Frames in and out over one socket.

    ``before_turn`` and ``after_turn`` are called around the delivery of frames that have come
    together.
    """

    def __init__(
        self,
        handler: FrameHandler,
        *,
        before_turn: Callable[[], None] = _nothing,
        after_turn: Callable[[], None] = _nothing,
    ) -> None:
        self._handler = handler
        self._before_turn = before_turn
        self._after_turn = after_turn
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray(_BUFFER_SIZE)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0  # what of the buffer is received but not yet consumed
        self._large: bytearray | None = None  # a payload that does not fit the buffer
        self._large_end = 0
        self._large_head: tuple[int, int, int] = (0, 0, 0)
        self._out: list[Buffer] = []
        self._consuming = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._max_frame = _MAX_FRAME_BEFORE_TRUST
        self.closed = False

    # Life

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio: the socket is open."""
        self._transport = cast("asyncio.Transport", transport)
        self._handler.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio: the socket is gone."""
        self.closed = True
        self._writable.set()
        self._out.clear()
        self._handler.connection_lost(self, exc)

    def trust(self) -> None:
        """The handshake is done: frames of full size may come."""
        self._max_frame = MAX_FRAME

    def close(self) -> None:
        """Write what is waiting, then close; nothing more is sent."""
        if not self.closed and self._transport is not None:
            self.flush()
            self.closed = True
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever is waiting."""
        if self._transport is not None:
            self.closed = True
            self._transport.abort()

    # Out

    def send(self, kind: Kind, exchange: int, *parts: Buffer, flags: Flag = Flag.NONE) -> None:
        """Send one frame; on a closed connection it is dropped, as the peer is gone.

        Raises:
            ValueError: where the payload is larger than any peer accepts.
        """
        if self.closed:
            return
        length = sum(map(len, parts))
        if length > MAX_FRAME:
            raise ValueError(f"a frame of {length} bytes is over the limit of {MAX_FRAME}")
        if not self._out and not self._consuming:
            self._loop.call_soon(self.flush)
        self._out.append(HEADER.pack(length, kind, flags, 0, exchange))
        self._out.extend(parts)

    def flush(self) -> None:
        """Write now what was sent, where nothing else is going to be sent in this turn."""
        if self._out and self._transport is not None and not self.closed:
            out, self._out = self._out, []
            self._transport.write(b"".join(out))

    def pause_writing(self) -> None:
        """Asyncio: the peer reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Asyncio: the peer has caught up."""
        self._writable.set()

    async def drain(self) -> None:
        """Wait until the peer has taken most of what was sent: the back-pressure of streams.

        Raises:
            ConnectionError: where the peer is gone.
        """
        self.flush()
        await self._writable.wait()
        if self.closed:
            raise ConnectionResetError("the peer is gone")

    # In

    def pause_reading(self) -> None:
        """Take no more from the peer until :meth:`resume_reading`."""
        if self._transport is not None and not self.closed:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._transport is not None and not self.closed:
            self._transport.resume_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Asyncio: where to put the next bytes."""
        if self._large is not None:
            return memoryview(self._large)[self._large_end :]
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """Asyncio: bytes have arrived."""
        self._consuming = True
        self._before_turn()
        try:
            if self._large is not None:
                self._large_end += nbytes
                if self._large_end == len(self._large):
                    payload, self._large = self._large, None
                    self._deliver(*self._large_head, payload)
            else:
                self._end += nbytes
                self._consume()
        except ValueError:
            self.abort()
        finally:
            self._after_turn()
            self._consuming = False
        self.flush()

    def eof_received(self) -> bool:
        """Asyncio: the peer has ended; so do we."""
        return False

    def _consume(self) -> None:
        while self._end - self._start >= HEADER.size and not self.closed:
            length, kind, flags, _, exchange = HEADER.unpack_from(self._buffer, self._start)
            if length > self._max_frame:
                raise ValueError(f"a frame of {length} bytes is over the limit")
            first = self._start + HEADER.size
            last = first + length
            if last > self._end:
                if HEADER.size + length > _BUFFER_SIZE:
                    self._begin_large(length, (kind, flags, exchange), first)
                break
            self._start = last
            self._deliver(kind, flags, exchange, bytes(self._view[first:last]))
        self._compact()

    def _begin_large(self, length: int, head: tuple[int, int, int], first: int) -> None:
        have = self._end - first
        self._large = bytearray(length)
        self._large[:have] = self._view[first : self._end]
        self._large_end, self._large_head = have, head
        self._start = self._end = 0

    def _compact(self) -> None:
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start and self._large is None:
            rest = bytes(self._view[self._start : self._end])
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)

    def _deliver(self, kind: int, flags: int, exchange: int, payload: bytes | bytearray) -> None:
        self._handler.frame_received(self, kind, flags, exchange, payload)
