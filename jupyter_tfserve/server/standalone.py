"""``jupyter tfserve``: the REST API on a port of its own, without a Jupyter server.

This process owns the listening socket and hands it to the pool's, which answers by itself. It
watches the pool, restarts it, and answers 503 in its place meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from jupyter_core.application import JupyterApp
from traitlets import Bool, Int, Unicode, default

from .._version import __version__
from ..errors import Code, ServingError
from ..state import ManagerState, ServableState
from .flags import SWITCHES, VALUES, normalise
from .managed_pool import Phase
from .pool_manager import PoolManager
from .stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Sequence

_CORS = (
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Methods", "POST, GET"),
    ("Access-Control-Allow-Headers", "Content-Type"),
)
_PATIENCE_S = 10.0
"""Once a model is available, the door opens after this even if others still load, in seconds."""
_LOOK_S = 0.2
_CALL_S = 30.0


class StandaloneManager(PoolManager):
    """The pool manager with TensorFlow Serving's own defaults."""

    max_num_load_retries = Int(
        5, config=True, help="How often a failed load is repeated before the version is given up."
    )
    max_body_bytes = Int(
        1 << 30, config=True, help="Largest body of a request that is accepted, in bytes."
    )


class TFServeApp(JupyterApp):
    """Serve TensorFlow models over TensorFlow Serving's REST API."""

    name = "jupyter-tfserve"
    version = __version__
    description = """Serve TensorFlow models over TensorFlow Serving's REST API.

    One model by --model_base_path, or many by --model_config_file. The flags are TensorFlow
    Serving's. Nothing but the REST API is served, and on this machine alone unless --rest_api_host
    says otherwise."""
    examples = """
    jupyter tfserve --model_name=half_plus_three --model_base_path=$PWD/half_plus_three

    curl -d '{"instances": [1.0, 2.0, 5.0]}' localhost:8501/v1/models/half_plus_three:predict
    """
    classes = [StandaloneManager]  # noqa: RUF012 - as traitlets wants it

    rest_api_port = Int(8501, config=True, help="Port of the REST API.")
    rest_api_host = Unicode(
        "127.0.0.1",
        config=True,
        help="Address to listen on; 0.0.0.0 lets every machine in that can reach it.",
    )
    rest_api_enable_cors_support = Bool(
        False, config=True, help="Allow pages of any origin to call the REST API."
    )
    strict_start = Bool(
        False, config=True, help="Do not start where a model fails, as TensorFlow Serving does."
    )

    # Vertex AI tells its containers by this variable to listen for other machines.
    @default("rest_api_port")
    def _default_port(self) -> int:
        return int(os.environ.get("AIP_HTTP_PORT", "8501"))

    @default("rest_api_host")
    def _default_host(self) -> str:
        return "0.0.0.0" if "AIP_HTTP_PORT" in os.environ else "127.0.0.1"  # noqa: S104

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        own = type(self).class_own_traits()
        section = {name: type(self).__name__ for name in own}
        aliases = {n: f"{section.get(n, 'StandaloneManager')}.{n}" for n in VALUES + SWITCHES}
        self.aliases = {**aliases, **self.aliases}

    def parse_command_line(self, argv: Sequence[str] | None = None) -> None:
        """Read the flags in all the spellings that TensorFlow Serving's users know."""
        flags = normalise(sys.argv[1:] if argv is None else argv)
        super().parse_command_line(flags.argv)
        for notice in flags.notices:
            self.log.warning("%s", notice)

    def start(self) -> None:
        """Serve until told to stop; ends the process with 0, or 1 where it could not serve."""
        super().start()
        self.exit(asyncio.run(self.serve()))

    async def serve(self) -> int:
        """Serve until a signal comes; returns the exit status."""
        manager = StandaloneManager(parent=self)
        if not manager.model_base_path and not manager.model_config_file:
            text = "Both server_options.model_base_path and server_options.model_config_file are"
            self.log.critical("Failed to start server. Error: INVALID_ARGUMENT: %s empty!", text)
            return 1
        try:
            sock = self._listen()
        except OSError as error:
            self.log.critical("Failed to start server. Error: %s", error)
            return 1
        with sock:
            manager.http = {"fd": sock.fileno(), "cors": self.rest_api_enable_cors_support}
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            door = Door(self, manager, sock)
            serving = asyncio.ensure_future(door.serve())
            stopping = asyncio.ensure_future(stop.wait())
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            status = serving.result() if serving.done() else 0
            serving.cancel()
            stopping.cancel()
            await door.close()
            return status

    def _listen(self) -> socket.socket:
        from ..http import listen

        if self.rest_api_port == 0:
            raise OSError("--rest_api_port=0 turns the REST API off, and nothing else is served")
        if self.rest_api_host not in ("127.0.0.1", "::1", "localhost"):
            self.log.warning(
                "Listening on %s: whoever reaches this machine's port %s can call the models",
                self.rest_api_host,
                self.rest_api_port,
            )
        return listen(self.rest_api_host, self.rest_api_port)


class Door:
    """The socket, and who answers on it: the pool, or this process in its place."""

    def __init__(self, app: TFServeApp, manager: PoolManager, sock: socket.socket) -> None:
        self._log = app.log
        self._strict = app.strict_start
        self._manager = manager
        self._host, self._port = sock.getsockname()[:2]
        cors = _CORS if app.rest_api_enable_cors_support else ()
        self._stand_in = StandIn(sock, lambda: manager.managed.explanation, cors)
        self._changed = asyncio.Event()
        manager.on_phase = lambda _phase: self._changed.set()
        manager.managed.mirror.bus.subscribe(self._log_state)

    async def serve(self) -> int:
        """Serve until the pool is given up; returns the exit status then."""
        await self._stand_in.start()
        try:
            await self._manager.start_configured()
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

    async def _open(self, *, again: bool) -> None:
        """Let the pool answer once its models are there."""
        await self._settled()
        client = self._manager.managed.mirror.client
        if client is None:
            return
        try:
            await client.call("open_http", timeout_s=_CALL_S)
        except ServingError as error:
            if error.code is not Code.UNIMPLEMENTED:  # an older pool has opened by itself
                self._log.warning("The pool does not take the door over: %s", error.message)
                return
        await self._stand_in.stop()
        host = f"[{self._host}]" if ":" in self._host else self._host
        text = "Serving again at" if again else "Serving TensorFlow Serving's REST API at"
        self._log.info("%s http://%s:%s/v1/models/", text, host, self._port)

    # Models

    async def _settled(self) -> None:
        """Wait for the first outcome of each model, but not for one that keeps all others back."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + _PATIENCE_S
        said: set[str] = set()
        while self._manager.managed.mirror.client is not None:
            pending, available = await self._look(said)
            if not pending or (available and loop.time() > latest):
                return
            await asyncio.sleep(_LOOK_S)

    async def _all_available(self) -> None:
        said: set[str] = set()
        await self._settled()
        await self._look(said)
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
        for model in await self._manager.describe_models():
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


def main() -> None:
    """The command ``jupyter tfserve``."""
    TFServeApp.launch_instance()


if __name__ == "__main__":
    main()
