"""Clients that send too much, too slowly or not at all, or do not listen."""

import json

import pytest

from jupyter_tfserve.http import Response

GET = b"GET /v1/x HTTP/1.1\r\n\r\n"
HEAD = b"POST /v1/x HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"
BIG = bytes(24 << 20)  # more than the kernel's buffers hold


def error_of(answer):
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    return answer.status, json.loads(answer.body)["error"]


class TestSizes:
    @pytest.mark.parametrize(
        "data",
        [
            b"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n" + b"x" * 11,
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\nabcde\r\n",
        ],
    )
    def test_longer_body_names_the_limit(self, serve, later, data):
        (answer,) = serve(later, max_body_bytes=10).ask(data)
        assert error_of(answer) == (413, "Request body exceeds the limit of 10 bytes")
        assert not later.requests

    def test_body_of_the_limit_is_accepted(self, serve):
        server = serve(max_body_bytes=10)
        with server.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n" + b"x" * 10)
            assert client.read().status == 200

    def test_refusal_reaches_a_client_that_is_still_sending(self, serve):
        server = serve(max_body_bytes=10)
        with server.connect() as client:
            client.send(b"POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n" + bytes(8_000_000))
            assert client.read().status == 413
            assert client.is_closed()

    def test_endless_body_is_cut(self, serve):
        with serve(max_body_bytes=10, max_linger_bytes=1000).connect() as client:
            client.send(b"POST / HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n")
            assert client.read().status == 413
            with pytest.raises(ConnectionError):
                client.send(bytes(100_000_000))

    @pytest.mark.parametrize("fields", [["A: " + "x" * 200], ["A: x"] * 40])
    @pytest.mark.parametrize("end", ["\r\n\r\n", ""])
    def test_longer_header(self, serve, fields, end):
        limit = 150
        data = ("GET / HTTP/1.1\r\n" + "\r\n".join(fields) + end).encode()
        if not end:  # nothing is known of a field before its end: the bound is a rough one
            data += b"x" * 200_000
        (answer,) = serve(max_header_bytes=limit).ask(data)
        assert error_of(answer) == (431, "Request header exceeds the limit of 150 bytes")

    def test_header_of_the_limit_is_accepted(self, serve):
        fields = b"A: x\r\n" * 24 + b"A: " + b"x" * 1
        server = serve(max_header_bytes=150)
        with server.connect() as client:
            client.send(b"GET / HTTP/1.1\r\n" + fields + b"\r\n\r\n")
            assert client.read().status == 200

    def test_header_over_the_limit_in_many_pieces(self, serve):
        server = serve()
        with server.connect() as client:
            client.send(GET * 3000 + b"GET / HTTP/1.1\r\n")
            for _ in range(7):
                client.send(b"A: " + b"x" * 10_000 + b"\r\n")
            client.send(b"\r\n")
            answers = client.read_all()
        assert [answer.status for answer in answers] == [200] * 3000 + [431]

    @pytest.mark.parametrize("end", [b" HTTP/1.1\r\n\r\n", b""])
    def test_longer_target(self, serve, end):
        (answer,) = serve(max_target_bytes=100).ask(b"GET /" + b"x" * 200 + end)
        assert error_of(answer) == (414, "Request target exceeds the limit of 100 bytes")

    @pytest.mark.parametrize("junk", [b"1;" + b"x" * 300_000, b"0\r\n" + b"A: b\r\n" * 60_000])
    def test_chunks_with_more_wrapping_than_data(self, serve, junk):
        data = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + junk
        assert serve().ask(data)[0].status == 400

    def test_bytes_in_chunks_of_their_own_are_accepted(self, serve):
        data = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        with serve().connect() as client:
            client.send(data + b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n")
            assert client.read().body.startswith(b"POST / 200000 x")

    def test_more_connections_are_told_so(self, serve):
        server = serve(max_connections=2)
        with server.connect() as first, server.connect():
            server.until_connections(2)
            with server.connect() as third:
                answer = third.read()
                assert error_of(answer) == (503, "Too many connections")
                assert answer.headers["retry-after"] == "1"
                assert third.is_closed()
            first.send(GET)
            assert first.read().status == 200
        server.until_connections(0)
        with server.connect() as client:
            client.send(GET)
            assert client.read().status == 200


class TestTimes:
    @pytest.mark.parametrize("before", [b"", GET, b"\r\n\r\n"])
    def test_idle_connection_is_closed_silently(self, serve, before):
        server = serve()
        with server.connect() as client:
            client.send(before)
            if before == GET:
                client.read()
            server.until_received(len(before))
            server.until_connections(1)
            server.pass_time(49)
            assert server.server.connections == 1
            server.now += 1
            server.call(server.server.sweep)
            assert client.is_closed()

    def test_slow_header(self, serve):
        server = serve(header_timeout_s=10)
        with server.connect() as client:
            client.send(b"GET / HT")
            server.until_received(8)
            server.pass_time(9)
            client.send(b"TP/1.1\r\nA: b\r\n")  # progress does not help
            server.until_received(8 + 14)
            server.now += 1
            server.call(server.server.sweep)
            status, text = error_of(client.read())
            assert (status, "header" in text) == (408, True)
            assert client.is_closed()

    def test_stalled_body(self, serve):
        server = serve(body_stall_timeout_s=10)
        with server.connect() as client:
            client.send(HEAD + b"abc")
            server.until_received(len(HEAD) + 3)
            server.pass_time(10)
            status, text = error_of(client.read())
            assert (status, "body" in text) == (408, True)

    def test_trickling_body_is_stalled_and_a_steady_one_is_not(self, serve):
        server = serve(body_stall_timeout_s=10, min_progress_bytes=100)
        with server.connect() as client:
            client.send(HEAD)
            server.until_received(len(HEAD))
            for turn in range(1, 5):
                server.call(server.server.sweep)
                client.send(b"x" * 100)
                server.until_received(len(HEAD) + 100 * turn)
                server.pass_time(10)
            server.until_connections(1)
            client.send(b"x" * 99)
            server.until_received(len(HEAD) + 499)
            server.pass_time(10)
            assert error_of(client.read())[0] == 408

    def test_the_application_may_take_its_time(self, serve, later):
        server = serve(later)
        with server.connect() as client:
            client.send(GET)
            later.wait()
            server.pass_time(1000)
            server.call(later.exchanges[0], Response(200, b"at last"))
            assert client.read().body == b"at last"

    def test_reader_that_stops_reading_is_dropped(self, serve):
        server = serve(lambda _, respond: respond(Response(200, BIG)), write_stall_timeout_s=10)
        with server.connect() as client:
            client.send(GET)
            connection = server.only()
            server.until(lambda: not connection._writer.writable)
            server.pass_time(9)
            assert server.server.connections == 1
            server.now += 1
            server.call(server.server.sweep)
            server.until_connections(0)

    def test_slow_reader_gets_everything(self, serve):
        server = serve(lambda _, respond: respond(Response(200, BIG)), write_stall_timeout_s=10)
        with server.connect() as client:
            client.send(GET)
            connection = server.only()
            server.until(lambda: not connection._writer.writable)
            while len(client.buffer) < len(BIG):
                server.pass_time(8)
                wanted = len(client.buffer) + len(BIG) // 8
                while len(client.buffer) < min(wanted, len(BIG)):
                    client._more()
            assert client.read().body == BIG

    def test_transport_holds_little_of_a_large_answer(self, serve):
        server = serve(lambda _, respond: respond(Response(200, BIG)))
        with server.connect() as client:
            client.send(GET)
            connection = server.only()
            server.until(lambda: not connection._writer.writable)
            assert connection._transport.get_write_buffer_size() < 1 << 20

    def test_client_that_never_closes_is_left(self, serve):
        server = serve(linger_timeout_s=10)
        with server.connect() as client:
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            assert client.read().status == 200
            assert client.is_closed()  # its other half is open
            server.pass_time(10)
            server.until_connections(0)


class TestPipelines:
    def test_no_more_is_read_while_answers_wait(self, serve, later):
        server = serve(later, max_pipelined=4)
        with server.connect() as client:
            client.send(GET * 10_000)
            later.wait(4)
            connection = server.only()
            server.until(lambda: not connection._reading)
            assert connection._received <= 3 << 16
            assert len(later.requests) == 4

    def test_no_more_is_read_while_answers_are_not_taken(self, serve):
        server = serve(lambda _, respond: respond(Response(200, bytes(1 << 20))))
        with server.connect() as client:
            client.send(GET * 10_000)
            connection = server.only()
            server.until(lambda: not connection._reading)
            assert connection._started < 20

    def test_everything_is_answered_in_the_end(self, serve, later):
        server = serve(later, max_pipelined=4)
        with server.connect() as client:
            client.send(GET * 100)
            for turn in range(0, 100, 4):
                later.wait(4)
                for number in reversed(range(turn, turn + 4)):
                    server.call(later.exchanges[number], Response(200, b"%d" % number))
            assert [client.read().body for _ in range(100)] == [b"%d" % n for n in range(100)]

    def test_requests_that_may_change_something_run_one_by_one(self, serve, later):
        post = GET.replace(b"GET", b"POST")
        server = serve(later)
        with server.connect() as client:
            client.send(post + GET + GET + post)
            server.until_received(4 * len(GET) + 2)
            for running in (["POST"], ["GET", "GET"], ["POST"]):
                later.wait(len(running))
                server.call(lambda: None)
                assert [request.method for request in later.requests] == running
                later.requests = []
                started, later.exchanges = later.exchanges, []
                for exchange in started:
                    server.call(exchange, Response(200))
            assert [client.read().status for _ in range(4)] == [200] * 4
