"""The pool's end of the wire: doors prove themselves, then their requests are answered.

Everything here runs in the pool's loop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ..errors import Code, ServingError
from ..wire import (
    CHUNK_SIZE,
    STREAM_THRESHOLD,
    Api,
    Connection,
    Flag,
    HandshakeError,
    Kind,
    PoolHandshake,
    Request,
    Response,
)
from ..wire.handshake import TIMEOUT_S
from .call import error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from .control import Control
    from .rest_api import RestApi

log = logging.getLogger(__name__)


class DoorConnection:
    """One door's connection, seen from the pool."""

    def __init__(self, secret: str, rest: RestApi, control: Control, max_body_bytes: int) -> None:
        self._handshake = PoolHandshake(secret)
        self._rest = rest
        self._control = control
        self._max_body_bytes = max_body_bytes
        self._trusted = False
        self._greeted = False
        self._give_up: dict[int, Callable[[], None]] = {}
        self._bodies: dict[int, tuple[Request, bytearray]] = {}
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    # Frames

    def connection_made(self, connection: Connection) -> None:
        """A peer may connect, but has to prove itself soon."""
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT_S, connection.abort)

    def frame_received(
        self,
        connection: Connection,
        kind: int,
        flags: int,
        exchange: int,
        payload: bytes | bytearray,
    ) -> None:
        """One frame of the door."""
        if not self._trusted:
            self._shake_hands(connection, kind, payload)
        elif kind == Kind.REQUEST:
            request = Request.decode(payload)
            if flags & Flag.MORE:
                self._bodies[exchange] = (request, bytearray(request.body))
            else:
                self._answer(connection, exchange, request)
        elif kind == Kind.CHUNK:
            self._chunk_received(connection, flags, exchange, payload)
        elif kind == Kind.CANCEL:
            self._cancel(exchange)
        elif kind == Kind.CALL:
            self._control.call(connection, exchange, payload)
        else:
            raise ValueError(f"a door does not send frames of kind {kind}")

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        """The door is gone: nobody waits for its answers any more."""
        if self._timer is not None:
            self._timer.cancel()
        for exchange in [*self._give_up, *self._sending]:
            self._cancel(exchange)
        self._bodies.clear()
        if self._trusted:
            self._control.door_lost(connection)

    def _shake_hands(self, connection: Connection, kind: int, payload: bytes | bytearray) -> None:
        try:
            if kind == Kind.HELLO and not self._greeted:
                self._greeted = True
                connection.send(Kind.HELLO, 0, self._handshake.answer(payload))
            elif kind == Kind.PROOF and self._greeted:
                self._handshake.check(payload)
                self._trusted = True
                connection.trust()
                if self._timer is not None:
                    self._timer.cancel()
            else:
                raise HandshakeError("a frame before the handshake")
        except HandshakeError as error:
            log.warning("A peer was turned away: %s", error)
            connection.abort()

    # Requests

    def _chunk_received(
        self, connection: Connection, flags: int, exchange: int, payload: bytes | bytearray
    ) -> None:
        if exchange not in self._bodies:
            return  # refused or cancelled; the rest of its body is dropped
        request, body = self._bodies[exchange]
        if len(body) + len(payload) > self._max_body_bytes:
            del self._bodies[exchange]
            text = f"The request's body is over the pool's limit of {self._max_body_bytes} bytes"
            self._send(
                connection, exchange, error_response(ServingError(Code.INVALID_ARGUMENT, text))
            )
            return
        body += payload
        if not flags & Flag.MORE:
            del self._bodies[exchange]
            request.body = body
            self._answer(connection, exchange, request)

    def _answer(self, connection: Connection, exchange: int, request: Request) -> None:
        if request.api is not Api.REST:
            text = f"The pool answers no requests of the kind {request.api.name}"
            self._send(connection, exchange, error_response(ServingError(Code.UNIMPLEMENTED, text)))
            return

        def respond(response: Response) -> None:
            self._give_up.pop(exchange, None)
            self._send(connection, exchange, response)

        give_up = self._rest.handle(request, respond)
        if give_up is not None:
            self._give_up[exchange] = give_up

    def _cancel(self, exchange: int) -> None:
        self._bodies.pop(exchange, None)
        if give_up := self._give_up.pop(exchange, None):
            give_up()
        if task := self._sending.pop(exchange, None):
            task.cancel()

    # Responses

    def _send(self, connection: Connection, exchange: int, response: Response) -> None:
        if len(response.body) <= STREAM_THRESHOLD:
            connection.send(Kind.RESPONSE, exchange, response.head(), response.body)
            return
        task = asyncio.get_running_loop().create_task(self._stream(connection, exchange, response))
        self._sending[exchange] = task
        task.add_done_callback(lambda _: self._sending.pop(exchange, None))

    async def _stream(self, connection: Connection, exchange: int, response: Response) -> None:
        try:
            connection.send(Kind.RESPONSE, exchange, response.head(), flags=Flag.MORE)
            body = memoryview(response.body)
            for start in range(0, len(body), CHUNK_SIZE):
                more = Flag.MORE if start + CHUNK_SIZE < len(body) else Flag.NONE
                chunk = body[start : start + CHUNK_SIZE]
                connection.send(Kind.CHUNK, exchange, chunk, flags=more)
                await connection.drain()
        except ConnectionError:
            return
