"""One HTTP/1.1 connection: requests in, answers out, in their order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ..errors import ServingError
from .exchange import Exchange
from .heads import CONTINUE, Heads
from .limits import KIB, Limits
from .memory import HeadMemory
from .pages import error
from .parser import READ_SIZE, Phase, RequestParser
from .patience import Patience, Wait
from .writer import Writer

if TYPE_CHECKING:
    from .message import Application, Request, Response

_log = logging.getLogger(__name__)

_DONE = Phase.DONE  # see the parser
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_SMALL = 16 * KIB  # bodies up to here are joined to their heads
_WAITS = {
    Phase.IDLE: Wait.REQUEST,
    Phase.HEAD: Wait.HEAD,
    Phase.BODY: Wait.BODY,
    Phase.DONE: Wait.GOODBYE,
}


class Context:
    """What the connections of one server share, all in the loop's thread."""

    def __init__(self, application: Application, limits: Limits) -> None:
        self.application = application
        self.limits = limits
        self.heads = Heads()
        self.memory = HeadMemory()
        self.connections: set[HttpProtocol] = set()
        self.closing = False
        self.on_empty: Callable[[], None] | None = None
        # One for all: whatever is received is parsed before anything else is received.
        self.scratch = memoryview(bytearray(READ_SIZE))


