"""A door's end of one connection to a pool: both sides prove themselves before frames flow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from ..errors import Code, ServingError
from ..wire import Connection, DoorHandshake, HandshakeError, Kind
from ..wire.handshake import TIMEOUT_S

if TYPE_CHECKING:
    from ..announcement import PoolInfo


class Receiver(Protocol):
    """Who takes the frames of a proved connection; called in the loop's thread, must not block."""

    def frame(self, kind: int, flags: int, exchange: int, payload: bytes | bytearray) -> None:
        """One whole frame. A ValueError raised here closes the connection."""

    def lost(self) -> None:
        """The connection is gone, whoever ended it. Called once, only after it was proved."""


class _Door:
    """The :class:`~jupyter_tfserve.wire.FrameHandler` that shakes hands, then passes frames on."""

    def __init__(self, secret: str, receiver: Receiver) -> None:
        self._handshake = DoorHandshake(secret)
        self._receiver = receiver
        self._trusted = False
        self.proved: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()

    def connection_made(self, connection: Connection) -> None:
        connection.send(Kind.HELLO, 0, self._handshake.hello())

    def frame_received(
        self,
        connection: Connection,
        kind: int,
        flags: int,
        exchange: int,
        payload: bytes | bytearray,
    ) -> None:
        if self._trusted:
            self._receiver.frame(kind, flags, exchange, payload)
            return
        try:
            proof = self._prove(kind, payload)
        except HandshakeError as error:
            self._fail(error)
            raise ValueError(str(error)) from error
        connection.send(Kind.PROOF, 0, proof)
        connection.trust()
        self._trusted = True
        if not self.proved.done():
            self.proved.set_result(connection)

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        if self._trusted:
            self._receiver.lost()
        else:
            self._fail(error or ConnectionResetError("it closed the connection"))

    def _prove(self, kind: int, hello: bytes | bytearray) -> bytes:
        if kind != Kind.HELLO:
            raise HandshakeError("the peer does not speak the pool's protocol")
        return self._handshake.answer(hello)

    def _fail(self, error: Exception) -> None:
        if not self.proved.done():
            self.proved.set_exception(error)


async def open_link(info: PoolInfo, receiver: Receiver) -> Connection:
    """Connect to a pool and prove both sides; frames go to ``receiver`` from then on.

    Raises:
        ServingError: UNAVAILABLE where nobody answers in time, or not the pool that was announced.
    """
    loop = asyncio.get_running_loop()
    transport: asyncio.BaseTransport | None = None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            door = _Door(info.secret, receiver)
            if info.unix_path is not None:
                transport, _ = await loop.create_unix_connection(
                    lambda: Connection(door), info.unix_path
                )
            else:
                host, _, port = info.address.removeprefix("tcp:").rpartition(":")
                transport, _ = await loop.create_connection(
                    lambda: Connection(door), host, int(port)
                )
            return await door.proved
    except BaseException as error:
        if isinstance(transport, asyncio.Transport):
            transport.abort()
        if isinstance(error, TimeoutError):
            text = f"The model pool (process {info.pid}) did not answer within {TIMEOUT_S:g} s"
            raise ServingError(Code.UNAVAILABLE, text) from error
        if isinstance(error, OSError | ValueError):
            text = f"The model pool (process {info.pid}) cannot be reached: {error}"
            raise ServingError(Code.UNAVAILABLE, text) from error
        raise
