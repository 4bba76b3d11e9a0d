"""The peers' own virtual environments, made when they are first wanted."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("peers")
MADE = Path(__file__).parents[2] / ".bench" / "peers"


@dataclass(frozen=True)
class Paths:
    """Where a peer takes predictions, and where it says that it is up."""

    predict: str
    status: str


PATHS = {
    "KServe": Paths("/v1/models/{model}:predict", "/v1/models/{model}"),
    "LitServe": Paths("/predict", "/health"),
    "MLflow": Paths("/invocations", "/ping"),
}
PEERS = tuple(PATHS)


def script(peer: str) -> Path:
    """The server, as a user of the peer writes it."""
    return FOLDER / f"{peer.lower()}_server.py"


def requirements(peer: str) -> Path:
    """What its environment holds."""
    return FOLDER / f"{peer.lower()}.txt"


def python(peer: str) -> Path:
    """The interpreter of its environment."""
    return MADE / peer.lower() / "bin" / "python"


def variables(peer: str) -> dict[str, str]:
    """What its server runs with."""
    return {
        # As if the environment were activated: MLflow looks for uvicorn on the path.
        "PATH": f"{python(peer).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": "",
        # MLflow passes no options to uvicorn; nobody else logs each request either.
        "UVICORN_ACCESS_LOG": "false",
        # Nothing is reported to anybody.
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
    }


def make(peer: str) -> str:
    """Make a peer's environment unless it is there; returns why it could not be, or nothing."""
    wanted = hashlib.sha256(requirements(peer).read_bytes()).hexdigest()
    stamp = MADE / f"{peer.lower()}.stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return ""
    print(f"Making the environment of {peer} ...", file=sys.stderr, flush=True)
    folder = python(peer).parents[1]
    install = ["-m", "pip", "install", "--quiet", "--requirement", str(requirements(peer))]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python(peer)), *install],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"its environment could not be made: {done.stderr.strip()[-300:]}"
    stamp.write_text(wanted)
    return ""


def installed(peer: str) -> dict[str, str]:
    """The pinned packages of a peer's environment and their versions."""
    lines = requirements(peer).read_text().splitlines()
    pins = (line.partition("==") for line in lines if "==" in line)
    return {name: version for name, _, version in pins}
