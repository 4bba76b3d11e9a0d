"""What a server makes of requests: framing, targets, methods, and their refusals."""

import json
import threading

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.http import Response

GET = b"GET /v1/models/m HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nConnection: close\r\n\r\n"


def post(body, *headers, target=b"/v1/x"):
    lines = [b"POST %b HTTP/1.1" % target, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(*chunks, trailer=b""):
    head = b"POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
    return head + b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


def bodies(answers):
    return [answer.body for answer in answers]


def test_connection_stays_open_for_the_next_request(serve):
    with serve().connect() as client:
        for _ in range(3):
            client.send(GET)
            answer = client.read()
            assert (answer.status, answer.body) == (200, b"GET /v1/models/m 0 ")
            assert "connection" not in answer.headers


def test_answers_carry_the_headers_of_the_original_and_no_others(serve):
    with serve(lambda _, respond: respond(Response(200, b"{}"))).connect() as client:
        client.send(GET)
        answer = client.read()
    assert answer.headers.keys() == {"content-type", "content-length", "date"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["date"].endswith("gmt")


def test_close_is_honoured_and_ends_the_input(serve):
    answers = serve().ask(LAST + GET)
    assert bodies(answers) == [b"GET /last 0 "]
    assert answers[0].headers["connection"] == "close"


def test_http_1_0_closes_unless_asked_to_keep_alive(serve):
    server = serve()
    assert server.ask(b"GET /a HTTP/1.0\r\n\r\n")[0].headers["connection"] == "close"
    kept, last = server.ask(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + LAST)
    assert kept.headers["connection"] == "keep-alive"
    assert last.body == b"GET /last 0 "


def test_pipelined_requests_are_answered_in_order(serve):
    answers = serve().ask(post(b"one") + GET + chunked(b"tw", b"o") + LAST)
    assert bodies(answers) == [
        b"POST /v1/x 3 one",
        b"GET /v1/models/m 0 ",
        b"POST /v1/x 3 two",
        b"GET /last 0 ",
    ]


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (chunked(), b"0 "),
        (chunked(b"a", b"bc" * 5), b"11 abcbcbcbcbc"),
        (chunked(b"abc", trailer=b"X-Late: 1\r\n"), b"3 abc"),
        (chunked(b"abc").replace(b"3\r\n", b"3;name=value\r\n"), b"3 abc"),
    ],
)
def test_chunked_bodies(serve, data, body):
    assert serve().ask(data + LAST)[0].body == b"POST /v1/x " + body


@pytest.mark.parametrize("size", [0, 1, 65_536, 1 << 20, (1 << 20) + 1, 20_000_000])
def test_body_of_any_size_arrives_whole(serve, size):
    received = []

    def keep(request, respond):
        received.append(request.body)
        respond(Response(200))

    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with serve(keep).connect() as client:
        client.send(post(data))
        client.read()
        client.send(post(b"next"))
        client.read()
    assert received == [data, b"next"]


