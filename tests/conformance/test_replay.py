"""The rules by which an answer agrees with a recorded case."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from replay import Answer, Case, Door, Number, difference, same_number, send


def case(**fields: object) -> Case:
    data = {"id": "x", "method": "POST", "path": "/v1/models/m:predict", "request_body": "{}"}
    data |= {"status": 200, "response_body": '{"predictions": [0.5]}', "stable": "bytes"}
    return Case.read(json.dumps(data | fields))


def answer(body: str, status: int = 200) -> Answer:
    return Answer(status, {}, body.encode())


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("3", "3"),
        ("3.0", "3e0"),
        ("0.333333343", "0.33333334"),
        ("3.40282347e+38", "3.4028235e38"),
        ("0.33333333333333331", "0.3333333333333333"),
        ("NaN", "NaN"),
        ("0.0", "1e-40"),
    ],
)
def test_numbers_that_agree(want: str, got: str) -> None:
    assert same_number(Number(want), Number(got))


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("3", "3.0"),
        ("3.0", "3"),
        ("3", "4"),
        ("0.333333343", "0.3333334"),
        ("0.33333333333333331", "0.33333334"),
        ("NaN", "Infinity"),
        ("Infinity", "-Infinity"),
        ("1e+30", "Infinity"),
        ("0.0", "1e-30"),
    ],
)
def test_numbers_that_differ(want: str, got: str) -> None:
    assert not same_number(Number(want), Number(got))


def test_a_successful_call_compares_as_values() -> None:
    assert difference(case(), answer('{\n  "predictions": [5e-1]\n}')) is None
    assert difference(case(), answer('{"predictions": [0.25]}')) is not None
    assert difference(case(), answer('{"predictions": ["0.5"]}')) is not None
    assert difference(case(), answer('{"predictions": [0.5], "more": 1}')) is not None
    assert difference(case(), answer("no JSON")) is not None


def test_status_counts_before_the_answer() -> None:
    assert difference(case(), answer('{"predictions": [0.5]}', status=500)) is not None


def test_errors_and_reads_compare_byte_for_byte() -> None:
    error = case(status=400, response_body='{"error": "no"}')
    assert difference(error, answer('{"error": "no"}', status=400)) is None
    assert difference(error, answer('{ "error": "no"}', status=400)) is not None
    status = case(method="GET", response_body='{"a": 1}')
    assert difference(status, answer('{ "a": 1}')) is not None


def test_order_of_keys_is_free_where_the_case_says_so() -> None:
    metadata = case(method="GET", response_body='{"a": 1, "b": 2}', stable="json")
    assert difference(metadata, answer('{"b": 2, "a": 1}')) is None
    assert difference(metadata, answer('{"b": 2, "a": 2}')) is not None


def test_only_the_first_line_of_a_failed_operation_counts() -> None:
    failed = case(status=400, response_body='{"error": "bad value\\n\\t [[{{node A}}]]"}')
    assert difference(failed, answer('{"error": "bad value\\n\\t [[{{node B}}]]"}', 400)) is None
    assert difference(failed, answer('{"error": "other value\\n\\t [[{{node A}}]]"}', 400))


def test_one_of_several_answers_is_enough() -> None:
    either = case(status=400, response_body="a", also=["a", "b"], stable="no")
    assert difference(either, answer("b", status=400)) is None
    assert difference(either, answer("c", status=400)) is not None


def test_of_pages_and_heads_only_the_status_counts() -> None:
    page = case(status=404, content_type="text/html", response_body="<h1>Not Found</h1>")
    assert difference(page, answer("", status=404)) is None
    assert difference(page, answer("", status=400)) is not None
    assert difference(case(method="HEAD"), answer("")) is None


def test_a_case_is_sent_as_it_stands() -> None:
    sent = case(path="/v1/a b%zz?q", request_body="\u00e9", request_headers={"X-A": "1"})
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def serve() -> bytes:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while not request.endswith("\u00e9".encode()):
                    request += connection.recv(4096)
                connection.sendall(
                    b"HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
                )
                return request

        request = pool.submit(serve)
        door = Door("127.0.0.1", listener.getsockname()[1], "/base", {"Authorization": "token t"})
        got = send(door, sent)
    head, _, body = request.result().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /base/v1/a b%zz?q HTTP/1.1"
    assert {"Authorization: token t", "X-A: 1", "Content-Length: 2"} <= set(lines)
    assert body == "\u00e9".encode()
    assert (got.status, got.body) == (202, b"hi")
