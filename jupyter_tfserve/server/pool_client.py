"""A door's way into one pool: many small requests on one connection, large bodies on their own.

Everything here runs in one loop's thread. Nothing waits for ever: a lost connection ends all that
waits at once, and a silent pool is given up some time after the request's own deadline.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import Code, ServingError, invalid_argument
from ..wire import Connection, Flag, Kind, Request, Response
from .admission import Admission, Limits
from .answers import ChunkStream, StreamedResponse
from .link import open_link

if TYPE_CHECKING:
    from ..announcement import PoolInfo

GRACE_S = 10.0
"""How long after a request's own time-out a silent pool is given up, in seconds."""

_S_PER_BYTE = 1 / (1 << 20)
"""A silent pool is given a second more for each MiB that it has to read."""
_SWEEP_S = 1.0
_MAX_BUFFERED = 256 << 20
"""Bytes of answers that may wait here for slow readers; beyond it the slowest is dropped."""

Answer = Response | StreamedResponse


def lost_error() -> ServingError:
    """What every waiting request ends with when its pool is gone."""
    return ServingError(Code.UNAVAILABLE, "The model pool ended while the request was under way")


def patience(timeout_ms: int, body_size: int = 0) -> float | None:
    """How long to wait for a pool's answer, in seconds; None is for ever.

    A pool answers at the request's time-out by itself: what goes beyond it is for one that cannot.
    """
    return timeout_ms / 1000 + GRACE_S + body_size * _S_PER_BYTE if timeout_ms > 0 else None


def silent_error(timeout_ms: int) -> ServingError:
    """What a request ends with whose pool let the deadline pass without a word."""
    text = f"The model pool gave no answer within the time-out of {timeout_ms} ms"
    return ServingError(Code.DEADLINE_EXCEEDED, text)


