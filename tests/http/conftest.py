"""A real server in a thread of its own, and a client that knows only sockets."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from jupyter_tfserve.http import HttpServer, Limits, Response

PATIENCE_S = 15


def echo(request, respond):
    """Tells what arrived."""
    text = f"{request.method} {request.target} {len(request.body)} ".encode()
    respond(Response(200, text + bytes(request.body[:20]), "text/plain"))


@dataclass
class Later:
    """An application that answers when the test says so."""

    exchanges: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __call__(self, request, respond):
        self.requests.append(request)
        self.exchanges.append(respond)
        self.arrived.release()

    def wait(self, count=1):
        for _ in range(count):
            assert self.arrived.acquire(timeout=PATIENCE_S)


class Running:
    """A server under test; its clock stands still until it is moved."""

    def __init__(self, application, limits=None):
        self.now = 0.0
        self.problems = []
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.problems.append(context))
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = HttpServer(application, limits, sweep_s=3600, clock=lambda: self.now)
        self.address = self.run(self.server.start(("127.0.0.1", 0)))

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def call(self, function, *args):
        """Run in the loop's thread, and return what comes of it."""
        result = Future()

        def run():
            try:
                result.set_result(function(*args))
            except BaseException as problem:
                result.set_exception(problem)

        self.loop.call_soon_threadsafe(run)
        return result.result(PATIENCE_S)

    def until(self, condition):
        """Wait for something to become true, seen from the loop's thread."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.call(condition):
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.001)

    def until_received(self, count):
        self.until(lambda: sum(c._received for c in self.connections()) >= count)

    def until_connections(self, count):
        self.until(lambda: self.server.connections == count)

    def connections(self):
        return list(self.server._context.connections)

    def only(self):
        """The one connection, once it is there."""
        self.until_connections(1)
        return self.connections()[0]

    def pass_time(self, seconds):
        """Let the server see the present, and then the future."""
        self.call(self.server.sweep)
        self.now += seconds
        self.call(self.server.sweep)

    def connect(self):
        return Client(self.address)

    def ask(self, data):
        """All that the server has to say to ``data`` and the end of it."""
        with self.connect() as client:
            client.send(data)
            return client.read_all()

    def stop(self):
        self.run(self.server.close())
        assert self.server.connections == 0
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE_S)
        self.loop.close()
        assert not self.problems


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(1 << 20)
        self.buffer += data
        return data

    def read(self, *, head=False):
        """One answer."""
        while b"\r\n\r\n" not in self.buffer:
            assert self._more(), f"closed after {self.buffer!r}"
        start, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        line, *fields = start.decode("latin-1").split("\r\n")
        headers = dict(re.split(r":\s*", text.lower(), maxsplit=1) for text in fields)
        length = 0 if head or line.split()[1] == "100" else int(headers["content-length"])
        while len(self.buffer) < length:
            assert self._more(), "closed within a body"
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(int(line.split()[1]), headers, body)

    def read_all(self):
        """Every answer up to the server's end of the connection."""
        answers = []
        while self.buffer or self._more():
            answers.append(self.read())
        return answers

    def is_closed(self):
        """Whether the connection ends without another word."""
        try:
            return not self.buffer and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def serve():
    """Starts servers, and stops them at the end."""
    running = []

    def start(application=echo, **limits):
        running.append(Running(application, Limits(**limits)))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="module")
def lasting_server():
    """One server for a whole module."""
    server = Running(echo)
    yield server
    server.stop()


@pytest.fixture
def later():
    return Later()