def test_announced_length_alone_commits_no_memory(serve):
    server = serve()
    with server.connect() as client:
        client.send(b"POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 1000)
        server.until(lambda: server.connections() and server.connections()[0]._parser.body)
        (connection,) = server.connections()
        assert len(connection._parser.body._data) <= 1 << 20


def test_headers_are_lower_case_joined_and_trimmed(serve):
    seen = []

    def keep(request, respond):
        seen.append(request.headers)
        respond(Response(200))

    head = "GET / HTTP/1.1\r\nX-A: 1 \r\nx-b:\r\nX-a:\t2\r\nName: é\r\nConnection: close\r\n\r\n"
    serve(keep).ask(head.encode() + b"")
    serve(keep).ask(head.encode("latin-1"))
    expected = {"x-a": "1, 2", "x-b": "", "name": "é", "connection": "close"}
    assert seen == [expected, expected]


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        ("/v1/models/m:predict?a=1#f", "/v1/models/m:predict?a=1#f"),
        ("http://host:80/v1/x?y", "/v1/x?y"),
        ("http://user@[::1]:80/v1/x", "/v1/x"),
        ("//host/v1/x", "/v1/x"),
        ("*", "*"),
        ("/%2F%00-._~!$&'()*+,;=:@/", "/%2F%00-._~!$&'()*+,;=:@/"),
    ],
)
def test_valid_targets_are_passed_on_raw(serve, target, seen):
    (answer,) = serve().ask(f"GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    assert answer.body == f"GET {seen} 0 ".encode()


@pytest.mark.parametrize(
    "target",
    [
        *(f"/v1/a{char}b".encode() for char in ' |"[]\\^`{}<>\t\x01\x7f'),
        "/v1/modèle".encode(),
        "/v1/mod\xe8le".encode("latin-1"),
        *(b"/v1/a%zz", b"/v1/a%4", b"/v1/a%", b"/v1/x?a%zz", b"/v1/x#a#b", b"/v1/x?a[b]"),
        *(b"no-slash", b"http://a b/", b"http://h:port/v1/x"),
    ],
)
def test_target_that_is_no_uri_gets_a_page_and_never_the_application(serve, later, target):
    (answer,) = serve(later).ask(b"GET %b HTTP/1.1\r\n\r\n" % target)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/html")
    assert answer.headers["connection"] == "close"
    assert not later.requests


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "FOO", "get", "PROPFIND", "Post", "QUERY"])
def test_unknown_method_gets_a_page(serve, later, method):
    body = b'{"instances": []}'
    (answer,) = serve(later).ask(post(body).replace(b"POST", method.encode(), 1) + GET)
    assert (answer.status, answer.headers["content-type"]) == (501, "text/html")
    assert answer.headers["connection"] == "close"
    assert not later.requests


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_known_methods_reach_the_application(serve, method):
    (answer,) = serve().ask(LAST.replace(b"GET", method.encode(), 1))
    assert answer.body == f"{method} /last 0 ".encode()


def test_head_is_answered_with_the_length_but_no_body(serve):
    with serve().connect() as client:
        client.send(b"HEAD /a HTTP/1.1\r\n\r\n" + GET)
        answer = client.read(head=True)
        assert answer.headers["content-length"] == str(len(b"HEAD /a 0 "))
        assert client.read().body == b"GET /v1/models/m 0 "


@pytest.mark.parametrize(
    "head",
    [
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4",
        "POST / HTTP/1.1\r\nContent-Length: 3, 3",
        "POST / HTTP/1.1\r\nContent-Length: +3",
        "POST / HTTP/1.1\r\nContent-Length: -3",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999",
        "POST / HTTP/1.1\r\nContent-Length : 3",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked",
        "GET / HTTP/1.1\r\nA: b\r\n c",
        "GET / HTTP/1.1\r\nA: b\nC: d",
        "GET / HTTP/1.1\r\nA: \x00",
        "GET / HTTP/1.1\r\nno colon",
        "GET / HTTP/1.2",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET /",
    ],
)
def test_ambiguous_or_broken_heads_are_refused(serve, later, head):
    (answer,) = serve(later).ask(head.encode() + b"\r\n\r\nabc" + GET)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/html")
    assert not later.requests


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, chunked", b"xchunked"])
def test_other_transfer_codings_are_not_implemented(serve, later, coding):
    data = chunked(b"abc").replace(b"chunked", coding)
    assert serve(later).ask(data)[0].status == 501
    assert not later.requests


def test_length_with_thousands_of_zeros_is_a_length(serve):
    data = post(b"abc").replace(b"Content-Length: ", b"Content-Length: " + b"0" * 6000)
    assert serve().ask(data + LAST)[0].body == b"POST /v1/x 3 abc"


def test_broken_chunk_is_refused_after_earlier_answers(serve):
    answers = serve().ask(GET + chunked(b"abc").replace(b"abc\r\n", b"abcd\r\n") + GET)
    assert [answer.status for answer in answers] == [200, 400]


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 3\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
    ],
)
def test_offer_of_another_protocol_is_ignored(serve, rest):
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    answers = serve().ask(b"POST /x HTTP/1.1\r\n" + offer + rest + GET + LAST)
    assert bodies(answers) == [b"POST /x 3 abc", b"GET /v1/models/m 0 ", b"GET /last 0 "]


def test_many_offers_in_one_piece_are_ignored(serve):
    offer = b"GET /x HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert len(serve().ask(offer * 500 + LAST)) == 501