class Exchange:
    """A request under way. Await it for its answer, or be told by :meth:`then`.

    Raises (when awaited, and by :meth:`result`):
        ServingError: UNAVAILABLE where the pool is lost, DEADLINE_EXCEEDED where it is silent,
            CANCELLED after :meth:`cancel`.
    """

    __slots__ = (
        "_client",
        "_listener",
        "_outcome",
        "deadline",
        "id",
        "model",
        "stream",
        "timeout_ms",
    )

    def __init__(
        self, client: PoolClient, exchange: int, model: str, timeout_ms: int, now: float
    ) -> None:
        self._client = client
        self._outcome: Answer | ServingError | None = None
        self._listener: Callable[[], None] | None = None
        self.id = exchange
        self.model = model
        self.timeout_ms = timeout_ms
        self.stream: ChunkStream | None = None
        wait = patience(timeout_ms)
        self.deadline = None if wait is None else now + wait

    def then(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` as soon as there is a :meth:`result`; it must not raise.

        It is called out of the connection's own reading: to be told that way costs no turn of the
        loop.
        """
        if self._outcome is None:
            self._listener = listener
        else:
            listener()

    def result(self) -> Answer:
        """What it came to, once it is over or its stream has begun."""
        outcome = self._outcome
        if isinstance(outcome, ServingError):
            raise outcome
        assert outcome is not None
        return outcome

    def __await__(self) -> Generator[Any, None, Answer]:
        if self._outcome is None:
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

            def tell() -> None:
                if not told.done():
                    told.set_result(None)

            self._listener = tell
            try:
                yield from told
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()

    def cancel(self) -> None:
        """The answer is no longer wanted, as its caller is gone; the pool is told."""
        self._client.drop(self, ServingError(Code.CANCELLED, "The caller is gone"))

    def overdue(self, now: float) -> bool:
        """Whether the pool should have begun its answer by now."""
        return self.deadline is not None and self.deadline < now and self.stream is None

    def settle(self, answer: Answer) -> None:
        """Hand the answer over."""
        self._end(answer)

    def fail(self, error: ServingError) -> None:
        """End it with an error, wherever the answer stands."""
        if self._outcome is None:
            self._end(error)
        elif self.stream is not None:
            self.stream.fail(error)

    def _end(self, outcome: Answer | ServingError) -> None:
        if self._outcome is None:
            self._outcome = outcome
            listener, self._listener = self._listener, None
            if listener is not None:
                listener()


class PoolClient:
    """One pool, connected.

    ``on_event`` is called with every event of the pool once :meth:`call` has subscribed.
    ``closed`` is done when the connection is gone, whoever ended it.
    """

    def __init__(
        self,
        info: PoolInfo,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.info = info
        self.admission = Admission(limits or Limits())
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self.on_event = on_event
        self._connection: Connection | None = None
        self._exchanges: dict[int, Exchange] = {}
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._buffered = 0
        self._sweeper: asyncio.TimerHandle | None = None

    async def connect(self) -> None:
        """Open the connection; called once.

        Raises:
            ServingError: UNAVAILABLE where the pool does not answer, or is not the one announced.
        """
        self._connection = await open_link(self.info, self)

    def close(self) -> None:
        """End the connection; all that waits ends with UNAVAILABLE."""
        if self._connection is not None:
            self._connection.abort()

    # What may be asked

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """Ask the management interface and return the result.

        Raises:
            ServingError: the pool's refusal; UNAVAILABLE where it is lost; DEADLINE_EXCEEDED
                after ``timeout_s`` seconds (None: wait as long as the pool lives).
        """
        connection, exchange = self._connected(), self._new_id()
        future = self._calls[exchange] = self._loop.create_future()
        payload = json.dumps({"method": method, "params": params or {}}).encode()
        try:
            connection.send(Kind.CALL, exchange, payload)
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError as error:
            text = f"The model pool did not answer the call {method!r} within {timeout_s:g} s"
            raise ServingError(Code.DEADLINE_EXCEEDED, text) from error
        except ValueError as error:
            raise invalid_argument(f"The call {method!r} is too large: {error}") from error
        finally:
            self._calls.pop(exchange, None)

    def request(self, request: Request, model: str) -> Exchange:
        """Send a request whose body is no larger than ``STREAM_THRESHOLD``.

        Raises:
            ServingError: UNAVAILABLE where the pool is lost, RESOURCE_EXHAUSTED at a limit.
        """
        connection = self._connected()
        head = encode_head(request)
        self.admission.enter(model)
        now = self._loop.time()
        exchange = Exchange(self, self._new_id(), model, request.timeout_ms, now)
        self._exchanges[exchange.id] = exchange
        connection.send(Kind.REQUEST, exchange.id, head, request.body)
        if len(self._exchanges) == 1:
            connection.flush()  # a lone request has nobody to wait for
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)
        return exchange

    def drop(self, exchange: Exchange, error: ServingError) -> None:
        """End an exchange from this side and tell the pool; nothing for one that is over."""
        if self._forget(exchange) and self._connection is not None:
            self._connection.send(Kind.CANCEL, exchange.id)
            exchange.fail(error)

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            raise ServingError(Code.UNAVAILABLE, "The model pool is gone")
        return self._connection

    def _new_id(self) -> int:
        # 0 is for events. An exchange that has lived through four thousand million others is over.
        self._last_id = self._last_id % 0xFFFFFFFF + 1
        return self._last_id

    def _forget(self, exchange: Exchange) -> bool:
        if self._exchanges.pop(exchange.id, None) is None:
            return False
        self.admission.leave(exchange.model)
        return True

    # What the pool says (Receiver)

    def frame(self, kind: int, flags: int, exchange: int, payload: bytes | bytearray) -> None:
        """One frame of the pool."""
        if kind == Kind.RESPONSE:
            if waiting := self._exchanges.get(exchange):
                self._response(waiting, flags, payload)
        elif kind == Kind.CHUNK:
            if waiting := self._exchanges.get(exchange):
                self._chunk(waiting, flags, payload)
        elif kind == Kind.EVENT:
            if self.on_event is not None:
                self.on_event(json.loads(payload))
        elif kind == Kind.REPLY:
            self._reply(exchange, json.loads(payload))
        else:
            raise ValueError(f"a pool does not send frames of kind {kind}")

    def lost(self) -> None:
        """The connection is gone."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for exchange in tuple(self._exchanges.values()):
            self._forget(exchange)
            exchange.fail(lost_error())
        for call in self._calls.values():
            if not call.done():
                call.set_exception(lost_error())
        if not self.closed.done():
            self.closed.set_result(None)

    def _response(self, exchange: Exchange, flags: int, payload: bytes | bytearray) -> None:
        response = Response.decode(payload)
        if not flags & Flag.MORE:
            self._forget(exchange)
            exchange.settle(response)
            return
        wait = patience(exchange.timeout_ms)
        exchange.stream = ChunkStream(self._taken, exchange.cancel, wait)
        self._feed(exchange.stream, bytes(response.body), last=False)
        exchange.settle(StreamedResponse(response.status, response.content_type, exchange.stream))

    def _chunk(self, exchange: Exchange, flags: int, payload: bytes | bytearray) -> None:
        if exchange.stream is None:
            raise ValueError("a chunk before its response")
        last = not flags & Flag.MORE
        if last:
            self._forget(exchange)
        self._feed(exchange.stream, payload, last=last)

    def _feed(self, stream: ChunkStream, chunk: bytes | bytearray, *, last: bool) -> None:
        self._buffered += len(chunk)
        stream.feed(chunk, last=last)
        if self._buffered > _MAX_BUFFERED:
            # Pausing the connection would hold up everybody for one reader's slowness.
            slowest = max(self._exchanges.values(), key=_backlog, default=None)
            if slowest is not None:
                error = ServingError(Code.RESOURCE_EXHAUSTED, "The answer was read too slowly")
                self.drop(slowest, error)

    def _taken(self, size: int) -> None:
        self._buffered -= size

    def _reply(self, exchange: int, reply: dict[str, Any]) -> None:
        call = self._calls.get(exchange)
        if call is None or call.done():
            return
        if error := reply.get("error"):
            call.set_exception(ServingError(Code[error["code"]], error["message"]))
        else:
            call.set_result(reply.get("result"))

    def _sweep(self) -> None:
        now = self._loop.time()
        for exchange in [e for e in self._exchanges.values() if e.overdue(now)]:
            self.drop(exchange, silent_error(exchange.timeout_ms))
        again = bool(self._exchanges)
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep) if again else None


def _backlog(exchange: Exchange) -> int:
    return exchange.stream.buffered if exchange.stream is not None else 0


def encode_head(request: Request) -> bytes:
    """The head of a request's first frame.

    Raises:
        ServingError: INVALID_ARGUMENT where its target or a header is too long for the wire.
    """
    try:
        return request.head()
    except ValueError as error:
        raise invalid_argument(f"Malformed request: {error}") from error
