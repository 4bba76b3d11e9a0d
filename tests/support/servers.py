"""Real servers as processes: started, asked, killed, and looked at from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from jupyter_tfserve.announcement import is_alive

T = TypeVar("T")

# A pool loads TensorFlow before it answers; on busy cores that takes its time.
PATIENCE_S = 200.0
TOKEN = "a-token-of-the-tests"
BASE_URL = "/user/a%40b"


def until(probe: Callable[[], T | None], why: str) -> T:
    """The first answer of ``probe`` that is neither None nor False."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{why}: not within {PATIENCE_S} s")
        time.sleep(0.05)
    return found


@dataclass
class Server:
    """A server's process; ``prefix`` comes before every path."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int = 0
    prefix: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}/"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and body of one request; a dict as body is sent as JSON."""
        data = json.dumps(body) if isinstance(body, dict) else body
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, self.prefix + path, data, self.headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def predict(self, model: str, instances: list[Any]) -> tuple[int, Any]:
        status, body = self.ask("POST", f"/v1/models/{model}:predict", {"instances": instances})
        return status, json.loads(body)

    def answers(self, path: str) -> bool:
        try:
            return self.ask("GET", path)[0] == 200
        except (OSError, HTTPException):
            return False

    def is_available(self, model: str) -> bool:
        """Whether a version is up and none is on its way."""
        try:
            status, body = self.ask("GET", f"/v1/models/{quote(model)}")
        except (OSError, HTTPException):
            return False
        if status != 200:
            return False
        states = {version["state"] for version in json.loads(body)["model_version_status"]}
        return "AVAILABLE" in states and states.isdisjoint({"START", "LOADING"})

    def wait_for(self, *models: str) -> None:
        """Return once all these models are available."""
        for model in models:
            until(lambda model=model: self.must_run().is_available(model), f"{model} is AVAILABLE")

    def must_run(self) -> Server:
        """This server, unless it has ended by itself."""
        if self.process.poll() is not None:
            raise RuntimeError(f"ended with {self.process.returncode}:\n{self.log()[-5000:]}")
        return self

    def log(self) -> str:
        return (self.folder / "server.log").read_text()

    def pool_pids(self) -> list[int]:
        """The processes of the pools that are announced."""
        files = (self.folder / "runtime").glob("tfserve-pool-*.json")
        return [json.loads(path.read_text())["pid"] for path in files]

    def leftovers(self) -> list[str]:
        """What of ours lies in the runtime directory."""
        return sorted(path.name for path in (self.folder / "runtime").glob("tfserve-*"))

    def terminate(self) -> int:
        """End it as a user does; returns its exit status."""
        self.process.terminate()
        return self.process.wait(60)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()


@contextmanager
def standalone(folder: Path, *flags: str) -> Iterator[Server]:
    """``jupyter tfserve``, as soon as its process runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = (f"--rest_api_port={port}", "--port=0", *flags)
    with _process(folder, "jupyter_tfserve.server.standalone", *flags) as server:
        server.port = port
        yield server


@contextmanager
def jupyter(folder: Path, *flags: str, app: str = "jupyter_server") -> Iterator[Server]:
    """A Jupyter server with the extension, once it answers.

    ``app`` is the module to run; ``jupyterlab`` adds the pages of JupyterLab.
    """
    flags = (
        "--ServerApp.port=0",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.open_browser=False",
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.base_url={BASE_URL}/",
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.jpserver_extensions={'jupyter_tfserve': True}",
        *flags,
    )
    with _process(folder, app, *flags) as server:
        server.prefix, server.headers = BASE_URL, {"Authorization": f"token {TOKEN}"}
        server.port = until(lambda: _jupyter_port(server), "the Jupyter server listens")
        until(lambda: server.answers("/api/status"), "the Jupyter server answers")
        yield server


def _jupyter_port(server: Server) -> int | None:
    pid = server.must_run().process.pid
    try:
        info = json.loads((server.folder / "runtime" / f"jpserver-{pid}.json").read_text())
    except (OSError, ValueError):  # not there yet, or half written
        return None
    return int(info["port"])


@contextmanager
def _process(folder: Path, module: str, *flags: str) -> Iterator[Server]:
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
        )
    server = Server(process, folder)
    try:
        yield server
    except TimeoutError as error:
        error.add_note(server.log()[-5000:])
        raise
    finally:
        pools = server.pool_pids()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in filter(is_alive, pools):
            os.kill(pid, signal.SIGKILL)
