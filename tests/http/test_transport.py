"""Connections of a reactor: the contract of asyncio's transports, by turns."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from jupyter_tfserve.http.reactor import Reactor


class Protocol(asyncio.BufferedProtocol):
    """Notes what it is told."""

    def __init__(self, keep: bool = False) -> None:
        self.events: list[object] = []
        self.received = b""
        self.ended = asyncio.Event()
        self.keep = keep
        self.buffer = bytearray(1000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=1000)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]

    def eof_received(self) -> bool:
        self.events.append("eof")
        return self.keep

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(exc or "lost")
        self.ended.set()


@pytest.fixture
async def reactor():
    made = Reactor(asyncio.get_running_loop(), lambda: None, lambda: None)
    yield made
    made.close()


def connect(reactor: Reactor, protocol: Protocol) -> socket.socket:
    near, far = socket.socketpair()
    reactor.add(near, protocol)
    far.settimeout(10)
    return far


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the loop is what is watched
            await asyncio.sleep(0)


async def test_bytes_arrive_and_leave(reactor):
    protocol = Protocol()
    with connect(reactor, protocol) as far:
        far.send(b"hello")
        await until(lambda: protocol.received == b"hello")
        protocol.transport.write(b"good ")
        protocol.transport.write(memoryview(b"day"))
        assert far.recv(100) == b"good day"
        protocol.transport.close()
        await protocol.ended.wait()
        assert far.recv(100) == b""
    assert protocol.events == ["lost"]


async def test_what_the_peer_does_not_take_is_kept_in_order_and_sent_before_closing(reactor):
    protocol = Protocol()
    with connect(reactor, protocol) as far:
        sent = b""
        for number in range(200):
            part = bytes([number]) * 5000
            protocol.transport.write(part)
            sent += part
        assert protocol.events == ["pause"]
        assert protocol.transport.get_write_buffer_size() > 1000
        protocol.transport.close()
        received = b""
        while part := await asyncio.to_thread(far.recv, 1 << 16):
            received += part
        assert received == sent
        await protocol.ended.wait()
    assert protocol.events == ["pause", "resume", "lost"]


async def test_eof_follows_what_is_waiting(reactor):
    protocol = Protocol()
    with connect(reactor, protocol) as far:
        protocol.transport.write(b"x" * 1_000_000)
        protocol.transport.write_eof()
        count = 0
        while part := await asyncio.to_thread(far.recv, 1 << 16):
            count += len(part)
        assert count == 1_000_000
        far.send(b"still heard")
        await until(lambda: protocol.received == b"still heard")
        protocol.transport.abort()
        await protocol.ended.wait()


@pytest.mark.parametrize("keep", [False, True])
async def test_a_peer_that_is_done_may_be_answered(reactor, keep):
    protocol = Protocol(keep)
    with connect(reactor, protocol) as far:
        far.shutdown(socket.SHUT_WR)
        await until(lambda: bool(protocol.events))
        protocol.transport.write(b"bye")
        if keep:
            assert far.recv(10) == b"bye"
            assert not protocol.ended.is_set()
            protocol.transport.close()
        await protocol.ended.wait()
    assert protocol.events == ["eof", "lost"]


async def test_a_peer_that_is_gone_is_told_as_a_loss(reactor):
    protocol = Protocol()
    far = connect(reactor, protocol)
    far.close()
    protocol.transport.write(b"x")
    await protocol.ended.wait()
    assert isinstance(protocol.events[-1], ConnectionError)
    protocol.transport.write(b"into the void")
    protocol.transport.close()


async def test_reading_rests_while_it_is_paused(reactor):
    protocol, other = Protocol(), Protocol()
    with connect(reactor, protocol) as far, connect(reactor, other) as other_far:
        protocol.transport.pause_reading()
        far.send(b"hello")
        other_far.send(b"x")
        await until(lambda: other.received == b"x")
        assert not protocol.received
        protocol.transport.resume_reading()
        await until(lambda: protocol.received == b"hello")
        protocol.transport.abort()
        other.transport.abort()


@pytest.mark.parametrize("where", ["get_buffer", "buffer_updated", "eof_received"])
async def test_a_protocol_that_fails_costs_its_own_connection_only(reactor, where, caplog):
    failing, sound = Protocol(), Protocol()

    def fail(*_args: object) -> None:
        raise MemoryError(where)

    setattr(failing, where, fail)
    with connect(reactor, failing) as far, connect(reactor, sound) as sound_far:
        far.send(b"x")
        far.shutdown(socket.SHUT_WR)
        await failing.ended.wait()
        sound_far.send(b"y")
        await until(lambda: sound.received == b"y")
        sound.transport.abort()
    assert "its connection is cut" in caplog.text


async def test_a_turn_receives_from_all_before_it_ends():
    loop = asyncio.get_running_loop()
    turns: list[bytes] = []
    protocols = [Protocol() for _ in range(3)]
    reactor = Reactor(
        loop, lambda: turns.append(b"before"), lambda: turns.append(b"".join(received()))
    )

    def received() -> list[bytes]:
        return [protocol.received for protocol in protocols]

    fars = [connect(reactor, protocol) for protocol in protocols]
    for far in fars:
        far.send(b"x")
    await until(lambda: bool(turns))
    assert turns == [b"before", b"xxx"]
    for protocol, far in zip(protocols, fars, strict=True):
        protocol.transport.abort()
        far.close()
    await asyncio.sleep(0)
    reactor.close()
