"""The load: ``wrk`` with many connections, or one client that times each request."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

SCRIPT = Path(__file__).with_name("wrk.lua")
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Target:
    """A way into a running server, under the name that tables give it.

    ``predict`` and ``status`` are the paths of the two requests; ``pids`` the processes that serve.
    """

    name: str
    port: int
    predict: str
    status: str
    headers: Mapping[str, str] = field(default_factory=dict)
    pids: Mapping[str, int] = field(default_factory=dict)

    def path(self, body: object) -> str:
        """Where to send a body, or to ask for the status where there is none."""
        return self.status if body is None else self.predict


@dataclass(frozen=True)
class Sample:
    """What one run of wrk saw."""

    requests_per_s: float
    p50_ms: float
    p99_ms: float
    failed: int


def find_wrk() -> str | None:
    """The program that makes the load, where it is installed."""
    return shutil.which("wrk")


@contextmanager
def hammer(
    target: Target, body: bytes | None, connections: int, seconds: int
) -> Iterator[subprocess.Popen[str]]:
    """Wrk against a server while the block runs, with its summary as the last line of stdout."""
    with tempfile.NamedTemporaryFile() as file:
        environment = dict(os.environ)
        if body is not None:
            file.write(body)
            file.flush()
            environment["BENCH_BODY"] = file.name
        command = [
            *("wrk", "--latency", "--timeout", "60s", "--script", str(SCRIPT)),
            *("--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"),
            *(f"--header={name}: {value}" for name, value in target.headers.items()),
            f"http://127.0.0.1:{target.port}{target.path(body)}",
        ]
        process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def measure(target: Target, body: bytes | None, connections: int, seconds: int) -> Sample:
    """Load a server for some seconds and say what it did.

    Raises:
        RuntimeError: wrk could not do its work.
    """
    with hammer(target, body, connections, seconds) as wrk:
        output, _ = wrk.communicate(timeout=seconds + PATIENCE_S)
    if wrk.returncode != 0:
        raise RuntimeError(f"wrk ended with {wrk.returncode}: {output}")
    seen = json.loads(output.splitlines()[-1])
    rate = seen["requests"] / seen["seconds"]
    return Sample(rate, seen["p50_ms"], seen["p99_ms"], seen["failed"])


class Client:
    """A client with one connection that it keeps."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection = HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE_S)
        self._headers = {"Content-Type": "application/json", **target.headers}

    def call(self, body: bytes | None, status: int = 200) -> bytes:
        """Send one request and read all of its answer.

        Raises:
            RuntimeError: the server answered with another status.
        """
        method = "GET" if body is None else "POST"
        self._connection.request(method, self._target.path(body), body, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != status:
            raise RuntimeError(f"{self._target.name} answered {response.status}: {answer[:500]!r}")
        return answer

    def timed(self, body: bytes | None) -> float:
        """How long one call takes, in seconds."""
        start = time.perf_counter()
        self.call(body)
        return time.perf_counter() - start

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
