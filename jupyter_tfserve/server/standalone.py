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
from traitlets import Bool, Int, TraitError, Unicode, default

from .._version import __version__
from ..errors import ServingError
from .flags import SWITCHES, VALUES, FlagError, normalise
from .pool_manager import PoolManager
from .standalone_door import StandaloneDoor

if TYPE_CHECKING:
    from collections.abc import Sequence


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

    rest_api_port = Int(8501, min=0, max=65535, config=True, help="Port of the REST API.")
    rest_api_host = Unicode(
        "127.0.0.1",
        config=True,
        help="Address to listen on; 0.0.0.0 lets every machine in that can reach it.",
    )
    rest_api_enable_cors_support = Bool(
        False, config=True, help="Allow pages of any origin to call the REST API."
    )
    monitoring_config_file = Unicode(
        "",
        config=True,
        help="File with a MonitoringConfig in protobuf text format: whether, and at which path, "
        "metrics are told to Prometheus.",
    )
    strict_start = Bool(
        False, config=True, help="Do not start where a model fails, as TensorFlow Serving does."
    )

    # Vertex AI tells its containers by this variable to listen for other machines.
    @default("rest_api_port")
    def _default_port(self) -> int:
        port = os.environ.get("AIP_HTTP_PORT", "8501")
        if not port.isdecimal():
            raise TraitError(f"The variable AIP_HTTP_PORT is no port: {port!r}")
        return int(port)

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
        try:
            flags = normalise(sys.argv[1:] if argv is None else argv)
        except FlagError as error:
            self.log.critical("Failed to start server. Error: %s", error)
            self.exit(1)
        super().parse_command_line(flags.argv)
        for notice in flags.notices:
            self.log.warning("%s", notice)

    def start(self) -> None:
        """Serve until told to stop; ends the process with 0, or 1 where it could not serve."""
        super().start()
        self.exit(asyncio.run(self.serve()))

    async def serve(self) -> int:
        """Serve until a signal comes; returns the exit status."""
        try:
            manager = StandaloneManager(parent=self)
            if len(manager.fleet) > 1:
                raise TraitError(
                    "The process that answers on the port holds all models: "
                    "--StandaloneManager.pools may list one pool here"
                )
        except (OSError, TraitError, ServingError) as error:
            self.log.critical("Failed to start server. Error: %s", error)
            return 1
        if not manager.model_base_path and not manager.model_config_file:
            text = "Both server_options.model_base_path and server_options.model_config_file are"
            self.log.critical(
                "Failed to start server. Error: INVALID_ARGUMENT: %s empty! "
                "Give --model_base_path=… or --model_config_file=…",
                text,
            )
            return 1
        try:
            sock = self._listen()
        except (OSError, TraitError) as error:
            self.log.critical("Failed to start server. Error: %s", error)
            return 1
        with sock:
            manager.http = {"fd": sock.fileno(), "cors": self.rest_api_enable_cors_support}
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            door = StandaloneDoor(
                manager,
                sock,
                cors=self.rest_api_enable_cors_support,
                strict=self.strict_start,
                monitoring_config_file=self.monitoring_config_file,
                log=self.log,
            )
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


def main() -> None:
    """The command ``jupyter tfserve``."""
    TFServeApp.launch_instance()


if __name__ == "__main__":
    main()
