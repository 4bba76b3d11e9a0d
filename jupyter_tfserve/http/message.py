"""What passes between the protocol and an application: requests, responses and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview
"""Bytes to be sent; a memoryview must be contiguous."""


class Request:
    """One request, read completely.

    Attributes:
        method: Upper case, such as ``POST``.
        target: As sent, before percent-decoding: path, query and fragment. An absolute-form target
            is reduced to these.
        headers: By lower-case name; repeated fields are joined by ``", "``. Values are read as
            UTF-8, or as Latin-1 where they are none.
        http_version: ``1.1`` or ``1.0``.
        body: Without transfer coding; a ``Content-Encoding`` is left in place. Whoever gets the
            request owns the buffer.
        keep_alive: Whether the client lets the connection live on.
    """

    __slots__ = ("body", "headers", "http_version", "keep_alive", "method", "target")

    def __init__(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | bytearray = b"",
        *,
        http_version: str = "1.1",
        keep_alive: bool = True,
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.http_version = http_version
        self.keep_alive = keep_alive


class Response:
    """One answer.

    Attributes:
        status: HTTP status, 200 to 599.
        body: One buffer, or several to be sent one after the other; unchanged from now on, since
            large ones are sent without a copy.
        content_type: None for no such header.
        headers: Further headers; ``Content-Length``, ``Date`` and ``Connection`` are the server's.
        close: Whether the connection ends with this answer.
    """

    __slots__ = ("body", "close", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: Buffer | Sequence[Buffer] = b"",
        content_type: str | None = "application/json",
        headers: tuple[tuple[str, str], ...] = (),
        *,
        close: bool = False,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers
        self.close = close


class Respond(Protocol):
    """The way back for one request, to be used in the loop's thread, at once or later."""

    @property
    def closed(self) -> bool:
        """Whether nobody waits for the answer any more."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` once if the client goes away unanswered; at once if it already has.

        A later callback replaces an earlier one.
        """

    def __call__(self, response: Response) -> None:
        """Answer; a no-op when :attr:`closed`.

        Raises:
            RuntimeError: The request was answered before.
            ValueError: A header holds a line break or a character beyond Latin-1.
        """


Application = Callable[[Request, Respond], None]
"""Called in the loop's thread for each request; it must not block.

It answers at once, which is the fastest, or keeps the second argument and answers later.

A :class:`~jupyter_tfserve.errors.ServingError` that it raises becomes the answer; any other
exception becomes a 500 that tells nothing, and is logged; so does an answer that cannot be sent,
such as one with a line break in a header.
"""
