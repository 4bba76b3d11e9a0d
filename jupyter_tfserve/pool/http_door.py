"""The standalone door: the REST API over HTTP, answered in the pool's own process.

What TensorFlow Serving's HTTP layer adds to the API itself lives here: pages for what is no call,
CORS, and its preflight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..http import message
from ..http.cors import CORS_HEADERS
from ..http.routing import is_rest, not_found
from ..wire import Request, Response

if TYPE_CHECKING:
    from .rest_api import RestApi


class HttpDoor:
    """An application for :class:`~jupyter_tfserve.http.server.HttpServer`."""

    def __init__(self, rest: RestApi, *, cors: bool) -> None:
        """``cors`` is TensorFlow Serving's ``--rest_api_enable_cors_support``."""
        self._rest = rest
        self._headers = CORS_HEADERS if cors else ()

    def __call__(self, request: message.Request, respond: message.Respond) -> None:
        """Answer one request, now or later."""
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

    def _preflight(self, request: message.Request) -> message.Response:
        origin = request.headers.get("origin", "")
        allowed = "http://" in origin or "https://" in origin
        return message.Response(200 if allowed else 400, b"", None, self._headers)
