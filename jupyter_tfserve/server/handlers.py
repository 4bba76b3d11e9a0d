"""TensorFlow Serving's REST API on the notebook's own server: the ordinary lane.

Everything that Jupyter does for a request is done here: identity, authorisation, host, origin,
XSRF, CORS, activity. The body is never looked into.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from tornado import web
from tornado.iostream import StreamClosedError

from ..errors import Code, ServingError, error_json, invalid_argument
from ..routes import Api, Route, malformed, parse_route
from ..state import status_json
from ..wire import STREAM_THRESHOLD, Request, Response
from .answers import StreamedResponse
from .base_handler import DoorHandler, authorized
from .targets import is_uri, raw_target
from .upload import Upload

if TYPE_CHECKING:
    from tornado.http1connection import HTTP1Connection

    from ..servable import ModelSpec
    from .pool_client import Answer, Exchange, PoolClient
    from .pool_manager import PoolManager

OPTIONS_HEADER = "X-TFServe-Options"

_MAX_DIGITS = 18


def not_served(spec: ModelSpec) -> ServingError:
    """What TensorFlow Serving says to a call for a model that it does not have."""
    if spec.label is not None:
        return invalid_argument(f"Unrecognized servable version label: {spec.label}")
    version = f"Latest({spec.name})"
    if spec.version is not None:
        version = f"Specific({spec.name}, {spec.version})"
    return ServingError(Code.NOT_FOUND, f"Servable not found for request: {version}")


def _content_length(header: str) -> int:
    """The length of a body that a header tells, 0 where it is none; Tornado refuses a bad one."""
    # More digits are no length that any limit allows, and int() refuses very long texts.
    return int(header[:_MAX_DIGITS]) if header.isdecimal() else 0


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
        size = _content_length(self.request.headers.get("Content-Length", ""))
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
        route = self._route()
        if route.api is Api.STATUS:
            return Response(200, status_json(await self.manager.status(route.spec)))
        client = await self._client_for(route)
        request = self._request()
        request.body = b"".join(self._body)
        self._exchange = client.request(request, route.spec.name)
        return await self._exchange

    def _route(self) -> Route:
        if not is_uri(self._target):
            raise malformed(self._method, self._target)
        return parse_route(self._method, self._target)

    async def _client_for(self, route: Route) -> PoolClient:
        self._track_activity = self._track_predictions and route.is_inference
        client = await self.manager.client_for(route.spec)
        if client is None:
            raise not_served(route.spec)
        return client

    def _request(self) -> Request:
        headers = self.request.headers
        return Request(
            self._method,
            self._target,
            content_encoding=headers.get("Content-Encoding", ""),
            options=headers.get(OPTIONS_HEADER, ""),
            timeout_ms=max(self.manager.rest_api_timeout_in_ms, 0),
        )

    @authorized("execute")
    async def _begin_upload(self) -> None:
        """Send what has come so far; asked for before :meth:`post`, so it asks for leave itself."""
        route = self._route()
        client = await self._client_for(route)
        upload = Upload(client, self._request(), route.spec.name)
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
        """Pass a large answer on as it comes, no faster than the client takes it."""
        self.set_header("Content-Type", answer.content_type)
        try:
            async for chunk in answer.chunks:
                self.write(bytes(chunk))
                await self.flush()
        except StreamClosedError:
            return
        except ServingError as error:
            # Ended in order it would look whole: a broken connection tells the truth.
            self.log.warning("An answer was broken off: %s", error.message)
            self.detach().close()
            return
        finally:
            answer.chunks.close()
        self.finish(set_content_type=answer.content_type)
