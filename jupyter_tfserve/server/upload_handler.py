"""The ordinary lane for a body that is large, or of unknown size or kind."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from tornado import web

from ..errors import ServingError
from ..wire import STREAM_THRESHOLD
from .base_handler import authorized
from .calls import client_for, content_length, new_request
from .handlers import RestHandler
from .upload import Upload

if TYPE_CHECKING:
    from tornado.http1connection import HTTP1Connection

    from .pool_client import Answer
    from .pool_manager import PoolManager


@web.stream_request_body
class UploadHandler(RestHandler):
    """One request to ``/v1/…`` with any body at all.

    A small body is gathered and sent as one frame; one that grows beyond the wire's threshold is
    passed on as it arrives, no faster than the pool takes it.
    """

    def initialize(  # type: ignore[override]
        self, *, manager: PoolManager, prefix_length: int, track_predictions: bool
    ) -> None:
        """Tornado: what the route table says, see :class:`RestHandler`."""
        super().initialize(
            manager=manager, prefix_length=prefix_length, track_predictions=track_predictions
        )
        self._body: list[bytes] = []
        self._size = 0
        self._refusal: ServingError | web.HTTPError | None = None
        self._upload: Upload | None = None

    async def prepare(self) -> None:  # type: ignore[override]
        """Jupyter's checks, and what can be said before the body has come."""
        try:
            await super().prepare()
            await self._prepare_body()
        except (ServingError, web.HTTPError) as error:
            headers = self.request.headers
            has_body = "Content-Length" in headers or "Transfer-Encoding" in headers
            if not has_body or "Expect" in headers or self.method == "OPTIONS":
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
        if size > STREAM_THRESHOLD and self.method == "POST":
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
        if self._size > STREAM_THRESHOLD and self.method == "POST":
            return self._grow_into_upload()
        return None

    def on_connection_close(self) -> None:
        """The client is gone: so is the wish for an answer."""
        super().on_connection_close()
        if self._upload is not None:
            self._upload.abort()

    async def answer(self) -> Answer:
        """The same, or what the upload comes to."""
        if self._refusal is not None:
            raise self._refusal  # before anything else, whatever the verb
        if self._upload is not None:
            return await self._upload.finish()
        return await super().answer()

    def whole_body(self) -> bytes:
        """The body that has come."""
        return b"".join(self._body)

    @authorized("execute")
    async def _begin_upload(self) -> None:
        """Send what has come so far; asked for before :meth:`post`, so it asks for leave itself."""
        route = await self.find()
        request = new_request(self.manager, self.request, self.target)
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
