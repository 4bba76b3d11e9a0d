"""Many connections in one reader of the loop, served by turns.

A turn receives from every connection that has something to say, and only then lets the application
answer what came. So requests that arrive together can be worked on together, and the loop's own
work for each event is spared.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from .transport import SocketTransport

if TYPE_CHECKING:
    from .transport import Protocol

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Reactor:
    """Watches connections in the running loop's thread.

    Args:
        loop: must be able to watch a selector's descriptor, as all on Linux and macOS are.
        before_turn, after_turn: called around the receiving of what has arrived.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        before_turn: Callable[[], None],
        after_turn: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._before_turn = before_turn
        self._after_turn = after_turn
        self._selector = selectors.DefaultSelector()
        self._fd = self._selector.fileno()
        loop.add_reader(self._fd, self._turn)

    def add(self, sock: socket.socket, protocol: Protocol) -> None:
        """Serve a connected socket, which is the reactor's from now on."""
        sock.setblocking(False)
        SocketTransport(self._loop, self._selector, sock, protocol)

    def _turn(self) -> None:
        ready = self._selector.select(0)
        self._before_turn()
        for key, events in ready:
            transport: SocketTransport = key.data
            if events & _WRITE:
                transport.send()
            if events & _READ:
                transport.receive()
        self._after_turn()

    def close(self) -> None:
        """Watch no more; connections must have been closed before."""
        self._loop.remove_reader(self._fd)
        self._selector.close()
