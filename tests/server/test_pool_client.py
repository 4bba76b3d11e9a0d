"""The client against a fake pool over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from fake_pool import FakePool, until

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server import pool_client
from jupyter_tfserve.server.admission import Limits
from jupyter_tfserve.server.answers import StreamedResponse
from jupyter_tfserve.server.pool_client import PoolClient
from jupyter_tfserve.server.upload import Upload
from jupyter_tfserve.state import ManagerState
from jupyter_tfserve.wire import CHUNK_SIZE, Request, Response, handshake

PREDICT = "/v1/models/m:predict"
BIG = bytes(range(256)) * 20_000


@pytest.fixture
async def client(fake_pool: FakePool) -> AsyncIterator[PoolClient]:
    assert fake_pool.info is not None
    client = PoolClient(fake_pool.info)
    await client.connect()
    yield client
    client.close()


def predict(body: bytes = b"{}", timeout_ms: int = 0) -> Request:
    return Request("POST", PREDICT, body, timeout_ms=timeout_ms)


async def whole(response: Response | StreamedResponse) -> bytes:
    if isinstance(response, Response):
        return bytes(response.body)
    return b"".join([bytes(chunk) async for chunk in response.chunks])


async def until_asked(pool: FakePool, number: int = 1) -> None:
    await until(lambda: len(pool.requests) >= number)


async def test_requests_share_a_connection_and_each_gets_its_own_answer(
    fake_pool: FakePool, client: PoolClient
) -> None:
    async def answer(request: Request) -> Response:
        # The first asked is the last answered.
        await asyncio.sleep(0.05 - 0.001 * int(bytes(request.body)))
        return Response(200, request.body)

    fake_pool.answer = answer
    exchanges = [client.request(predict(b"%d" % n), "m") for n in range(50)]
    answers = [await whole(await exchange) for exchange in exchanges]
    assert answers == [b"%d" % n for n in range(50)]
    assert len(fake_pool.connections) == 1
    assert client.admission.in_flight == 0


async def test_a_large_answer_comes_in_chunks_between_small_ones(
    fake_pool: FakePool, client: PoolClient
) -> None:
    fake_pool.answer = lambda r: Response(200, BIG if r.body == b"big" else b"small")
    big = await client.request(predict(b"big"), "m")
    assert isinstance(big, StreamedResponse)
    assert await whole(await client.request(predict(b"small"), "m")) == b"small"
    assert await whole(big) == BIG
    assert client.admission.in_flight == 0


async def test_an_answer_that_nobody_reads_is_dropped_alone(
    fake_pool: FakePool, client: PoolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_client, "_MAX_BUFFERED", 2 * CHUNK_SIZE)
    fake_pool.answer = lambda r: Response(200, BIG if r.body == b"big" else b"small")
    unread = await client.request(predict(b"big"), "m")
    await until(lambda: fake_pool.cancelled)
    with pytest.raises(ServingError, match="read too slowly") as raised:
        await whole(unread)
    assert raised.value.code is Code.RESOURCE_EXHAUSTED
    assert await whole(await client.request(predict(b"small"), "m")) == b"small"


async def test_a_stream_closed_early_cancels_its_exchange(
    fake_pool: FakePool, client: PoolClient
) -> None:
    fake_pool.answer = lambda _: Response(200, bytes(64 << 20))
    answer = await client.request(predict(), "m")
    assert isinstance(answer, StreamedResponse)
    await anext(answer.chunks)
    answer.chunks.close()
    assert client.admission.in_flight == 0
    await until(lambda: fake_pool.cancelled)


async def test_a_silent_pool_is_given_up(
    fake_pool: FakePool, client: PoolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_client, "GRACE_S", 0.05)
    monkeypatch.setattr(pool_client, "_SWEEP_S", 0.02)
    fake_pool.held = asyncio.Event()
    with pytest.raises(ServingError, match="no answer within the time-out of 50 ms") as raised:
        await client.request(predict(timeout_ms=50), "m")
    assert raised.value.code is Code.DEADLINE_EXCEEDED
    upload = Upload(client, predict(timeout_ms=50), "m")
    await upload.open()
    with pytest.raises(ServingError, match="no answer") as raised:
        await upload.finish()
    assert raised.value.code is Code.DEADLINE_EXCEEDED
    assert len(fake_pool.cancelled) == 1


async def test_a_cancelled_wait_cancels_the_exchange(
    fake_pool: FakePool, client: PoolClient
) -> None:
    fake_pool.held = asyncio.Event()
    exchange = client.request(predict(), "m")
    task = asyncio.ensure_future(exchange)
    await until_asked(fake_pool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.admission.in_flight == 0
    await until(lambda: fake_pool.cancelled == [exchange.id])


async def test_all_that_waits_ends_when_the_pool_does(
    fake_pool: FakePool, client: PoolClient
) -> None:
    fake_pool.held = asyncio.Event()
    upload = Upload(client, predict(), "m")
    await upload.open()
    waiting = [
        asyncio.ensure_future(client.request(predict(), "m")),
        asyncio.ensure_future(upload.finish()),
    ]
    await until_asked(fake_pool, 2)
    await fake_pool.stop()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [getattr(o, "code", None) for o in outcomes] == [Code.UNAVAILABLE] * 2
    await client.closed
    with pytest.raises(ServingError, match="gone"):
        client.request(predict(), "m")
    with pytest.raises(ServingError, match="gone"):
        await client.call("poll")
    assert client.admission.in_flight == 0


async def test_limits_hold_for_each_model_and_for_the_pool(fake_pool: FakePool) -> None:
    assert fake_pool.info is not None
    client = PoolClient(fake_pool.info, limits=Limits(in_flight=3, in_flight_per_model=2))
    await client.connect()
    fake_pool.held = asyncio.Event()
    exchanges = [client.request(predict(), name) for name in ("a", "a", "b")]
    for name, words in (("a", "Model a has 2"), ("c", "The model pool has 3")):
        with pytest.raises(ServingError, match=words) as raised:
            client.request(predict(), name)
        assert raised.value.code is Code.RESOURCE_EXHAUSTED
    fake_pool.held.set()
    for exchange in exchanges:
        await exchange
    await client.request(predict(), "a")
    client.close()


async def test_an_upload_reaches_the_pool_whole(fake_pool: FakePool, client: PoolClient) -> None:
    fake_pool.answer = lambda r: Response(200, r.body)
    upload = Upload(client, predict(), "m")
    await upload.open()
    for start in range(0, len(BIG), 300_000):
        await upload.write(BIG[start : start + 300_000])
    assert await whole(await upload.finish()) == b"{}" + BIG
    await until(lambda: len(fake_pool.connections) == 1)
    assert client.admission.in_flight == 0


async def test_a_pool_that_does_not_read_stops_the_writer(
    fake_pool: FakePool, client: PoolClient
) -> None:
    upload = Upload(client, predict(), "m")
    await upload.open()
    (mine,) = [c for c in fake_pool.connections if c not in fake_pool._subscribers][-1:]
    for connection in fake_pool.connections:
        connection.pause_reading()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await upload.write(bytes(64 << 20))
    mine.abort()
    upload.abort()


async def test_a_call_returns_its_result_or_the_pools_refusal(client: PoolClient) -> None:
    assert await client.call("poll") == {}
    with pytest.raises(ServingError, match="no method") as raised:
        await client.call("nonsense")
    assert raised.value.code is Code.UNIMPLEMENTED


async def test_events_come_after_subscribing(fake_pool: FakePool) -> None:
    assert fake_pool.info is not None
    events: list[dict[str, object]] = []
    client = PoolClient(fake_pool.info, events.append)
    await client.connect()
    snapshot = await client.call("subscribe")
    fake_pool.set_state("m", 1, ManagerState.AVAILABLE)
    await client.call("poll")
    assert [event["seq"] for event in events] == [snapshot["seq"] + 1]
    client.close()


async def test_who_does_not_know_the_secret_is_no_pool(fake_pool: FakePool) -> None:
    assert fake_pool.info is not None
    client = PoolClient(replace(fake_pool.info, secret="another"))
    with pytest.raises(ServingError, match="does not know its secret") as raised:
        await client.connect()
    assert raised.value.code is Code.UNAVAILABLE


async def test_another_wire_version_is_refused_with_the_side_to_update(
    fake_pool: FakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fake_pool.info is not None
    monkeypatch.setattr(handshake, "WIRE_VERSION", 0)
    hello = handshake.PoolHandshake.answer

    def newer(self: handshake.PoolHandshake, door_hello: bytes) -> bytes:
        return hello(self, door_hello).replace(b'"wire": 0', b'"wire": 7')

    monkeypatch.setattr(handshake.PoolHandshake, "answer", newer)
    with pytest.raises(
        ServingError, match="Update jupyter_tfserve in the environment of the server"
    ):
        await PoolClient(fake_pool.info).connect()


async def test_an_address_where_nobody_listens_is_unavailable(fake_pool: FakePool) -> None:
    assert fake_pool.info is not None
    await fake_pool.stop()
    with pytest.raises(ServingError, match="cannot be reached") as raised:
        await PoolClient(fake_pool.info).connect()
    assert raised.value.code is Code.UNAVAILABLE
