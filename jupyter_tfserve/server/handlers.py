"""TensorFlow Serving's REST API on the notebook's own server: the ordinary lane.

Everything that Jupyter does for a request is done here: identity, authorisation, host, origin,
XSRF, CORS, activity. The body is never looked into.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from tornado import web

from ..errors import ServingError, error_json
from ..wire import STREAM_THRESHOLD
from .answers import StreamedResponse
from .base_handler import DoorHandler, authorized
from .calls import ask, client_for, content_length, new_request, route_of
from .pool_client import Exchange
from .targets import raw_target
from .upload import Upload

if TYPE_CHECKING:
    from tornado.http1connection import HTTP1Connection

    from ..routes import Route
    from .pool_client import Answer
    from .pool_manager import PoolManager


@web.stream_request_body
class RestHandler(DoorHandler):
    """One request to ``/v1/…``.

    A small body is gathered and sent as one frame; one that grows beyond the wire's threshold is
    passed on as it arrives, no faster than the pool takes it.
    """

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
        self._method = self.request.method or ""
        self._target = raw_target(self.request.uri or "", prefix_length)
        self._track_predictions = track_predictions
        self._body: list[bytes] = []
        self._size = 0
        self._refusal: ServingError | web.HTTPError | None = None
        self._upload: Upload | None = None
        self._exchange: Exchange | None = None

    def error_body(self, error: ServingError) -> bytes:
        """TensorFlow Serving's form of an error."""
        return error_json(error.message)

    async def prepare(self) -> None:  # type: ignore[override]
        """Jupyter's checks, and what can be said before the body has come."""
        try:
            await super().prepare()
            await self._prepare_body()
        except (ServingError, web.HTTPError) as error:
            headers = self.request.headers
            has_body = "Content-Length" in headers or "Transfer-Encoding" in headers
            if not has_body or "Expect" in headers or self._method == "OPTIONS":
                raise
            # Answered now, the connection would be cut while the client still writes, and most
            # clients would never see why. The body is taken and dropped; then the verb raises.
            self._refuse_body(error)

    async def _prepare_body(self) -> None:
        size = content_length(self.request.headers.get("Content-Length", ""))
        limit = self.manager.max_body_bytes
        connection = cast("HTTP1Connection", self.request.connection)
        connection.set_max_body_size(max(2 * limit, size))
        if size > limit:
            raise self._too_large()
        if size > STREAM_THRESHOLD and self._method == "POST":
            await self._begin_upload()

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Tornado: bytes of the body; more come only after what is returned is done."""
        if self._refusal is not None:
            return None
        self._size += len(chunk)
        if self._size > self.manager.max_body_bytes:
            self._refuse_body(self._too_large())
            return None
        if self._upload is not None:
            return self._upload.write(chunk)
        self._body.append(chunk)
        if self._size > STREAM_THRESHOLD and self._method == "POST":
            return self._grow_into_upload()
        return None

    def set_secure_cookie(self, *args: Any, **kwargs: Any) -> None:
        """Log nobody in who shows a token with each request.

        Jupyter would give a caller like that a new anonymous user, and a cookie for it, each time.
        """
        if "Authorization" not in self.request.headers:
            super().set_secure_cookie(*args, **kwargs)

    def on_connection_close(self) -> None:
        """The client is gone: so is the wish for an answer."""
        super().on_connection_close()
        if self._upload is not None:
            self._upload.abort()
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
        answer = await self._answer()
        self.begin_answer(answer.status)
        if isinstance(answer, StreamedResponse):
            await self._relay(answer)
        else:
            self.finish(bytes(answer.body), set_content_type=answer.content_type)

    async def _answer(self) -> Answer:
        if self._refusal is not None:
            raise self._refusal  # before anything else, whatever the verb
        if self._upload is not None:
            return await self._upload.finish()
        route = await self._find()
        request = new_request(self.manager, self.request, self._target, b"".join(self._body))
        answer = ask(self.manager, route, request)
        if isinstance(answer, Exchange):
            self._exchange = answer
            return await answer
        return answer

    async def _find(self) -> Route:
        route = route_of(self._method, self._target)
        self._track_activity = self._track_predictions and route.is_inference
        await self.manager.look_for(route.spec.name)
        return route

    @authorized("execute")
    async def _begin_upload(self) -> None:
        """Send what has come so far; asked for before :meth:`post`, so it asks for leave itself."""
        route = await self._find()
        request = new_request(self.manager, self.request, self._target)
        upload = Upload(client_for(self.manager, route), request, route.spec.name)
        await upload.open()
        self._upload = upload
        body, self._body = self._body, []
        for chunk in body:
            await upload.write(chunk)

    async def _grow_into_upload(self) -> None:
        try:
            await self._begin_upload()
        except (ServingError, web.HTTPError) as error:
            self._refuse_body(error)

    def _refuse_body(self, error: ServingError | web.HTTPError) -> None:
        self._refusal = error
        self._body.clear()
        if self._upload is not None:
            self._upload.abort()

    def _too_large(self) -> web.HTTPError:
        limit = self.manager.max_body_bytes
        text = f"The body is over the limit of {limit} bytes (PoolManager.max_body_bytes)"
        return web.HTTPError(413, text)

    async def _relay(self, answer: StreamedResponse) -> None:
        self.set_header("Content-Type", answer.content_type)

        async def send(chunk: bytes) -> None:
            self.write(chunk)
            await self.flush()

        if await answer.relay(send):
            self.finish(set_content_type=answer.content_type)
        else:
            self.detach().close()
