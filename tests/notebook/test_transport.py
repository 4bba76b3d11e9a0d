"""Connections, time-outs, and what is sent again."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from model_double import ModelDouble, Received, Scripted, signature

from jupyter_tfserve.notebook.client import Client
from jupyter_tfserve.notebook.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)

LINE = signature({"x": ("float", (-1,))}, {"y": ("float", (-1,))})
NOW = {"Retry-After": "0"}


@pytest.fixture
def line(double: ModelDouble) -> ModelDouble:
    double.serve("m", LINE, lambda x: {"y": x})
    return double


def is_get(request: Received) -> bool:
    return request.method == "GET"


def test_a_connection_is_used_again(line: ModelDouble, client: Client) -> None:
    for _ in range(5):
        client.predict("m", [1.0])
    assert line.connections == 1


def test_threads_share_a_client(line: ModelDouble, client: Client) -> None:
    answers: list[float] = []
    threads = [
        threading.Thread(target=lambda at=at: answers.extend(client.predict("m", [float(at)])))
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [float(at) for at in range(8)]


@pytest.mark.parametrize("status", [429, 503])
def test_a_call_that_was_turned_away_is_sent_again(
    line: ModelDouble, client: Client, status: int
) -> None:
    line.script += [Scripted(status, b'{"error": "later"}', NOW)] * 2
    assert client.predict("m", [1.0]).tolist() == [1.0]
    assert len(line.posts()) == 3


def test_patience_ends(line: ModelDouble) -> None:
    refusal = Scripted(503, b'{"error": "The model pool is starting"}', {"Retry-After": "5"})
    line.script.append(refusal)
    with Client(line.url, patience=0.5) as client:
        start = time.monotonic()
        with pytest.raises(UnavailableError, match="The model pool is starting"):
            client.predict("m", [1.0])
    assert time.monotonic() - start < 4
    line.script.append(Scripted(429, b'{"error": "Too many requests"}', {"Retry-After": "5"}))
    with Client(line.url, patience=0) as client, pytest.raises(ResourceExhaustedError):
        client.predict("m", [1.0])


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"error": "The model pool ended while the request was under way"}', NOW),
        (b'{"error": "unavailable"}', {}),
    ],
)
def test_a_call_that_may_have_run_is_sent_once(
    line: ModelDouble, client: Client, body: bytes, headers: dict[str, str]
) -> None:
    line.script.append(Scripted(503, body, headers))
    with pytest.raises(UnavailableError):
        client.predict("m", [1.0])
    assert len(line.posts()) == 1


def test_a_lost_connection_ends_a_call_and_not_a_question(
    line: ModelDouble, client: Client
) -> None:
    line.script.append(Scripted(0, when=is_get))
    assert client.versions("m") == [1]
    assert len(line.received) == 2
    client.predict("m", [1.0])
    line.script.append(Scripted(0))
    with pytest.raises(UnavailableError, match="does not answer"):
        client.predict("m", [1.0])
    assert len(line.posts()) == 2


def test_a_server_that_starts_meanwhile_is_reached(line: ModelDouble) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = probe.getsockname()
    listener = socket.socket()

    def listen() -> None:
        listener.bind(address)
        listener.listen()
        connection, _ = listener.accept()
        connection.recv(65536)
        body = b'{"model_version_status": []}'
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        connection.close()

    starter = threading.Timer(0.1, listen)
    starter.start()
    try:
        with Client(f"http://127.0.0.1:{address[1]}") as client:
            assert client.status("m") == []
    finally:
        starter.join()
        listener.close()


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_silence_ends_with_the_time_out() -> None:
    with (
        silent() as url,
        Client(url, timeout=0.2) as client,
        pytest.raises(DeadlineExceededError, match=r"within 0\.2 s"),
    ):
        client.status("m")


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    line: ModelDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with Client(line.url) as client:
        assert client.versions("m") == [1]


def test_a_proxy_of_the_environment_is_asked_for_others(
    line: ModelDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", line.url)
    monkeypatch.delenv("no_proxy", raising=False)
    with (
        Client("http://models.example/") as client,
        pytest.raises(InvalidArgumentError, match="Malformed"),
    ):
        client.status("m")
    assert line.received[0].path == "http://models.example/v1/models/m"
