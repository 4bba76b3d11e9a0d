"""Real servers for tests: ``jupyter tfserve`` and ``jupyter server``, each until a block ends."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from replay import Door

T = TypeVar("T")

# A pool loads TensorFlow before it answers; on two busy cores that takes its time.
START_SECONDS = 200.0
STOP_SECONDS = 30.0
TOKEN = "a-token-of-the-tests"
# Escaped characters in the base URL find every careless join.
BASE_URL = "/user/a%40b/"


@contextmanager
def standalone(config: Path, folder: Path) -> Iterator[Door]:
    """``jupyter tfserve`` with the models of a configuration file, once all of them answer.

    ``folder`` takes its log and the files of Jupyter's runtime.
    """
    port = _free_port()
    command = [
        *(sys.executable, "-m", "jupyter_tfserve.server.standalone"),
        *(f"--rest_api_port={port}", "--port=0"),
        f"--model_config_file={config}",
        "--allow_version_labels_for_unavailable_models=true",
    ]
    with _process(command, folder) as check:
        door = Door("127.0.0.1", port)
        _wait_for_models(door, config, check)
        yield door


@contextmanager
def jupyter(config: Path, folder: Path, *, app: str = "jupyter_server") -> Iterator[Door]:
    """``jupyter server`` with the extension and a configuration file, once all models answer.

    ``app`` is the module to run; ``jupyterlab`` adds the pages of JupyterLab.
    """
    command = [
        *(sys.executable, "-m", app),
        *("--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", "--ServerApp.open_browser=False"),
        *("--allow-root", f"--ServerApp.root_dir={folder}", f"--ServerApp.base_url={BASE_URL}"),
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.jpserver_extensions={'jupyter_tfserve': True}",
        f"--PoolManager.model_config_file={config}",
        "--PoolManager.allow_version_labels_for_unavailable_models=True",
    ]
    with _process(command, folder) as check:
        info = _wait_for(lambda: _server_info(folder / "runtime"), check)
        headers = {"Authorization": f"token {TOKEN}"}
        door = Door("127.0.0.1", int(info["port"]), BASE_URL.rstrip("/"), headers)
        _wait_for_models(door, config, check)
        yield door


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(command: list[str], folder: Path) -> Iterator[Callable[[], None]]:
    """Run a server; what is yielded raises with its log where it has ended by itself."""
    log = folder / "server.log"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )

    def check() -> None:
        if server.poll() is not None:
            raise RuntimeError(f"ended with {server.returncode}:\n{log.read_text()[-5000:]}")

    try:
        yield check
        check()
    except TimeoutError as error:
        error.add_note(log.read_text()[-5000:])
        raise
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise


def _wait_for(probe: Callable[[], T | None], check: Callable[[], None]) -> T:
    deadline = time.monotonic() + START_SECONDS
    while (found := probe()) is None:
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready within {START_SECONDS} s")
        time.sleep(0.05)
    return found


def _server_info(runtime: Path) -> Mapping[str, Any] | None:
    """What the Jupyter server tells of itself once it listens."""
    for path in runtime.glob("jpserver-*.json"):
        try:
            info: Mapping[str, Any] = json.loads(path.read_text())
        except ValueError:  # half written
            continue
        return info
    return None


def _wait_for_models(door: Door, config: Path, check: Callable[[], None]) -> None:
    for name in re.findall(r'\bname: *"([^"]+)"', config.read_text()):
        _wait_for(lambda name=name: _is_loaded(door, name) or None, check)


def _is_loaded(door: Door, name: str) -> bool:
    connection = HTTPConnection(door.host, door.port, timeout=10)
    try:
        path = f"{door.prefix}/v1/models/{quote(name)}"
        connection.request("GET", path, headers=dict(door.headers))
        response = connection.getresponse()
        body = response.read()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    if response.status != 200:
        return False
    states = {version["state"] for version in json.loads(body)["model_version_status"]}
    return "AVAILABLE" in states and states.isdisjoint({"START", "LOADING"})
