"""A request with a large body: passed on as it arrives, on a connection of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..errors import Code, ServingError
from ..wire import CHUNK_SIZE, Connection, Flag, Kind, Request, Response
from .answers import ChunkStream, StreamedResponse
from .link import open_link
from .pool_client import Answer, PoolClient, encode_head, lost_error, patience, silent_error

if TYPE_CHECKING:
    from ..wire.connection import Buffer

_EXCHANGE = 1
_MAX_BACKLOG = 4 * CHUNK_SIZE
"""How much of an answer is read ahead of its reader, in bytes."""


class Upload:
    """One such request, from its head to its answer.

    An answer may come before the body has ended, as a refusal does; the rest of the body is then
    taken and dropped.
    """

    def __init__(self, client: PoolClient, request: Request, model: str) -> None:
        self._client = client
        self._request = request
        self._model = model
        self._connection: Connection | None = None
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._stream: ChunkStream | None = None
        self._admitted = False
        self._size = 0

    async def open(self) -> None:
        """Connect and send the head; called once.

        Raises:
            ServingError: UNAVAILABLE where the pool is lost, RESOURCE_EXHAUSTED at a limit.
        """
        head = encode_head(self._request)
        self._client.admission.enter(self._model)
        self._admitted = True
        try:
            self._connection = await open_link(self._client.info, self)
        except BaseException:
            self._leave()
            raise
        self._connection.send(Kind.REQUEST, _EXCHANGE, head, flags=Flag.MORE)
        await self.write(self._request.body)

    async def write(self, data: Buffer) -> None:
        """Pass bytes of the body on; returns when the pool is ready for more."""
        view = memoryview(data)
        self._size += len(view)
        for start in range(0, len(view), CHUNK_SIZE):
            if self._connection is None or self._answer.done():
                return
            chunk = view[start : start + CHUNK_SIZE]
            self._connection.send(Kind.CHUNK, _EXCHANGE, chunk, flags=Flag.MORE)
            try:
                await self._connection.drain()
            except ConnectionError:
                return  # finish() tells

    async def finish(self) -> Answer:
        """The body is whole: wait for the answer.

        Raises:
            ServingError: UNAVAILABLE where the pool is lost, DEADLINE_EXCEEDED where it is silent,
                CANCELLED after :meth:`abort`.
        """
        if self._connection is not None and not self._answer.done():
            self._connection.send(Kind.CHUNK, _EXCHANGE)
        timeout_ms = self._request.timeout_ms
        try:
            async with asyncio.timeout(patience(timeout_ms, self._size)):
                return await self._answer
        except TimeoutError as error:
            self.abort()
            raise silent_error(timeout_ms) from error
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        """The answer is no longer wanted; the pool notices by the end of the connection."""
        if not self._answer.done():
            self._answer.set_exception(ServingError(Code.CANCELLED, "The caller is gone"))
            self._answer.exception()  # its caller need not be there to hear it
        if self._connection is not None:
            self._connection.abort()

    # What the pool says (Receiver)

    def frame(self, kind: int, flags: int, exchange: int, payload: bytes | bytearray) -> None:
        """One frame of the pool: the response, or a chunk of it."""
        if exchange != _EXCHANGE or kind not in (Kind.RESPONSE, Kind.CHUNK):
            raise ValueError(f"a frame of kind {kind} where an answer is due")
        last = not flags & Flag.MORE
        if kind == Kind.RESPONSE:
            response = Response.decode(payload)
            if last:
                self._settle(response)
            else:
                wait = patience(self._request.timeout_ms)
                self._stream = ChunkStream(self._taken, self.abort, wait)
                self._stream.feed(bytes(response.body), last=False)
                self._settle(StreamedResponse(response.status, response.content_type, self._stream))
        elif self._stream is not None:
            self._stream.feed(payload, last=last)
            if self._stream.buffered > _MAX_BACKLOG and self._connection is not None:
                self._connection.pause_reading()
        if last and self._connection is not None:
            self._connection.close()

    def lost(self) -> None:
        """The connection is gone."""
        self._leave()
        if not self._answer.done():
            self._answer.set_exception(lost_error())
            self._answer.exception()
        if self._stream is not None:
            self._stream.fail(lost_error())

    def _settle(self, answer: Answer) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    def _taken(self, _size: int) -> None:
        backlog = self._stream.buffered if self._stream is not None else 0
        if backlog <= _MAX_BACKLOG // 2 and self._connection is not None:
            self._connection.resume_reading()

    def _leave(self) -> None:
        if self._admitted:
            self._admitted = False
            self._client.admission.leave(self._model)
