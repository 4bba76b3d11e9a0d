"""What the management client tells of a server that refuses, or is another than it looks for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from jupyter_tfserve.notebook.client import Client, TFServeError
from jupyter_tfserve.notebook.servers import Server


@contextmanager
def answering(status: int, body: bytes) -> Iterator[Client]:
    """A client of a server that gives everybody this answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Client(Server(f"http://127.0.0.1:{server.server_port}/"))
        finally:
            server.shutdown()
            thread.join()


def refusal(status: int, body: bytes) -> TFServeError:
    with answering(status, body) as client, pytest.raises(TFServeError) as refused:
        client.models()
    assert refused.value.status == status
    return refused.value


def test_a_reason_is_passed_on_with_its_hint() -> None:
    error = refusal(404, json.dumps({"error": "no such model", "hint": "look here"}).encode())
    assert str(error) == "no such model\nlook here"


@pytest.mark.parametrize("body", [b'{"error": "Forbidden: a token", "hint": null}', b"<html>"])
def test_who_is_not_let_in_learns_which_variables_to_set(body: bytes) -> None:
    assert "JUPYTER_TOKEN" in refusal(403, body).hint


def test_a_server_without_the_extension_is_told_from_one_that_cannot_be_managed() -> None:
    error = refusal(404, b"<html>")
    assert "jupyter server extension list" in error.hint
    assert "`jupyter tfserve`" in error.hint


def test_a_page_in_place_of_an_answer_is_quoted_in_short() -> None:
    assert "answered 502: " + "x" * 200 in str(refusal(502, b"x" * 5000))
    assert len(str(refusal(502, b"x" * 5000))) < 300


def test_a_server_that_is_gone_is_named() -> None:
    with answering(200, b"{}") as client:
        pass
    with pytest.raises(TFServeError, match="does not answer") as refused:
        client.models()
    assert refused.value.status == 0
