"""A model that answers the number of its version, written as fast as files are copied."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servers import Server


class Numbered:
    """The versions of one model, in a folder that a server watches."""

    def __init__(self, original: Path, base: Path) -> None:
        """``original`` is the version 1 of ``tests/models``; ``base`` is made."""
        self._original = original
        self.base = base
        base.mkdir(parents=True)

    def add(self, version: int) -> None:
        """A version appears, all its files at once."""
        writing = self.base / f".{version}"
        shutil.copytree(self._original, writing)
        graph = writing / "saved_model.pb"
        content = graph.read_bytes()
        assert b"v00001" in content
        graph.write_bytes(content.replace(b"v00001", b"v%05d" % version))
        writing.rename(self.base / str(version))

    def remove(self, version: int) -> None:
        """A version vanishes."""
        shutil.rmtree(self.base / str(version))


@dataclass(frozen=True)
class Called:
    """One call: when it was sent and answered, its status, and the version or the error."""

    start: float
    end: float
    status: int
    version: int
    error: str


class Callers:
    """Connections that call a model as fast as it answers, each in a thread of its own.

    Attributes:
        calls: What came back, in the order of the answers.
        versions: Those that have answered.
        failures: Why connections ended early.
    """

    def __init__(self, server: Server, model: str, number: int) -> None:
        self._server = server
        self._model = model
        self._ended = threading.Event()
        self.calls: list[Called] = []
        self.versions: set[int] = set()
        self.failures: list[Exception] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(number)]

    @contextmanager
    def calling(self) -> Iterator[None]:
        """They call within the block; every call is answered when it is left."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join(60)

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._server.port, timeout=60)
        try:
            while not self._ended.is_set():
                self.calls.append(self._call(connection))
        except Exception as error:
            self.failures.append(error)
        finally:
            connection.close()

    def _call(self, connection: HTTPConnection) -> Called:
        start = time.monotonic()
        path = f"{self._server.prefix}/v1/models/{self._model}:predict"
        connection.request("POST", path, b'{"instances": [1.0]}', self._server.headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        end = time.monotonic()
        if response.status != 200:
            return Called(start, end, response.status, 0, answer["error"])
        (text,) = answer["predictions"]
        version = int(text.removeprefix("v"))
        self.versions.add(version)
        return Called(start, end, 200, version, "")
