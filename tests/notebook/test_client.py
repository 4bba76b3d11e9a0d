"""What the management client tells of a server that refuses, or is another than it looks for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from model_double import model_double

from jupyter_tfserve.notebook import errors
from jupyter_tfserve.notebook.client import Client, default_client
from jupyter_tfserve.notebook.errors import TFServeError
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


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {}, errors.InvalidArgumentError),
        (400, {"code": "FAILED_PRECONDITION"}, errors.FailedPreconditionError),
        (401, {}, errors.UnauthenticatedError),
        (403, {}, errors.PermissionDeniedError),
        (404, {}, errors.NotFoundError),
        (409, {}, errors.AlreadyExistsError),
        (409, {"code": "ABORTED"}, errors.AbortedError),
        (413, {}, errors.ResourceExhaustedError),
        (429, {}, errors.ResourceExhaustedError),
        (499, {}, errors.CancelledError),
        (500, {}, errors.InternalError),
        (501, {}, errors.UnimplementedError),
        (503, {}, errors.UnavailableError),
        (504, {}, errors.DeadlineExceededError),
        (418, {}, TFServeError),
    ],
)
def test_the_status_or_the_code_tells_the_kind_of_error(
    status: int, body: dict[str, str], kind: type[TFServeError]
) -> None:
    assert type(refusal(status, json.dumps({"error": "why", **body}).encode())) is kind


def test_a_redirect_to_a_login_is_no_answer() -> None:
    assert "does not let this notebook in" in str(refusal(302, b""))


@pytest.mark.parametrize(
    ("url", "root", "token"),
    [
        ("http://host:8501", "http://host:8501/", ""),
        ("http://host:8501/v1/models", "http://host:8501/", ""),
        ("http://host:8501/v1/", "http://host:8501/", ""),
        ("https://hub.example/user/a%40b/", "https://hub.example/user/a%40b/", ""),
        ("http://localhost:8888/?token=abc", "http://localhost:8888/", "abc"),
    ],
)
def test_an_address_is_taken_in_every_usual_form(url: str, root: str, token: str) -> None:
    server = Client(url).server
    assert (server.url, server.token) == (root, token)
    assert Client(url, "mine").server.token == "mine"


def test_what_is_no_address_is_refused() -> None:
    for url in ("localhost:8501", "host", ""):
        with pytest.raises(ValueError, match="http://"):
            Client(url)


def test_the_notebooks_own_server_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TFSERVE_URL", "http://127.0.0.1:1/here")
    monkeypatch.setenv("JUPYTER_TOKEN", "t")
    assert Client().server == Server("http://127.0.0.1:1/here/", "t")
    assert default_client() is default_client()
    monkeypatch.setenv("JUPYTER_TOKEN", "another")
    assert default_client().server.token == "another"


def test_a_token_goes_with_every_request() -> None:
    with model_double() as double:
        with pytest.raises(TFServeError):
            Client(double.url, "secret").models()
        assert double.received[0].headers["Authorization"] == "token secret"
