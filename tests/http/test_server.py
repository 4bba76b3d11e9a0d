"""The life of a server and its connections: start, loss, exhaustion, end."""

import asyncio
import gc
import resource
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

from jupyter_tfserve.http import HttpServer, Response, listen

GET = b"GET /v1/x HTTP/1.1\r\n\r\n"


class TestClientsThatLeave:
    @pytest.mark.parametrize("reset", [False, True])
    def test_unanswered_requests_are_closed_and_told(self, serve, later, reset):
        server = serve(later)
        gone = threading.Event()
        client = server.connect()
        client.send(GET + GET)
        later.wait(2)
        server.call(later.exchanges[0].on_close, gone.set)
        if reset:
            linger = struct.pack("ii", 1, 0)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.close()
        assert gone.wait(10)
        server.until_connections(0)
        assert all(exchange.closed for exchange in later.exchanges)
        server.call(later.exchanges[0], Response(200, b"dropped"))  # nothing comes of it
        late = threading.Event()
        server.call(later.exchanges[1].on_close, late.set)
        assert late.is_set()

    def test_answered_requests_are_not_told(self, serve, later):
        server = serve(later)
        told = []
        with server.connect() as client:
            client.send(GET)
            later.wait()
            server.call(later.exchanges[0].on_close, lambda: told.append("early"))
            server.call(later.exchanges[0], Response(200))
            server.call(later.exchanges[0].on_close, lambda: told.append("late"))
            client.read()
        server.until_connections(0)
        assert not told

    def test_failing_callback_harms_nobody(self, serve, later, caplog):
        server = serve(later)
        with server.connect() as client:
            client.send(GET + GET)
            later.wait(2)
            gone = threading.Event()
            server.call(later.exchanges[0].on_close, lambda: 1 / 0)
            server.call(later.exchanges[1].on_close, gone.set)
        assert gone.wait(10)
        assert "ZeroDivisionError" in caplog.text

    def test_answer_under_way_still_reaches_a_client_that_has_said_its_last(self, serve):
        body = bytes(24 << 20)
        with serve(lambda _, respond: respond(Response(200, body))).connect() as client:
            client.send(GET)
            client.socket.shutdown(socket.SHUT_WR)
            assert client.read().body == body
            assert client.is_closed()

    @pytest.mark.parametrize(
        "part", [b"GE", GET[:-2], b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"]
    )
    def test_half_a_request_is_forgotten(self, serve, later, part):
        server = serve(later)
        with server.connect() as client:
            client.send(part)
            server.until_received(len(part))
        server.until_connections(0)
        assert not later.requests

    def test_nothing_is_kept_of_a_connection(self, serve):
        """References in circles would stay: a pool may run with the garbage collector off."""
        server = serve()
        gc.disable()
        try:
            with server.connect() as client:
                client.send(GET + b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab")
                client.read()
                server.until(lambda: server.connections()[0]._parser.body)
                (kept,) = (weakref.ref(c._parser) for c in server.connections())
            server.until_connections(0)
            server.call(lambda: None)
            assert kept() is None
        finally:
            gc.enable()


class TestClosing:
    def test_idle_connections_go_at_once_and_no_more_are_accepted(self, serve):
        server = serve()
        with server.connect() as idle, server.connect() as used:
            used.send(GET)
            used.read()
            server.until_connections(2)
            server.run(server.server.close(grace_s=60))
            assert idle.is_closed()
            assert used.is_closed()
            with pytest.raises(ConnectionRefusedError):
                server.connect()

    def test_running_answers_finish(self, serve, later):
        server = serve(later)
        with server.connect() as client:
            client.send(GET + GET)
            later.wait(2)
            closing = asyncio.run_coroutine_threadsafe(server.server.close(60), server.loop)
            server.call(later.exchanges[0], Response(200, b"one"))
            server.call(later.exchanges[1], Response(200, b"two"))
            first, second = client.read_all()
            assert (first.body, second.body) == (b"one", b"two")
            assert second.headers["connection"] == "close"
            client.close()
            closing.result(10)

    def test_what_takes_longer_than_the_grace_is_cut(self, serve, later):
        server = serve(later)
        with server.connect() as client:
            client.send(GET)
            later.wait()
            server.run(server.server.close(grace_s=0.01))
            assert client.is_closed()
        assert later.exchanges[0].closed


def test_serves_on_a_given_socket_of_any_kind(tmp_path):
    async def serve():
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(tmp_path / "s"))
        sock.listen()
        server = HttpServer(lambda request, respond: respond(Response(200, b"here")))
        address = await server.start(sock)
        reader, writer = await asyncio.open_unix_connection(address[0])
        writer.write(GET.replace(b"1.1", b"1.0"))
        answer = await reader.read()
        writer.close()
        await server.close()
        return address, answer

    address, answer = asyncio.run(serve())
    assert address == (str(tmp_path / "s"), 0)
    assert answer.endswith(b"here")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::"])
def test_listens_on_hosts_of_both_families(host):
    try:
        sock = listen(host, 0)
    except OSError:
        assert host == "::"
        pytest.skip("no IPv6 here")
    with sock, socket.create_connection(("127.0.0.1", sock.getsockname()[1]), timeout=5):
        pass


def test_small_answers_are_not_held_back(serve):
    server = serve()
    with server.connect() as client:
        client.send(GET)
        client.read()
        sock = server.connections()[0]._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_answers_of_a_pipeline_go_out_in_one_write(serve):
    server = serve()
    with server.connect() as client:
        client.send(GET)
        client.read()
        (connection,) = server.connections()
        writes = []
        write = connection._transport.write
        connection._writer._transport = Spy(connection._transport, write, writes)
        client.send(GET * 50)
        for _ in range(50):
            client.read()
        received = connection._received - len(GET)
    assert received == 50 * len(GET)
    assert len(writes) < 50


class Spy:
    def __init__(self, transport, write, writes):
        self._transport, self._write, self._writes = transport, write, writes

    def write(self, data):
        self._writes.append(bytes(data))
        self._write(data)

    def __getattr__(self, name):
        return getattr(self._transport, name)


def test_outlives_a_shortage_of_descriptors():
    program = """
        import asyncio, resource
        from jupyter_tfserve.http import HttpServer, Response

        async def main():
            server = HttpServer(lambda request, respond: respond(Response(200, b"here")))
            resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
            print((await server.start(("127.0.0.1", 0)))[1], flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            address = ("127.0.0.1", int(process.stdout.readline()))
            crowd = [socket.create_connection(address, timeout=20) for _ in range(60)]
            for client in crowd[:10]:
                client.sendall(GET)
                assert client.recv(1000).endswith(b"here")
            assert b"Accepts no connections" in process.stderr.readline()
            crowd[-1].sendall(GET)
            for client in crowd[:-1]:
                client.close()
            assert crowd[-1].recv(1000).endswith(b"here")
            crowd[-1].close()
        finally:
            process.kill()


def test_serves_many_idle_connections(serve):
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = serve()
    crowd = [server.connect() for _ in range(min(2000, (soft - 100) // 2))]
    server.until_connections(len(crowd))
    server.pass_time(1)
    crowd[-1].send(GET)
    assert crowd[-1].read().status == 200
    for client in crowd:
        client.close()
    server.until_connections(0)
