"""Who takes part: this project in its modes, TensorFlow Serving, and Python's other servers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import environments
import servers
from load import Target
from processes import free_port, running

BARE = "bare Tornado"
STANDALONE = "standalone"
GREEDY = "standalone, greedy batching"
FAST_LANE = "Jupyter, fast lane"
ORDINARY_LANE = "Jupyter, ordinary lane"
TF_SERVING = "TensorFlow Serving"

PEERS = environments.PEERS
OURS = (STANDALONE, GREEDY, FAST_LANE, ORDINARY_LANE)

Start = Callable[[str, Path, Path], AbstractContextManager[list[Target]]]
"""Serve a model, called NAME, from the folder of its versions, with a folder for scratch."""


@dataclass(frozen=True)
class Contender:
    """One server that can be started for a model; its name is for the command line.

    ``missing`` says why it cannot take part here, or nothing where it can.
    """

    name: str
    start: Start
    missing: Callable[[], str] = lambda: ""
    loads_tf1: bool = True


@contextmanager
def bare(size: int, folder: Path) -> Iterator[Target]:
    """Bare Tornado, which answers everything with that many bytes."""
    port = free_port()
    script = Path(__file__).with_name("bare.py")
    command = [sys.executable, str(script), str(port), str(size)]
    with running(command, folder, port, "/"):
        yield Target(BARE, port, "/", "/")


def standalone(*flags: str, name: str = STANDALONE) -> Start:
    """``jupyter tfserve``, with these flags beside the model's."""

    @contextmanager
    def start(model: str, base_path: Path, folder: Path) -> Iterator[list[Target]]:
        folder.mkdir(parents=True)
        given = (f"--model_name={model}", f"--model_base_path={base_path}", *flags)
        with servers.standalone(folder, *given) as server:
            server.wait_for(model)
            (pool,) = server.pool_pids()
            status = f"/v1/models/{model}"
            yield [Target(name, server.port, f"{status}:predict", status, pids={"pool": pool})]

    return start


@contextmanager
def jupyter(model: str, base_path: Path, folder: Path) -> Iterator[list[Target]]:
    """A Jupyter server with the extension, by each of its two lanes.

    A token in the query is what the fast lane never takes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = (f"--PoolManager.model_name={model}", f"--PoolManager.model_base_path={base_path}")
    with servers.jupyter(folder, *flags) as server:
        server.wait_for(model)
        (pool,) = server.pool_pids()
        pids = {"pool": pool, "Jupyter server": server.process.pid}
        status = f"{server.prefix}/v1/models/{model}"
        predict = f"{status}:predict"
        query = f"?token={servers.TOKEN}"
        yield [
            Target(FAST_LANE, server.port, predict, status, server.headers, pids),
            Target(ORDINARY_LANE, server.port, predict + query, status + query, {}, pids),
        ]


@contextmanager
def tf_serving(model: str, base_path: Path, folder: Path) -> Iterator[list[Target]]:
    """The C++ ModelServer with its defaults."""
    port = free_port()
    status = f"/v1/models/{model}"
    command = [
        *("tensorflow_model_server", "--port=0", f"--rest_api_port={port}"),
        *(f"--model_name={model}", f"--model_base_path={base_path.resolve()}"),
    ]
    with running(command, folder, port, status):
        yield [Target(TF_SERVING, port, f"{status}:predict", status)]


def peer(name: str) -> Start:
    """One of Python's other servers, by its script, in its environment."""

    @contextmanager
    def start(model: str, base_path: Path, folder: Path) -> Iterator[list[Target]]:
        port = free_port()
        paths = environments.PATHS[name]
        (version,) = base_path.resolve().iterdir()
        python, script = environments.python(name), environments.script(name)
        command = [str(python), str(script), str(port), model, str(version)]
        status = paths.status.format(model=model)
        with running(command, folder, port, status, environments.variables(name)):
            yield [Target(name, port, paths.predict.format(model=model), status)]

    return start


@cache
def _help() -> str:
    command = [sys.executable, "-m", "jupyter_tfserve.server.standalone", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _without(flag: str) -> Callable[[], str]:
    return lambda: "" if f"--{flag}" in _help() else f"`--{flag}` is no flag of this version"


def _not_on_path(program: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(program) else f"`{program}` is not on the PATH"


def _no_environment(name: str) -> Callable[[], str]:
    return lambda: environments.make(name)


CONTENDERS = (
    Contender("standalone", standalone()),
    Contender(
        "greedy",
        standalone("--enable_greedy_batching", name=GREEDY),
        _without("enable_greedy_batching"),
    ),
    Contender("jupyter", jupyter),
    Contender("tf_serving", tf_serving, _not_on_path("tensorflow_model_server")),
)
PEER_CONTENDERS = tuple(
    Contender(name, peer(name), _no_environment(name), loads_tf1=False) for name in PEERS
)
