"""The standalone door: the REST API over HTTP, answered in the pool's own process.

What TensorFlow Serving's HTTP layer adds to the API itself lives here: pages for what is no call,
CORS, and its preflight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..http import message
from ..http.cors import CORS_HEADERS
from ..http.routing import is_path, is_rest, not_found
from ..metrics import CONTENT_TYPE, expose
from ..wire import Request, Response

if TYPE_CHECKING:
    from .metrics import PoolMetrics
    from .rest_api import RestApi


class HttpDoor:
    """An application for :class:`~jupyter_tfserve.http.server.HttpServer`."""

    def __init__(
        self, rest: RestApi, *, cors: bool, metrics: PoolMetrics, metrics_path: str | None
    ) -> None:
        """Take part in the pool.

        Args:
            rest: answers what is the API's.
            cors: TensorFlow Serving's ``--rest_api_enable_cors_support``.
            metrics: told at ``metrics_path``.
            metrics_path: the path that ``--monitoring_config_file`` sets; None turns it off.
        """
        self._rest = rest
        self._metrics = metrics
        self._metrics_path = metrics_path
        self._headers = CORS_HEADERS if cors else ()

    def __call__(self, request: message.Request, respond: message.Respond) -> None:
        """Answer one request, now or later."""
        path = self._metrics_path
        # The cheap look comes first, as every request passes here.
        if path is not None and request.target.startswith(path) and is_path(request.target, path):
            respond(self._tell_metrics(request.target, path))
            return
        if not is_rest(request.target):
            respond(not_found())
            return
        if request.method == "OPTIONS":
            respond(self._preflight(request))
            return

        def answer(response: Response) -> None:
            respond(
                message.Response(
                    response.status, response.body, response.content_type, self._headers
                )
            )

        call = Request(
            request.method,
            request.target,
            request.body,
            request.headers.get("content-encoding", ""),
            request.headers.get("x-tfserve-options", ""),
        )
        give_up = self._rest.handle(call, answer)
        if give_up is not None:
            respond.on_close(give_up)

    def _tell_metrics(self, target: str, path: str) -> message.Response:
        if target != path:
            text = f"Unexpected path: {target}. Should be {path}"
            return message.Response(400, text.encode(), CONTENT_TYPE)
        return message.Response(200, expose(self._metrics.families()), CONTENT_TYPE)

    def _preflight(self, request: message.Request) -> message.Response:
        origin = request.headers.get("origin", "")
        allowed = "http://" in origin or "https://" in origin
        self._rest.preflight(allowed=allowed)
        return message.Response(200 if allowed else 400, b"", None, self._headers)
