"""Accepts connections on a listening socket, and keeps its head when descriptors run out."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

_log = logging.getLogger(__name__)

_BATCH = 64  # connections accepted in one turn of the loop
_RETRY_S = 0.25
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Acceptor:
    """Hands each connection of ``sock``, which it owns from now on, to ``attach``.

    asyncio's own servers log a hundred errors a second when there are no descriptors left. Several
    processes may accept on one socket.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        attach: Callable[[socket.socket], None],
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._attach = attach
        self._retry: asyncio.TimerHandle | None = None
        self._listen()

    def _listen(self) -> None:
        self._retry = None
        self._loop.add_reader(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_BATCH):
            try:
                connection, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in _EXHAUSTED:
                    raise
                _log.warning("Accepts no connections for %s s: %s", _RETRY_S, problem)
                self._loop.remove_reader(self._sock.fileno())
                self._retry = self._loop.call_later(_RETRY_S, self._listen)
                return
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._attach(connection)

    def close(self) -> None:
        """Stop accepting; connections not accepted yet are refused or left to other processes."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
