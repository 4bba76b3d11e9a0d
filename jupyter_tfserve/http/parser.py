"""Bytes to requests: httptools under this server's rules, with no socket in sight."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING

import httptools

from .body import BodyBuffer
from .limits import KIB, Limits
from .message import Request, Response
from .pages import error, page
from .routing import parse_target
from .rules import (
    METHODS,
    Refused,
    body_too_large,
    framing,
    header_too_large,
    read_fields,
    target_too_large,
)

if TYPE_CHECKING:
    from .memory import HeadMemory

READ_SIZE = 64 * KIB
"""The most that is fed at a time."""


class Phase(Enum):
    """What the next byte belongs to."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    DONE = auto()  # the last request of the connection, or a broken one, lies behind


# Looking a member up in its class costs more than all else that is done with it here.
_IDLE, _HEAD, _BODY, _DONE = Phase

_HEAD_END = b"\r\n\r\n"
_NOTHING = memoryview(b"")


class RequestParser:
    """Parses one connection's input, however it is cut.

    Complete requests are appended to :attr:`requests`. Input that is no acceptable request ends
    parsing: :attr:`refusal` is then the answer to give once all requests are answered.

    While :attr:`body` is not None, input is to be received into its free space and told to
    :meth:`body_received`; it is to be given to :meth:`feed` otherwise. To consume large bodies as
    they arrive, replace what :meth:`_open_body` returns.
    """

    def __init__(self, limits: Limits, memory: HeadMemory) -> None:
        self.phase = _IDLE
        self.requests: deque[Request] = deque()
        self.refusal: Response | None = None
        self.body: BodyBuffer | None = None
        self.wants_continue = False
        self._limits = limits
        self._memory = memory
        self._upgrading = False
        self._fed = 0
        self._wire_bytes = 0  # of the current request, and of what came in the same piece before it
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._forget_request()

    def _forget_request(self) -> None:
        self._request: Request | None = None
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._length: int | None = None
        self._body: bytes | bytearray = b""

    # Input

    def feed(self, data: memoryview) -> None:
        """Parse at most ``READ_SIZE`` bytes; anything after the end of the input is dropped."""
        while data:
            if self.phase is _IDLE:
                data = self._take_known(data.tobytes())
            elif self.body is not None:
                data = self._take_body(self.body, data)
            else:
                self._parse(data)
                return

    def _take_known(self, data: bytes) -> memoryview:
        """Take requests off the start of ``data`` while their heads are known; return the rest.

        A head that is not known is parsed, and remembered if it says all there is to say.
        """
        start = 0
        while start < len(data):
            end = data.find(_HEAD_END, start) + len(_HEAD_END)
            known = self._memory.recall(data[start:end])
            if known is None:
                return self._learn(data[start:end], memoryview(data)[start:])
            like, length = known
            request = Request(
                like.method, like.target, like.headers, http_version=like.http_version
            )
            start = end + length
            if start > len(data):
                self.phase = _BODY
                self._request = request
                self.body = self._open_body(length)
                return memoryview(data)[end:]
            request.body = data[end:start]
            self.requests.append(request)
        return _NOTHING

    def _learn(self, head: bytes, data: memoryview) -> memoryview:
        """Parse ``data`` as far as its ``head`` goes; return the rest."""
        if not head.endswith(_HEAD_END):  # it was not found: the head goes on in the next piece
            self._parse(data)
            return _NOTHING
        complete = len(self.requests)
        self._parse(data[: len(head)])
        if self.phase is _IDLE and len(self.requests) == complete + 1:
            self._memory.remember(head, self.requests[-1], 0)
        elif self.body is not None and not self.wants_continue:
            assert self._request is not None
            if self._request.keep_alive:
                self._memory.remember(head, self._request, self._length or 0)
        return data[len(head) :]

    def _take_body(self, body: BodyBuffer, data: memoryview) -> memoryview:
        free = body.free()
        count = min(len(free), len(data))
        free[:count] = data[:count]
        self.body_received(count)
        return data[count:]

    def _parse(self, data: memoryview) -> None:
        """Let httptools have ``data``, and see where that leads."""
        self._fed = len(data)
        self._wire_bytes += self._fed
        while self._parser is not None:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                self._decline_upgrade()
                continue
            except httptools.HttpParserError as mistake:
                self._stop_at(mistake)
                return
            break
        if self.phase is not _IDLE:
            self._check_unfinished()

    def body_received(self, count: int) -> None:
        """Take note of ``count`` bytes received into the free space of :attr:`body`."""
        self.wants_continue = False
        if self.body is not None and self.body.received(count):
            self._body = self.body.take()
            self.body = None
            # The old parser still waits for the body, which it never saw.
            self._parser = httptools.HttpRequestParser(self)
            self.on_message_complete()

    def refuse(self, refusal: Response) -> None:
        """End parsing; what has been read of an unfinished request is dropped."""
        self.refusal = refusal
        self.stop()

    def stop(self) -> None:
        """End parsing, and let go of everything but complete requests."""
        self.phase = _DONE
        self.body = None
        self.wants_continue = False
        self._parser = None
        self._forget_request()

    # Called by httptools

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.phase = _HEAD

    def on_url(self, url: bytes) -> None:
        """A piece of the request target."""
        self._target = self._target + url if self._target else url
        if len(self._target) > self._limits.max_target_bytes:
            raise Refused(target_too_large(self._limits))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or a trailer field, which nobody will ask for."""
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """The end of the header: everything that can be refused unread is refused here."""
        parser = self._parser
        assert parser is not None
        self.phase = _BODY
        if self._request is not None:  # the stand-in for a request with an upgrade declined
            return
        method = METHODS.get(parser.get_method())
        if method is None:
            raise Refused(page(501))
        target = parse_target(self._target)
        if target is None:
            raise Refused(page(400))
        headers = read_fields(self._fields, self._limits)
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise Refused(page(400))
        self._length, self.wants_continue = framing(headers, version, self._limits)
        self._upgrading = "upgrade" in headers and parser.should_upgrade()
        self._request = Request(
            method, target, headers, http_version=version, keep_alive=parser.should_keep_alive()
        )

    def on_body(self, data: bytes) -> None:
        """A piece of the body; only chunked bodies come in several."""
        self.wants_continue = False
        if not self._body:
            self._body = data
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += data
        if self._length is None and len(self._body) > self._limits.max_body_bytes:
            raise Refused(body_too_large(self._limits))

    def on_message_complete(self) -> None:
        """The end of the request."""
        if self._upgrading:
            return
        request = self._request
        assert request is not None
        request.body = self._body
        self.requests.append(request)
        if request.keep_alive:
            self.phase = _IDLE
            self.wants_continue = False
            self._wire_bytes = self._fed
            self._forget_request()
        else:
            self.stop()

    # Beyond httptools

    def _check_unfinished(self) -> None:
        """Bound what arrives without becoming part of a request, and open the way for the body.

        The parser neither limits nor reports names and values in the making, chunk extensions and
        trailers. The count is too high by what else came with the first bytes of the request.
        """
        limits = self._limits
        allowance = READ_SIZE + limits.max_target_bytes + limits.max_header_bytes
        if self.phase is _HEAD:
            if self._wire_bytes > allowance:
                self.refuse(header_too_large(limits))
        elif self.phase is _BODY:
            if self._length is not None:
                self.body = self._open_body(self._length)
            elif self._wire_bytes > allowance + 8 * len(self._body):
                self.refuse(
                    error(400, "Chunked body carries too much besides its data", close=True)
                )

    def _open_body(self, length: int) -> BodyBuffer:
        return BodyBuffer(length, self._body)

    def _decline_upgrade(self) -> None:
        """Go on as if no other protocol had been offered (h2c, by Java's and curl's clients).

        httptools takes whatever follows such a request for the other protocol; so a fresh parser
        is put where the old one stood, at the start of the body, by a request that is only framing.
        """
        self._upgrading = False
        request = self._request
        assert request is not None  # CONNECT, the other way into a tunnel, was refused
        chunked = "transfer-encoding" in request.headers
        body = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {self._length or 0}"
        connection = "keep-alive" if request.keep_alive else "close"
        head = f"POST / HTTP/1.1\r\nConnection: {connection}\r\n{body}\r\n\r\n"
        self._target = b""
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(head.encode())

    def _stop_at(self, mistake: httptools.HttpParserError) -> None:
        cause = mistake.__context__
        if isinstance(cause, Refused):
            self.refusal = cause.response
        elif isinstance(mistake, httptools.HttpParserCallbackError):
            raise mistake
        elif self.phase is not _DONE:
            unknown = isinstance(mistake, httptools.HttpParserInvalidMethodError)
            self.refusal = page(501 if unknown else 400)
        self.stop()
