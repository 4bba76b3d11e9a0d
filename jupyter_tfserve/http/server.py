"""An HTTP/1.1 server on one listening socket, in the running loop."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .acceptor import Acceptor
from .limits import Limits
from .protocol import Context, HttpProtocol
from .reactor import Reactor

if TYPE_CHECKING:
    from .message import Application

_BACKLOG = 1024


def _nothing() -> None:
    pass


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one, and ``::`` means IPv4 too."""
    return socket.create_server(
        (host, port),
        family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        backlog=_BACKLOG,
        dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6(),
    )


class HttpServer:
    """Serves an application; all of it in the thread of the loop that :meth:`start` runs in.

    Requests that are there at the same time are given to the application in one turn, between
    ``before_turn`` and ``after_turn``. ``sweep_s`` is how often connections are looked over for
    overdue waits; ``clock`` tells seconds that never go back.
    """

    def __init__(
        self,
        application: Application,
        limits: Limits | None = None,
        *,
        before_turn: Callable[[], None] = _nothing,
        after_turn: Callable[[], None] = _nothing,
        sweep_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = Context(application, limits or Limits())
        self._turn = before_turn, after_turn
        self._sweep_s = sweep_s
        self._clock = clock
        self._reactor: Reactor | None = None
        self._acceptor: Acceptor | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._context.connections)

    async def start(self, where: socket.socket | tuple[str, int]) -> tuple[str, int]:
        """Serve on a listening socket, which is the server's from now on, or on a host and port.

        Returns the address that is served; for a Unix socket its path and 0.

        Raises:
            OSError: The address cannot be bound.
        """
        sock = listen(*where) if isinstance(where, tuple) else where
        name = sock.getsockname()
        loop = asyncio.get_running_loop()
        reactor = self._reactor = Reactor(loop, *self._turn)
        self._acceptor = Acceptor(
            loop, sock, lambda connection: reactor.add(connection, HttpProtocol(self._context))
        )
        self._sweeper = loop.call_later(self._sweep_s, self._sweep_again)
        return (name, 0) if isinstance(name, str) else (name[0], name[1])

    def _sweep_again(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(self._sweep_s, self._sweep_again)
        self.sweep()

    def sweep(self) -> None:
        """Read the clocks, and end what is overdue: one timer for all connections."""
        self._context.heads.tick()
        now = self._clock()
        for connection in tuple(self._context.connections):
            connection.check(now)

    async def close(self, grace_s: float = 0.0) -> None:
        """Accept no more, wait ``grace_s`` seconds for answers under way, then cut the rest.

        Closing again does no harm.
        """
        context = self._context
        context.closing = True
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        for connection in tuple(context.connections):
            connection.leave()
        await self._emptied(grace_s)
        for connection in tuple(context.connections):
            connection.abort()
        await self._emptied(None)
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._reactor is not None:
            self._reactor.close()
            self._reactor = None

    async def _emptied(self, timeout_s: float | None) -> None:
        if self._context.connections:
            empty = asyncio.Event()
            self._context.on_empty = empty.set
            try:
                async with asyncio.timeout(timeout_s):
                    await empty.wait()
            except TimeoutError:
                pass
