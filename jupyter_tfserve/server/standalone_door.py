"""Who answers on the standalone door's socket, and when: the pool, or its stand-in."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from ..errors import Code, ServingError
from ..http.cors import CORS_HEADERS
from ..state import ManagerState, ServableState
from .managed_pool import Phase
from .stand_in import StandIn

if TYPE_CHECKING:
    from .pool_manager import PoolManager

Log = logging.Logger | logging.LoggerAdapter[logging.Logger]

_PATIENCE_S = 10.0
"""Once a model is available, the door opens after this even if others still load, in seconds."""
_LOOK_S = 0.2
_CALL_S = 30.0


class StandaloneDoor:
    """The socket, and who answers on it: the pool, or this process in its place."""

    def __init__(
        self,
        manager: PoolManager,
        sock: socket.socket,
        *,
        cors: bool,
        strict: bool,
        monitoring_config_file: str,
        log: Log,
    ) -> None:
        """Take part in the command.

        Args:
            manager: whose managed pool has inherited the socket.
            sock: listening.
            cors: TensorFlow Serving's ``--rest_api_enable_cors_support``.
            strict: whether a model that fails at start ends it all.
            monitoring_config_file: TensorFlow Serving's flag of that name; empty is none.
            log: where the user reads.
        """
        self._log = log
        self._strict = strict
        self._monitoring_config_file = monitoring_config_file
        self._metrics_path: str | None = None
        self._manager = manager
        self._host, self._port = sock.getsockname()[:2]
        headers = CORS_HEADERS if cors else ()
        self._stand_in = StandIn(sock, self._explain, headers)
        self._changed = asyncio.Event()
        manager.on_phase = lambda _phase: self._changed.set()
        manager.managed.mirror.bus.subscribe(self._log_state)

    async def serve(self) -> int:
        """Serve until the pool is given up; returns the exit status then."""
        await self._stand_in.start()
        self._log.info("Listening on port %s; TensorFlow and the models are loading", self._port)
        try:
            await self._manager.start_configured()
            self._manager.follow_config_file()
            await self._read_monitoring_config()
            if self._strict:
                await self._all_available()
        except ServingError as error:
            self._log.critical("Failed to start server. Error: %s", error)
            return 1
        opened = False
        while self._manager.managed.phase is not Phase.FAILED:
            self._changed.clear()
            if self._manager.managed.phase is Phase.RUNNING:
                await self._open(again=opened)
                opened = True
            else:
                await self._stand_in.start()
            await self._changed.wait()
        return 1

    async def close(self) -> None:
        """End the pool and the answers in its place."""
        await self._manager.stop()
        await self._stand_in.stop()

    async def _read_monitoring_config(self) -> None:
        if self._monitoring_config_file:
            client = await self._manager.managed.ensure_running()
            parameters = {"path": self._monitoring_config_file}
            answer = await client.call("load_monitoring_file", parameters, _CALL_S)
            self._metrics_path = answer["metrics_path"]

    def _explain(self) -> str:
        """Why the stand-in answers, in words for its callers."""
        if self._manager.managed.phase is Phase.RUNNING:
            return "The model pool is loading its models"
        return self._manager.managed.explanation

    async def _open(self, *, again: bool) -> None:
        """Let the pool answer once its models are there."""
        await self._settled()
        client = self._manager.managed.mirror.client
        if client is None:
            return
        try:
            parameters = {"metrics_path": self._metrics_path} if self._metrics_path else {}
            await client.call("open_http", parameters, _CALL_S)
        except ServingError as error:
            if error.code is not Code.UNIMPLEMENTED:  # an older pool has opened by itself
                self._log.warning("The pool does not take the door over: %s", error.message)
                return
        await self._stand_in.stop()
        host = f"[{self._host}]" if ":" in self._host else self._host
        ready = "Ready again" if again else "Ready"
        self._log.info("%s: http://%s:%s/v1/models/NAME", ready, host, self._port)

    # Models

    async def _settled(self) -> set[str]:
        """Wait for the first outcome of each model, but not for one that keeps all others back.

        Returns the models without any version to load, which have been told.
        """
        loop = asyncio.get_running_loop()
        latest = loop.time() + _PATIENCE_S
        said: set[str] = set()
        while self._manager.managed.mirror.client is not None:
            pending, available = await self._look(said)
            if not pending or (available and loop.time() > latest):
                break
            await asyncio.sleep(_LOOK_S)
        return said

    async def _all_available(self) -> None:
        said = await self._settled()
        errors = [
            f"{{{state.id} due to error: {state.code.name}: {state.message}}}, "
            for model in self._manager.config_in_force.models
            for state in self._manager.managed.mirror.monitor.versions(model.name)
            if state.state is ManagerState.END and state.code is not Code.OK
        ]
        errors += [f"{{name: {name}}}, " for name in sorted(said)]
        if errors:
            text = f"{len(errors)} servable(s) did not become available: {{{''.join(errors)}}}"
            raise ServingError(Code.UNKNOWN, text)

    async def _look(self, said: set[str]) -> tuple[set[str], bool]:
        """The models without an outcome, and whether any is available; tells new problems."""
        monitor = self._manager.managed.mirror.monitor
        settled, available = set(), False
        for model in await self._manager.overview.models():
            states = {state.state for state in monitor.versions(model["name"])}
            if ManagerState.AVAILABLE in states or ManagerState.END in states:
                settled.add(model["name"])
            elif model["problem"] and not states:
                settled.add(model["name"])
                if model["name"] not in said:
                    said.add(model["name"])
                    self._log.warning("%s: %s", model["name"], model["problem"])
            available = available or ManagerState.AVAILABLE in states
        names = {model.name for model in self._manager.config_in_force.models}
        return names - settled, available

    def _log_state(self, state: ServableState) -> None:
        if state.code is not Code.OK:
            self._log.error("%s: %s: %s", state.id, state.state.name, state.message)
        elif state.state in (ManagerState.AVAILABLE, ManagerState.END):
            self._log.info("%s: %s", state.id, state.state.name)
