"""The demo: JupyterLab with a model served and the tutorial open.

``python notebooks/demo.py`` runs until Ctrl-C; with ``--check`` it starts, calls the model, prints
the answer, stops everything and exits with 0 where the answer is right.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from jupyter_core.paths import jupyter_runtime_dir

NOTEBOOKS = Path(__file__).resolve().parent
ROOT = NOTEBOOKS.parent
WORK = ROOT / ".demo"
LOG = WORK / "jupyterlab.log"
TUTORIAL = "01-quickstart.ipynb"
MODEL = "half_plus_three"
BODY = {"instances": [1.0, 2.0, 5.0]}
ANSWER = {"predictions": [3.5, 4.0, 5.5]}
FAILED = "failed"  # a pool's phase that only a person can end
START_SECONDS = 180.0
STOP_SECONDS = 30.0


class DemoError(Exception):
    """The demo cannot go on, and why."""


def make_model() -> Path:
    """Make the model to serve, unless it is there, and return its base path."""
    models = WORK / "models"
    if not (models / MODEL).exists():
        print(f"Making the model {MODEL} ...", flush=True)
        command = [sys.executable, str(ROOT / "tests" / "models"), str(models), MODEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DemoError(f"the model could not be made:\n{done.stderr}")
    return models / MODEL


@contextmanager
def jupyter_lab(base_path: Path, *, browser: bool) -> Iterator[subprocess.Popen[bytes]]:
    """JupyterLab with a token, on a free port, serving the model; it ends with the block."""
    command = [
        *(sys.executable, "-m", "jupyterlab", "-y", "--ServerApp.ip=127.0.0.1"),
        *(f"--PoolManager.model_name={MODEL}", f"--PoolManager.model_base_path={base_path}"),
    ]
    if os.geteuid() == 0:
        command.append("--allow-root")
    if not browser:
        command.append("--no-browser")
    command.append(TUTORIAL)
    # Not on the command line, where every user of the machine could read it.
    environment = os.environ | {"JUPYTER_TOKEN": secrets.token_hex(16)}
    with LOG.open("wb") as log:
        server = subprocess.Popen(command, cwd=NOTEBOOKS, env=environment, stdout=log, stderr=log)
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_for(what: str, server: subprocess.Popen[bytes], probe: Callable[[], Any]) -> Any:
    """Ask until there is an answer other than None, while the server lives."""
    deadline = time.monotonic() + START_SECONDS
    while (found := probe()) is None:
        if server.poll() is not None:
            raise DemoError(f"JupyterLab ended with status {server.returncode}; see {LOG}")
        if time.monotonic() > deadline:
            raise DemoError(f"no {what} within {START_SECONDS:.0f} s; see {LOG}")
        time.sleep(0.2)
    return found


def server_info(server: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """The URL and token that a Jupyter server leaves in its runtime directory."""
    try:
        path = Path(jupyter_runtime_dir()) / f"jpserver-{server.pid}.json"
        info: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return info


def call(url: str, token: str, body: object | None = None) -> Any:
    """Call the REST API: GET, or POST where there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Authorization": f"token {token}"})
    with urlopen(request, timeout=60) as response:
        return json.load(response)


def is_available(server_url: str, token: str) -> bool | None:
    """True once a version of the model answers; None before.

    Asked of the management API, which tells of a start under way and of one that failed.
    """
    for pool in call(f"{server_url}tfserve/api/pools", token)["pools"]:
        if pool["phase"] == FAILED:
            raise DemoError(pool["reason"])
    for model in call(f"{server_url}tfserve/api/models", token)["models"]:
        for version in model["versions"]:
            if version["error"]:
                raise DemoError(f"{model['name']} did not load: {version['error']}")
            if version["state"] == "AVAILABLE":
                return True
    return None


def run(*, check: bool) -> None:
    """Start everything; stay until JupyterLab ends, or check the answer and stop.

    Raises:
        DemoError: something did not start, or the answer is wrong.
    """
    base_path = make_model()
    with jupyter_lab(base_path, browser=not check) as server:
        print("Starting JupyterLab and the model pool ...", flush=True)
        info = wait_for("JupyterLab", server, lambda: server_info(server))
        url, token = info["url"], info["token"]
        model_url = f"{url}v1/models/{MODEL}"
        wait_for(f"version of {MODEL}", server, lambda: is_available(url, token))
        print(
            f"\n{MODEL} is served. From any shell:\n\n"
            f"  curl -H 'Authorization: token {token}' \\\n"
            f"    -d '{json.dumps(BODY)}' \\\n"
            f"    {model_url}:predict\n",
            flush=True,
        )
        if not check:
            print(
                f"The tutorial:  {url}lab/tree/{TUTORIAL}?token={token}\n\n"
                f"JupyterLab logs to {LOG}. Ctrl-C stops it.\n",
                flush=True,
            )
            server.wait()
            return
        answer = call(f"{model_url}:predict", token, BODY)
        print(json.dumps(answer))
        if answer != ANSWER:
            raise DemoError(f"expected {json.dumps(ANSWER)}")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="call the model once, then stop")
    options = parser.parse_args()
    # Leave through the blocks that stop JupyterLab.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run(check=options.check)
    except DemoError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        print("Stopped.")


if __name__ == "__main__":
    main()
