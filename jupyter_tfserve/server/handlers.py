"""TensorFlow Serving's REST API on the notebook's own server: the ordinary lane.

Everything that Jupyter does for a request is done here: identity, authorisation, host, origin,
XSRF, CORS, activity. The body is never looked into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tornado import web

from ..errors import ServingError, error_json
from .answers import StreamedResponse
from .base_handler import DoorHandler, authorized
from .calls import ask, count_refusal, new_request, route_of
from .pool_client import Exchange
from .targets import raw_target

if TYPE_CHECKING:
    from ..routes import Route
    from .pool_client import Answer
    from .pool_manager import PoolManager


class RestHandler(DoorHandler):
    """One request to ``/v1/…`` with a small body, which is whole before anything is asked."""

    def initialize(  # type: ignore[override]
        self, *, manager: PoolManager, prefix_length: int, track_predictions: bool
    ) -> None:
        """Tornado: what the route table says.

        Args:
            manager: the pools.
            prefix_length: how many characters of the target come before ``/v1``.
            track_predictions: whether a prediction counts as activity of the server.
        """
        super().initialize(manager=manager)
        self.method = self.request.method or ""
        self.target = raw_target(self.request.uri or "", prefix_length)
        self._track_predictions = track_predictions
        self._exchange: Exchange | None = None

    def error_body(self, error: ServingError) -> bytes:
        """TensorFlow Serving's form of an error."""
        return error_json(error.message)

    def refused(self, error: ServingError) -> None:
        """Count it."""
        try:
            name = route_of(self.method, self.target).spec.name
        except ServingError:
            name = ""
        count_refusal(self.manager, name, error)

    def set_secure_cookie(self, *args: Any, **kwargs: Any) -> None:
        """Log nobody in who shows a token with each request.

        Jupyter would give a caller like that a new anonymous user, and a cookie for it, each time.
        """
        if "Authorization" not in self.request.headers:
            super().set_secure_cookie(*args, **kwargs)

    def on_connection_close(self) -> None:
        """The client is gone: so is the wish for an answer."""
        super().on_connection_close()
        if self._exchange is not None:
            self._exchange.cancel()

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Status and metadata."""
        await self._serve()

    @web.authenticated
    @authorized("execute")
    async def post(self) -> None:
        """Predict, classify, regress."""
        await self._serve()

    @web.authenticated
    @authorized("read")
    async def head(self) -> None:
        """No call of the API; refused as such."""
        await self._serve()

    @web.authenticated
    @authorized("write")
    async def put(self) -> None:
        """No call of the API; refused as such."""
        await self._serve()

    @web.authenticated
    @authorized("write")
    async def patch(self) -> None:
        """No call of the API; refused as such."""
        await self._serve()

    @web.authenticated
    @authorized("write")
    async def delete(self) -> None:
        """No call of the API; refused as such."""
        await self._serve()

    async def _serve(self) -> None:
        answer = await self.answer()
        self.begin_answer(answer.status)
        if isinstance(answer, StreamedResponse):
            await self._relay(answer)
        else:
            self.finish(bytes(answer.body), set_content_type=answer.content_type)

    async def answer(self) -> Answer:
        """Ask the pool, or answer from what is known here."""
        route = await self.find()
        request = new_request(self.manager, self.request, self.target, self.whole_body())
        answer = ask(self.manager, route, request)
        if isinstance(answer, Exchange):
            self._exchange = answer
            return await answer
        return answer

    def whole_body(self) -> bytes:
        """The body that has come."""
        return self.request.body

    async def find(self) -> Route:
        """Understand the request line, and look for the model where nobody knows it."""
        route = route_of(self.method, self.target)
        self._track_activity = self._track_predictions and route.is_inference
        await self.manager.look_for(route.spec.name)
        return route

    async def _relay(self, answer: StreamedResponse) -> None:
        self.set_header("Content-Type", answer.content_type)

        async def send(chunk: bytes) -> None:
            self.write(chunk)
            await self.flush()

        if await answer.relay(send):
            self.finish(set_content_type=answer.content_type)
        else:
            self.detach().close()
