"""One connected socket: asyncio's transport contract, without a loop's turn for each event."""

from __future__ import annotations

import asyncio
import logging
import selectors
import socket
from collections import deque
from typing import Any

log = logging.getLogger(__name__)

Protocol = asyncio.BufferedProtocol
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_AGAIN = (BlockingIOError, InterruptedError)


class SocketTransport(asyncio.Transport):
    """Moves bytes between a socket and a protocol; all in the loop's thread.

    What cannot be sent at once is kept without a copy and sent as the socket takes it.
    """

    __slots__ = (
        "_closing",
        "_events",
        "_high",
        "_loop",
        "_lost",
        "_paused",
        "_protocol",
        "_queue",
        "_queued",
        "_reading",
        "_selector",
        "_sock",
        "_wants_eof",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        selector: selectors.BaseSelector,
        sock: socket.socket,
        protocol: Protocol,
    ) -> None:
        super().__init__({"socket": sock})
        self._loop = loop
        self._selector = selector
        self._sock = sock
        self._protocol = protocol
        self._queue: deque[memoryview] = deque()
        self._queued = 0  # bytes
        self._high = 64 * 1024
        self._events = 0
        self._reading = True
        self._paused = False  # the protocol was told to write no more
        self._wants_eof = False
        self._closing = False
        self._lost = False
        protocol.connection_made(self)
        self._watch()

    def _watch(self) -> None:
        """Have the selector look out for what is of interest now."""
        reading = self._reading and not self._closing
        events = (_READ if reading else 0) | (_WRITE if self._queue else 0)
        if self._lost or events == self._events:
            return
        if not self._events:
            self._selector.register(self._sock, events, self)
        elif not events:
            self._selector.unregister(self._sock)
        else:
            self._selector.modify(self._sock, events, self)
        self._events = events

    # Called by the reactor

    def receive(self) -> None:
        """Read once; there is something to read, or was when the selector looked."""
        if not self._reading or self._closing:
            return
        try:
            self._receive()
        except Exception as error:  # noqa: BLE001 - others share the loop
            self._fail(error)

    def _receive(self) -> None:
        try:
            count = self._sock.recv_into(self._protocol.get_buffer(-1))
        except _AGAIN:
            return
        except OSError as error:
            self._lose(error)
            return
        if count:
            self._protocol.buffer_updated(count)
            return
        self._reading = False
        if not self._protocol.eof_received():
            self.close()
        self._watch()

    def send(self) -> None:
        """Send what is waiting, as far as the socket takes it."""
        while self._queue:
            data = self._queue.popleft()
            try:
                count = self._sock.send(data)
            except _AGAIN:
                count = 0
            except OSError as error:
                self._lose(error)
                return
            self._queued -= count
            if count < len(data):
                self._queue.appendleft(data[count:])
                break
        self._watch()
        if self._paused and self._queued <= self._high // 4:
            self._paused = False
            try:
                self._protocol.resume_writing()
            except Exception as error:  # noqa: BLE001
                self._fail(error)
        if not self._queue:
            if self._closing:
                self._lose(None)
            elif self._wants_eof:
                self._send_eof()

    # asyncio.Transport

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """``pause_writing`` beyond ``high`` bytes, ``resume_writing`` at a quarter of it."""
        assert high is not None
        assert low is None
        self._high = high

    def get_write_buffer_size(self) -> int:
        """Bytes not yet taken by the socket."""
        return self._queued

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send ``data``, which must not change afterwards."""
        if self._closing:
            return  # the connection was lost, and the protocol is about to hear of it
        count = 0
        if not self._queue:
            try:
                count = self._sock.send(data)
            except _AGAIN:
                pass
            except OSError as error:
                self._lose(error)
                return
            if count == len(data):
                return
        self._queue.append(memoryview(data)[count:])
        self._queued += len(data) - count
        self._watch()
        if self._queued > self._high and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        """End the sending side once all is sent."""
        self._wants_eof = True
        if not self._queue and not self._closing:
            self._send_eof()

    def can_write_eof(self) -> bool:
        """Sockets can."""
        return True

    def _send_eof(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._lose(error)

    def pause_reading(self) -> None:
        """Leave input with the socket."""
        self._reading = False
        self._watch()

    def resume_reading(self) -> None:
        """Take input again."""
        self._reading = True
        self._watch()

    def is_closing(self) -> bool:
        """Whether it is closed or about to be."""
        return self._closing

    def close(self) -> None:
        """Read no more, send what is waiting, then close."""
        if self._closing:
            return
        self._closing = True
        self._watch()
        if not self._queue:
            self._lose(None)

    def abort(self) -> None:
        """Close at once."""
        self._lose(None)

    def _fail(self, error: Exception) -> None:
        log.error("A protocol failed; its connection is cut", exc_info=error)
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        """Close, and tell the protocol from the loop: it may be the one that calls."""
        if self._lost:
            return
        self._closing = True
        self._queue.clear()
        self._queued = 0
        self._watch()
        self._lost = True
        self._loop.call_soon(self._end, error)

    def _end(self, error: Exception | None) -> None:
        protocol = self._protocol
        del self._protocol  # a circle would be left to the collector
        try:
            protocol.connection_lost(error)
        finally:
            self._sock.close()
