"""A route to the handler for small bodies, which takes fewer turns of the loop than streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tornado.routing import Router

from ..wire import STREAM_THRESHOLD
from .calls import content_length
from .handlers import RestHandler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tornado.http1connection import HTTP1Connection
    from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
    from tornado.web import Application

    from .pool_manager import PoolManager

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
"""Tornado would read arguments, even a token, from a gathered body of these content types."""


def small_body(request: HTTPServerRequest, manager: PoolManager) -> int | None:
    """The size of a body that fits one frame, in bytes; None for one that may not."""
    length = request.headers.get("Content-Length", "0")
    size = content_length(length)
    fits = length.isdecimal() and size <= min(STREAM_THRESHOLD, manager.max_body_bytes)
    return size if fits and "Transfer-Encoding" not in request.headers else None


class SmallBodies(Router):
    """Takes requests whose body is small; ``arguments`` are the handler's."""

    SUPPORTED_METHODS: tuple[str, ...] = ()
    """Jupyter looks here for verbs that are open to everybody: none is."""

    def __init__(self, application: Application, arguments: Mapping[str, Any]) -> None:
        self._application = application
        self._arguments = dict(arguments)

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """Tornado: who takes the request; None leaves it to the next route."""
        headers = request.headers
        size = small_body(request, self._arguments["manager"])
        if size is None or "Expect" in headers or _is_form(headers.get("Content-Type", "")):
            return None
        # The server's own limit may be below ours.
        cast("HTTP1Connection", request.connection).set_max_body_size(size)
        return self._application.get_handler_delegate(request, RestHandler, self._arguments)


def _is_form(content_type: str) -> bool:
    return content_type.startswith(_FORMS)
