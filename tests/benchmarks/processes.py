"""Servers that are no part of this project, as processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from servers import until


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    port: int,
    ready: str,
    environment: Mapping[str, str] = {},
) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process group of its own, once ``ready`` is a path that answers 200.

    Raises:
        RuntimeError: it ended instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=variables,
            start_new_session=True,
        )

    def answers() -> bool:
        if process.poll() is not None:
            lines = log.read_text().strip().splitlines() or [""]
            raise RuntimeError(f"{command[0]} ended: {lines[-1][-500:]}")
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", ready)
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    try:
        until(answers, f"{command[0]} answers")
        yield process
    finally:
        # Some of them leave their workers behind when only the parent is told to end.
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
