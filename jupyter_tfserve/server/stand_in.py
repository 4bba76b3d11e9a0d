"""Answers on the standalone door's socket while there is no pool behind it."""

from __future__ import annotations

import socket
from collections.abc import Callable

from ..errors import error_json
from ..http import HttpServer, Request, Respond, Response
from ..http.routing import is_rest, not_found

_GRACE_S = 1.0


class StandIn:
    """Accepts on the same socket as the pool's process does, and answers 503.

    ``explain`` tells why, at the time of each request; ``headers`` go with every answer.
    """

    def __init__(
        self,
        sock: socket.socket,
        explain: Callable[[], str],
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._sock = sock
        self._explain = explain
        self._headers = (("Retry-After", "1"), *headers)
        self._server: HttpServer | None = None

    async def start(self) -> None:
        """Answer from now on; a second call does nothing."""
        if self._server is None:
            self._server = HttpServer(self._answer)
            await self._server.start(self._sock.dup())

    async def stop(self) -> None:
        """Leave new connections to the pool; those that are open end with their answers."""
        server, self._server = self._server, None
        if server is not None:
            await server.close(_GRACE_S)

    def _answer(self, request: Request, respond: Respond) -> None:
        if not is_rest(request.target):
            respond(not_found())
            return
        # The next request has to come on a new connection, so that it can reach the pool.
        respond(Response(503, error_json(self._explain()), headers=self._headers, close=True))
