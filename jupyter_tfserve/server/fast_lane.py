"""The fast lane of the REST door: the same calls and answers, without Jupyter's handler.

A Tornado router of its own, ahead of the ordinary handler. It takes a request only where it shows
the token of a stock identity provider, and nothing about it is special (see :mod:`.lane_gate`);
then Jupyter's checks come down to a comparison. Everything else it leaves to the ordinary lane.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from tornado.httputil import HTTPMessageDelegate
from tornado.routing import Router

from ..errors import Code, ServingError, error_json
from ..wire import Response
from .answers import StreamedResponse
from .calls import ask, count_refusal, new_request, route_of
from .lane_answers import LaneAnswers
from .lane_gate import Gate
from .pool_client import Exchange
from .small_bodies import small_body

if TYPE_CHECKING:
    import logging
    from collections.abc import Coroutine

    from tornado.http1connection import HTTP1Connection
    from tornado.httputil import HTTPServerRequest
    from tornado.web import Application

    from ..routes import Route
    from .pool_manager import PoolManager


_METHODS = frozenset({"GET", "POST"})


class FastLane(Router):
    """Takes the requests that it can serve.

    Attributes:
        taken: How many it has taken.
    """

    SUPPORTED_METHODS: tuple[str, ...] = ()
    """Jupyter looks here for verbs that are open to everybody: none is."""

    def __init__(
        self,
        application: Application,
        log: logging.Logger,
        *,
        manager: PoolManager,
        prefix_length: int,
        track_predictions: bool,
    ) -> None:
        """The keyword arguments are those of :class:`~.handlers.RestHandler`."""
        self.manager = manager
        self.log = log
        self.settings: dict[str, Any] = application.settings
        self.track_predictions = track_predictions
        self.answers = LaneAnswers(
            application,
            {
                "manager": manager,
                "prefix_length": prefix_length,
                "track_predictions": track_predictions,
            },
        )
        self.taken = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._gate = Gate(application, log)
        self._prefix_length = prefix_length

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """Tornado: who takes the request; None leaves it to the next route."""
        method, uri = request.method or "", request.uri or ""
        # A query is Jupyter's to look through: it may hold a token.
        if method not in _METHODS or "?" in uri or not self._gate.admits(request):
            return None
        size = small_body(request, self.manager)
        if size is None:
            return None
        target = uri[self._prefix_length :]
        try:
            route = route_of(method, target)
        except ServingError:
            return None
        if not self.manager.knows(route.spec.name):
            return None
        self.taken += 1
        return _Call(self, request, target, route, size)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """See to something that takes its time."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Call(HTTPMessageDelegate):
    """One request, from its body to its answer."""

    def __init__(
        self, lane: FastLane, request: HTTPServerRequest, target: str, route: Route, size: int
    ) -> None:
        self._lane = lane
        self._request = request
        self._target = target
        self._route = route
        self._body = b""
        self._exchange: Exchange | None = None
        self._connection = cast("HTTP1Connection", request.connection)
        self._connection.set_max_body_size(size)  # a server's own limit may be below ours

    def data_received(self, chunk: bytes) -> None:
        """Tornado: bytes of the body."""
        self._body = self._body + chunk if self._body else chunk

    def finish(self) -> None:
        """Tornado: the request is whole."""
        manager = self._lane.manager
        request = new_request(manager, self._request, self._target, self._body)
        try:
            answer = ask(manager, self._route, request)
        except ServingError as error:
            self._refuse(error)
            return
        if isinstance(answer, Exchange):
            self._exchange = answer
            self._connection.set_close_callback(answer.cancel)
            answer.then(self._answered)
        else:
            self._write(answer)

    def _answered(self) -> None:
        assert self._exchange is not None
        try:
            answer = self._exchange.result()
            if isinstance(answer, StreamedResponse):
                self._begin(answer.status, answer.content_type)
                self._lane.run(self._relay(answer))
            else:
                self._write(answer)
        except ServingError as error:
            self._refuse(error)
        except Exception:  # whatever it is, the pool's connection must not suffer for it
            self._lane.log.exception("Uncaught exception")
            self._refuse(ServingError(Code.INTERNAL, "Internal Server Error"))

    def _refuse(self, error: ServingError) -> None:
        count_refusal(self._lane.manager, self._route.spec.name, error)
        self._write(Response(error.http_status, error_json(error.message)))

    def _write(self, response: Response) -> None:
        self._begin(response.status, response.content_type, bytes(response.body))
        self._end(response.status)

    def _begin(self, status: int, content_type: str, body: bytes | None = None) -> None:
        size = None if body is None else len(body)
        head = self._lane.answers.head(self._request, status, content_type, size)
        self._connection.write_headers(*head, body)

    async def _relay(self, answer: StreamedResponse) -> None:
        if await answer.relay(self._connection.write):
            self._end(answer.status)
        else:
            self._connection.detach().close()

    def _end(self, status: int) -> None:
        self._connection.finish()
        lane = self._lane
        if lane.track_predictions and self._route.is_inference:
            lane.settings["api_last_activity"] = datetime.now(UTC)
        lane.answers.note(self._request, status)
