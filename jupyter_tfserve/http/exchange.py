"""One request under way: the :class:`~.message.Respond` that applications hold."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .message import Request, Response

_log = logging.getLogger(__name__)


class Connection(Protocol):
    """Who is to be told of an answer."""

    def advance(self) -> None:
        """Send what can be sent, start what can be started."""


class Exchange:
    """A request and, in time, its answer; it keeps no body alive."""

    __slots__ = (
        "_callback",
        "_connection",
        "closed",
        "http_version",
        "keep_alive",
        "method",
        "response",
    )

    def __init__(self, connection: Connection, request: Request) -> None:
        self._connection = connection
        self._callback: Callable[[], None] | None = None
        self.method = request.method
        self.keep_alive = request.keep_alive
        self.http_version = request.http_version
        self.response: Response | None = None
        self.closed = False

    def __call__(self, response: Response) -> None:
        """Answer the request."""
        if self.closed:
            return
        if self.response is not None:
            raise RuntimeError("The request was answered before")
        self.response = response
        self._callback = None
        self._connection.advance()

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` if the client goes away unanswered."""
        if self.closed:
            callback()
        elif self.response is None:
            self._callback = callback

    def close(self) -> None:
        """Nobody waits for the answer any more."""
        self.closed = True
        callback, self._callback = self._callback, None
        if callback is not None:
            try:
                callback()
            except Exception:  # noqa: BLE001 - the connection must not suffer for it
                _log.exception("A callback for a client gone away failed")
