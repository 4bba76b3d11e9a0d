"""Answers too large for one frame: chunks on their way from a pool to a caller."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tornado.iostream import StreamClosedError
from traitlets.log import get_logger

from ..errors import Code, ServingError


class ChunkStream:
    """Chunks that one side feeds as they come and the other takes, in order.

    ``taken`` is told how many bytes have left the stream's hands, whether read or thrown away;
    ``abandoned`` is called when the reader ends it before its end. A reader waits no longer for a
    chunk than ``patience_s`` seconds (None: as long as it takes).
    """

    def __init__(
        self,
        taken: Callable[[int], None],
        abandoned: Callable[[], None],
        patience_s: float | None = None,
    ) -> None:
        self._taken = taken
        self._abandoned = abandoned
        self._patience_s = patience_s
        self._chunks: deque[bytes | bytearray] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._error: ServingError | None = None
        self._ended = False
        self.buffered = 0

    def feed(self, chunk: bytes | bytearray, *, last: bool) -> None:
        """The next bytes; nothing follows the last."""
        if self._ended:
            self._taken(len(chunk))
            return
        if chunk:
            self._chunks.append(chunk)
            self.buffered += len(chunk)
        self._ended = last
        self._wake()

    def fail(self, error: ServingError) -> None:
        """No more will come; the reader gets the error at once."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._discard()
            self._wake()

    def close(self) -> None:
        """The reader wants no more; after the end, and twice, it does nothing."""
        if not self._ended:
            self._ended = True
            self._abandoned()
        self._discard()

    def __aiter__(self) -> ChunkStream:
        return self

    async def __anext__(self) -> bytes | bytearray:
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            await self._more()
        chunk = self._chunks.popleft()
        self.buffered -= len(chunk)
        self._taken(len(chunk))
        return chunk

    async def _more(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._patience_s):
                await self._waiter
        except TimeoutError as error:
            self.close()
            text = f"The model pool broke off its answer for {self._patience_s:g} s"
            raise ServingError(Code.DEADLINE_EXCEEDED, text) from error

    def _discard(self) -> None:
        size, self.buffered = self.buffered, 0
        self._chunks.clear()
        self._taken(size)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A :class:`~jupyter_tfserve.wire.Response` whose body is still coming.

    Whoever gets one reads ``chunks`` to the end or closes it.
    """

    status: int
    content_type: str
    chunks: ChunkStream

    async def relay(self, send: Callable[[bytes], Awaitable[None]]) -> bool:
        """Pass the chunks on as they come, no faster than ``send`` returns.

        Returns:
            Whether the caller may end the answer in order. Where it was broken off it would look
            whole then: only a broken connection tells the truth.
        """
        try:
            async for chunk in self.chunks:
                await send(bytes(chunk))
        except StreamClosedError:
            return True  # there is nobody left to be told
        except ServingError as error:
            get_logger().warning("An answer was broken off: %s", error.message)
            return False
        finally:
            self.chunks.close()
        return True
