"""Frames over real sockets: whole, in order, bounded, and with back-pressure."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_tfserve.wire import MAX_FRAME, Connection, Flag, Kind
from jupyter_tfserve.wire.messages import HEADER

Frame = tuple[int, int, int, bytes]


class Recorder:
    """A handler that keeps what it is told."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.lost = asyncio.Event()
        self.arrived = asyncio.Event()

    def connection_made(self, connection: Connection) -> None:
        self.connection = connection

    def frame_received(
        self, _: Connection, kind: int, flags: int, exchange: int, payload: bytes | bytearray
    ) -> None:
        self.frames.append((kind, flags, exchange, bytes(payload)))
        self.arrived.set()

    def connection_lost(self, _: Connection, error: Exception | None) -> None:
        self.lost.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not reached():
                self.arrived.clear()
                await self.arrived.wait()


async def pair() -> tuple[Connection, Recorder, Connection, Recorder]:
    loop = asyncio.get_running_loop()
    ends = []
    for sock in socket.socketpair():
        recorder = Recorder()
        sock.setblocking(False)
        _, connection = await loop.create_connection(lambda r=recorder: Connection(r), sock=sock)
        connection.trust()
        ends += [connection, recorder]
    return tuple(ends)  # type: ignore[return-value]


@pytest.mark.parametrize("size", [0, 1, 4096, (1 << 18) - 13, (1 << 18) - 12, 1 << 18, MAX_FRAME])
async def test_frames_of_every_size_arrive_whole(size: int) -> None:
    near, _, _, far = await pair()
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    near.send(Kind.REQUEST, 7, body[: size // 2], body[size // 2 :], flags=Flag.MORE)
    near.send(Kind.CANCEL, 8)
    await far.until(lambda: len(far.frames) == 2)
    assert far.frames == [(Kind.REQUEST, Flag.MORE, 7, body), (Kind.CANCEL, 0, 8, b"")]
    near.close()


async def test_a_payload_over_the_limit_is_refused_on_both_sides() -> None:
    near, _, far, received = await pair()
    with pytest.raises(ValueError, match="over the limit"):
        near.send(Kind.CHUNK, 1, bytes(MAX_FRAME + 1))
    transport = near._transport
    assert transport is not None
    transport.write(HEADER.pack(MAX_FRAME + 1, Kind.CHUNK, 0, 0, 1))
    await asyncio.wait_for(received.lost.wait(), 20)
    assert received.frames == []
    assert far.closed


async def test_an_unproven_peer_may_send_little() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    recorder = Recorder()
    await loop.create_connection(lambda: Connection(recorder), sock=ours)
    theirs.sendall(HEADER.pack(5000, Kind.HELLO, 0, 0, 0) + bytes(5000))
    await asyncio.wait_for(recorder.lost.wait(), 20)
    assert recorder.frames == []
    theirs.close()


async def test_a_slow_reader_holds_the_writer_back() -> None:
    near, _, far, recorder = await pair()
    far.pause_reading()
    chunk = bytes(1 << 18)
    sent = 0

    async def write() -> None:
        nonlocal sent
        for _ in range(64):
            near.send(Kind.CHUNK, 1, chunk)
            await near.drain()
            sent += 1

    writing = asyncio.create_task(write())
    for _ in range(100):
        await asyncio.sleep(0)
    assert sent < 64
    far.resume_reading()
    await asyncio.wait_for(writing, 20)
    await recorder.until(lambda: len(recorder.frames) == 64)
    near.close()


async def test_draining_to_a_peer_that_is_gone_raises() -> None:
    near, lost, far, _ = await pair()
    far.pause_reading()

    async def write() -> None:
        while True:
            near.send(Kind.CHUNK, 1, bytes(1 << 18))
            await near.drain()

    writing = asyncio.create_task(write())
    for _ in range(100):
        await asyncio.sleep(0)
    far.abort()
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(writing, 20)
    assert lost.lost.is_set()


async def test_what_was_sent_before_closing_still_arrives() -> None:
    near, _, _, far = await pair()
    near.send(Kind.REPLY, 3, b"last words")
    near.close()
    near.send(Kind.REPLY, 4, b"too late")
    await asyncio.wait_for(far.lost.wait(), 20)
    assert far.frames == [(Kind.REPLY, 0, 3, b"last words")]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_however_the_bytes_are_cut_the_frames_are_the_same(data: st.DataObject) -> None:
    sizes = data.draw(
        st.lists(st.sampled_from([0, 1, 50, 3000, 262_100, 262_144, 300_000]), max_size=6)
    )
    frames = [(Kind.CHUNK, 0, i, bytes([i]) * size) for i, size in enumerate(sizes)]
    stream = b"".join(HEADER.pack(len(p), k, f, 0, e) + p for k, f, e, p in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))

    async def receive() -> list[Frame]:
        recorder = Recorder()
        connection = Connection(recorder)
        connection.trust()
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            rest = stream[start:end]
            while rest:
                buffer = connection.get_buffer(-1)
                taken = min(len(buffer), len(rest))
                buffer[:taken] = rest[:taken]
                connection.buffer_updated(taken)
                rest = rest[taken:]
        return recorder.frames

    assert asyncio.run(receive()) == frames
