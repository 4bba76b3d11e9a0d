"""What the fast lane says and leaves behind: the ordinary lane's headers, log lines and metrics.

None of it is spelled out here. The ordinary lane's handler is asked, once for each kind of answer,
or each time where the case is rare.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import tornado
from jupyter_server.log import log_request
from jupyter_server.prometheus.metrics import HTTP_REQUEST_DURATION_SECONDS
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
    format_timestamp,
)

from .base_handler import reason
from .handlers import RestHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tornado.http1connection import HTTP1Connection
    from tornado.web import Application

_MAX_KINDS = 64
_HANDLER = f"{RestHandler.__module__}.{RestHandler.__name__}"
"""The handler's name in Jupyter's metrics."""


class LaneAnswers:
    """Heads of answers, and what Jupyter notes of them.

    ``arguments`` are those of :class:`RestHandler` in the route table.
    """

    def __init__(self, application: Application, arguments: Mapping[str, Any]) -> None:
        self._application = application
        self._arguments = arguments
        self._heads: dict[tuple[int, str], tuple[ResponseStartLine, HTTPHeaders]] = {}
        self._metrics: dict[tuple[str, int], Any] = {}
        self._date = ""
        self._date_ends = 0.0

    def head(
        self, request: HTTPServerRequest, status: int, content_type: str, size: int | None
    ) -> tuple[ResponseStartLine, HTTPHeaders]:
        """The status line and headers of an answer, to be written at once.

        A body whose ``size`` in bytes is None is still coming.

        Raises:
            ValueError: for a content type that is none.
        """
        kind = (status, content_type)
        if kind not in self._heads:
            if len(self._heads) >= _MAX_KINDS:
                self._heads.clear()
            self._heads[kind] = self._sample(request, status, content_type)
        line, headers = self._heads[kind]
        # Tornado adds its own to what it is given, for the connection that it writes to.
        for name in ("Connection", "Transfer-Encoding"):
            if name in headers:
                del headers[name]
        headers["Date"] = self._now()
        if size is not None:
            headers["Content-Length"] = str(size)
        elif "Content-Length" in headers:
            del headers["Content-Length"]
        return line, headers

    def note(self, request: HTTPServerRequest, status: int) -> None:
        """Log and count an answer, as Jupyter does."""
        log_function = self._application.settings.get("log_function")
        if status < 300 and isinstance(log_function, partial) and log_function.func is log_request:
            # It would log nothing: while debugging, nobody comes here.
            if log_function.keywords.get("record_prometheus_metrics", True):
                self._metric(request.method or "", status).observe(request.request_time())
            return
        handler = RestHandler(self._application, request, **self._arguments)
        cast("HTTP1Connection", request.connection).set_close_callback(None)
        handler.set_status(status, reason(status))
        handler.current_user = handler.identity_provider.generate_anonymous_user(handler)
        self._application.log_request(handler)

    def _sample(
        self, request: HTTPServerRequest, status: int, content_type: str
    ) -> tuple[ResponseStartLine, HTTPHeaders]:
        start = RequestStartLine(request.method or "", request.uri or "", request.version)
        twin = HTTPServerRequest(connection=_Nowhere(), start_line=start, headers=request.headers)
        handler = _Sample(self._application, twin, **self._arguments)
        handler.set_cors_headers()
        handler.begin_answer(status)
        handler.set_header("Content-Type", content_type)
        return ResponseStartLine("", status, reason(status)), handler.headers

    def _now(self) -> str:
        now = time.time()
        if now >= self._date_ends:
            self._date_ends = int(now) + 1.0
            self._date = format_timestamp(now)
        return self._date

    def _metric(self, method: str, status: int) -> Any:
        if (method, status) not in self._metrics:
            self._metrics[method, status] = HTTP_REQUEST_DURATION_SECONDS.labels(
                method=method, handler=_HANDLER, status_code=status
            )
        return self._metrics[method, status]


class _Sample(RestHandler):
    """The ordinary lane's handler for a request that has shown the token; keeps its headers."""

    headers: HTTPHeaders

    @property
    def token_authenticated(self) -> bool:
        """Known already."""
        return True

    def clear(self) -> None:
        """Tornado: begin the headers."""
        server = f"TornadoServer/{tornado.version}"
        self.headers = HTTPHeaders({"Server": server, "Content-Type": "", "Date": ""})
        super().clear()

    def set_header(self, name: str, value: Any) -> None:
        """Tornado: one header."""
        super().set_header(name, value)  # it judges the value
        self.headers[name] = str(value)


class _Nowhere(HTTPConnection):
    """The connection of a sample."""

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        """It never closes."""