class TestExpect:
    HEAD = b"POST /v1/x HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"

    def test_body_is_asked_for_when_it_is_awaited(self, serve):
        with serve().connect() as client:
            client.send(self.HEAD)
            assert client.read().status == 100
            client.send(b"abc")
            assert client.read().body == b"POST /v1/x 3 abc"
            client.send(LAST)
            assert bodies(client.read_all()) == [b"GET /last 0 "]

    def test_earlier_answers_come_first(self, serve, later):
        server = serve(later)
        with server.connect() as client:
            client.send(GET + self.HEAD)
            later.wait()
            server.call(later.exchanges[0], Response(200, b"first"))
            assert client.read().body == b"first"
            assert client.read().status == 100

    def test_body_that_came_with_the_head_is_not_asked_for(self, serve):
        answers = serve().ask(self.HEAD + b"abc" + LAST)
        assert [answer.status for answer in answers] == [200, 200]

    @pytest.mark.parametrize("framing", [b"Content-Length: 0\r\n", b""])
    def test_no_body_is_not_asked_for(self, serve, framing):
        head = b"POST / HTTP/1.1\r\n" + framing + b"Expect: 100-continue\r\n\r\n"
        assert [answer.status for answer in serve().ask(head + LAST)] == [200, 200]

    def test_http_1_0_expects_nothing(self, serve):
        head = self.HEAD.replace(b"HTTP/1.1", b"HTTP/1.0")
        assert [answer.status for answer in serve().ask(head + b"abc")] == [200]

    def test_too_large_a_body_is_refused_before_it_is_sent(self, serve):
        assert [answer.status for answer in serve(max_body_bytes=2).ask(self.HEAD)] == [413]

    def test_other_expectations_fail(self, serve):
        head = self.HEAD.replace(b"100-continue", b"miracles")
        assert serve().ask(head)[0].status == 417


class TestApplication:
    def test_serving_error_becomes_its_status_and_text(self, serve):
        def refuse(request, respond):
            raise ServingError(Code.NOT_FOUND, f"No {request.target}")

        with serve(refuse).connect() as client:
            client.send(GET + LAST)
            answer = client.read()
            assert (answer.status, json.loads(answer.body)) == (404, {"error": "No /v1/models/m"})
            assert client.read().status == 404

    def test_other_exceptions_are_logged_and_tell_nothing(self, serve, caplog):
        def fail(request, respond):
            raise KeyError("secret")

        with serve(fail).connect() as client:
            client.send(GET + LAST)
            answer = client.read()
            assert answer.status == 500
            assert b"error" in answer.body
            assert b"secret" not in answer.body
            assert client.read().status == 500
        assert "KeyError: 'secret'" in caplog.text

    def test_failure_after_the_answer_is_only_logged(self, serve, caplog):
        def fail(request, respond):
            respond(Response(200, b"fine"))
            raise KeyError("late")

        assert bodies(serve(fail).ask(LAST)) == [b"fine"]
        assert "late" in caplog.text

    def test_second_answer_is_an_error_of_the_application(self, serve):
        mistakes = []

        def twice(request, respond):
            respond(Response(200, b"first"))
            try:
                respond(Response(200, b"second"))
            except RuntimeError as mistake:
                mistakes.append(mistake)

        assert bodies(serve(twice).ask(LAST)) == [b"first"]
        assert len(mistakes) == 1

    @pytest.mark.parametrize(
        "response",
        [
            Response(200, headers=(("X", "a\r\nSet-Cookie: b"),)),
            Response(200, headers=(("X", "\u20ac"),)),
            Response(200, content_type="\u20ac"),
            Response(200, "text"),
        ],
    )
    def test_answer_that_cannot_be_sent_is_a_failure(self, serve, caplog, response):
        (answer,) = serve(lambda _, respond: respond(response)).ask(GET)
        assert answer.status == 500
        assert b"Set-Cookie" not in answer.body
        assert "cannot be sent" in caplog.text

    def test_headers_and_several_buffers(self, serve):
        body = [b"a", bytearray(b"b"), memoryview(b"c"), b""]
        response = Response(202, body, None, (("X-Y", "z"),))
        (answer,) = serve(lambda _, respond: respond(response)).ask(LAST)
        assert (answer.status, answer.body) == (202, b"abc")
        assert answer.headers["x-y"] == "z"
        assert "content-type" not in answer.headers

    def test_runs_in_the_thread_of_the_loop(self, serve):
        threads = []

        def note(request, respond):
            threads.append(threading.current_thread())
            respond(Response(200))

        server = serve(note)
        server.ask(LAST)
        assert threads == [server.thread]