class HttpProtocol(asyncio.BufferedProtocol):
    """Serves one connection.

    Requests that may change something run one at a time; safe ones may overlap (RFC 9112, 9.3.2).
    A client that closes its sending side counts as gone: its unanswered requests are dropped.
    """

    _transport: asyncio.Transport
    _writer: Writer

    def __init__(self, context: Context) -> None:
        self._context = context
        self._parser = RequestParser(context.limits, context.memory)
        self._patience = Patience(context.limits)
        self._pending: deque[Exchange] = deque()  # started, in the order of their answers
        self._advancing = False
        self._reading = True
        self._ending = False  # the last answer is with the writer
        self._lingering = False  # ... and has left it
        self._eof = False
        self._received = 0
        self._dropped = 0
        self._started = 0

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the server's connections, or be told that there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._writer = Writer(self._transport)
        connections = self._context.connections
        if len(connections) >= self._context.limits.max_connections:
            self._parser.refuse(error(503, "Too many connections", (("Retry-After", "1"),)))
        connections.add(self)
        self.advance()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to receive: a body's own buffer, or scratch space for the parser."""
        body = self._parser.body
        return self._context.scratch if body is None else body.free()

    def buffer_updated(self, nbytes: int) -> None:
        """Input has arrived."""
        parser = self._parser
        self._received += nbytes
        if parser.body is not None:
            parser.body_received(nbytes)
        elif parser.phase is _DONE:
            self._drop(nbytes)
        else:
            parser.feed(self._context.scratch[:nbytes])
        self.advance()

    def eof_received(self) -> bool:
        """The client is gone, but may still read what was answered; True to go on sending it."""
        self._eof = self._ending = True
        self._abandon()
        return not self._writer.flush()

    def pause_writing(self) -> None:
        """The client takes answers more slowly than they are made."""
        self._writer.writable = False

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._writer.writable = True
        self.advance()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything; nobody is there to be answered."""
        self._ending = True
        self._abandon()
        self._writer.clear()
        context = self._context
        context.connections.discard(self)
        if context.on_empty is not None and not context.connections:
            context.on_empty()

    # The course of requests

    def advance(self) -> None:
        """Start and answer whatever can be, and send it in as few writes as possible."""
        if self._advancing:  # an answer given within the application's call
            return
        self._advancing = True
        parser, pending, writer = self._parser, self._pending, self._writer
        requests = parser.requests
        while not self._ending:
            if pending and pending[0].response is not None:
                self._answer(pending.popleft())
            elif requests and not writer.full and (not pending or self._may_overlap(requests[0])):
                self._start(requests.popleft())
            else:
                break
        if not (pending or requests or self._ending):
            if parser.refusal is not None:
                self._put(parser.refusal, b"close")
            elif parser.wants_continue:
                parser.wants_continue = False
                writer.append(CONTINUE)
        self._advancing = False
        if writer.flush() and self._ending:
            self._say_goodbye()
        elif requests or self._dropped or not (self._reading and writer.writable):
            self._adjust_reading()

    def _may_overlap(self, request: Request) -> bool:
        """Whether a request may run beside those that are pending."""
        return (
            len(self._pending) < self._context.limits.max_pipelined
            and request.method in _SAFE_METHODS
            and self._pending[-1].method in _SAFE_METHODS
        )

    def _start(self, request: Request) -> None:
        self._started += 1
        exchange = Exchange(self, request)
        self._pending.append(exchange)
        try:
            self._context.application(request, exchange)
        except ServingError as refusal:
            failure = error(refusal.http_status, refusal.message)
        except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer
            _log.exception("Answering %s %s failed", request.method, request.target)
            failure = _failed()
        else:
            return
        if exchange.response is None:
            exchange(failure)

    def _answer(self, exchange: Exchange) -> None:
        response = exchange.response
        assert response is not None
        leaving = self._context.closing and not self._pending
        if response.close or not exchange.keep_alive or leaving:
            connection = b"close"
        else:
            connection = b"keep-alive" if exchange.http_version == "1.0" else b""
        try:
            self._put(response, connection, with_body=exchange.method != "HEAD")
        except (TypeError, ValueError):
            _log.exception("An answer cannot be sent")
            self._put(_failed(), b"close")

    def _put(self, response: Response, connection: bytes, *, with_body: bool = True) -> None:
        body, heads, writer = response.body, self._context.heads, self._writer
        if type(body) is bytes and len(body) <= _SMALL and with_body:
            writer.append(heads.encode(response, len(body), connection) + body)
        else:
            buffers = (body,) if isinstance(body, bytes | bytearray | memoryview) else body
            parts = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
            writer.append(heads.encode(response, sum(map(len, parts)), connection))
            for part in parts if with_body else ():
                writer.append(part)
        if connection == b"close":
            self._ending = True
            self._abandon()

    # The end

    def _abandon(self) -> None:
        """No more input is wanted, and nobody waits for what is unanswered."""
        self._parser.stop()
        self._parser.requests.clear()
        while self._pending:
            self._pending.popleft().close()

    def _say_goodbye(self) -> None:
        """All is with the transport: end the sending side, and let the client close.

        Closing while there is input that was not read would reset the connection, and the reset
        could overtake the answer.
        """
        if self._eof:
            self._transport.close()
        elif not self._lingering:
            self._lingering = True
            self._transport.write_eof()

    def _drop(self, count: int) -> None:
        self._dropped += count
        if self._lingering and self._dropped > self._context.limits.max_linger_bytes:
            self._transport.abort()

    def _adjust_reading(self) -> None:
        limits = self._context.limits
        wanted = (
            self._writer.writable
            and len(self._parser.requests) < limits.max_pipelined
            and (self._lingering or self._dropped <= limits.max_linger_bytes)
        )
        if wanted is not self._reading and not self._eof:
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def leave(self) -> None:
        """The server closes: go if nothing is under way, else after what is."""
        if self._waits_for() in (Wait.REQUEST, Wait.GOODBYE):
            self._transport.close()

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    # Patience

    def _waits_for(self) -> Wait:
        if self._writer.busy:
            return Wait.READER
        if self._pending or self._parser.requests:
            return Wait.ANSWER
        return _WAITS[self._parser.phase]

    def check(self, now: float) -> None:
        """Act on what is overdue; called on every sweep of the server."""
        wait = self._waits_for()
        count = self._writer.sent if wait is Wait.READER else self._received
        if not self._patience.is_over(wait, self._started, count, now):
            return
        match wait:
            case Wait.REQUEST:
                self._transport.close()
            case Wait.HEAD | Wait.BODY:
                part = "header" if wait is Wait.HEAD else "body"
                self._parser.refuse(error(408, f"Timed out waiting for the request's {part}"))
                self.advance()
            case _:
                self._transport.abort()


def _failed() -> Response:
    return error(500, "The server failed to answer; its log says why")
