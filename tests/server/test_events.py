"""The event stream of a real Jupyter server, over fake pools."""

from __future__ import annotations

import asyncio

import pytest
from event_reader import EVENTS, Event, Reader, reading
from fake_pool import FakePool, Pools, until
from jupyter_door import AUTH, NO_AUTH, Server, running_server, write_request

from jupyter_tfserve.config import ModelConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server import event_stream
from jupyter_tfserve.server.app import TFServeExtension
from jupyter_tfserve.state import ManagerState

MODEL = ModelConfig("m", "/models/m")
COUNTS = {"name": "m", "version": 1, "requests": 0, "errors": 0, "in_flight": 0}


def extension(server: Server) -> TFServeExtension:
    (found,) = server.app.extension_manager.extension_apps["jupyter_tfserve"]
    assert isinstance(found, TFServeExtension)
    return found


def state_of(event: Event) -> str:
    state: str = event.data["versions"][0]["state"]
    return state


async def test_a_snapshot_comes_first_then_every_change_of_state(server: Server) -> None:
    async with reading(server) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
        first = await stream.event()
        assert first.kind == "snapshot"
        assert first.data["models"] == []
        assert [pool["phase"] for pool in first.data["pools"]] == ["stopped"]
        await server.manager.load(MODEL)
        states = []
        seq = first.data["seq"]
        while not states or states[-1] != "AVAILABLE":
            event = await stream.event()
            assert event.data["seq"] == (seq := seq + 1)
            if event.kind == "model" and event.data["versions"]:
                states.append(state_of(event))
        assert states == ["START", "LOADING", "AVAILABLE"]
        assert event.data["base_path"] == "/models/m"
    async with reading(server) as stream:
        snapshot = await stream.event()
        assert snapshot.data["models"] == [
            {key: value for key, value in event.data.items() if key != "seq"}
        ]
        assert [pool["phase"] for pool in snapshot.data["pools"]] == ["running"]


async def test_labels_are_told_once_they_are_in_force(server: Server, pools: Pools) -> None:
    await server.manager.load(MODEL)
    async with reading(server) as stream:
        await stream.event("snapshot")
        pools.pool.refusal = ServingError(Code.FAILED_PRECONDITION, "no")
        with pytest.raises(ServingError):
            await server.manager.label("m", "refused", 1)
        pools.pool.refusal = None
        await server.manager.label("m", "stable", 1)
        assert (await stream.event("model")).data["labels"] == {"stable": 1}
        await server.manager.unload("m")
        assert state_of(await stream.event("model")) == "END"


async def test_pools_are_told_as_they_come_and_go(server: Server, pools: Pools) -> None:
    await server.manager.load(MODEL)
    async with reading(server) as stream:
        await stream.event("snapshot")
        notebook = FakePool(kind="notebook", name="train.ipynb")
        notebook.set_state("live", 1, ManagerState.AVAILABLE)
        await notebook.start()
        await server.manager.adopt(notebook.pool_id)
        pool, model = await stream.event(), await stream.event()
        assert (pool.data["name"], pool.data["phase"]) == ("train.ipynb", "running")
        assert model.data["owner"]["pool"] == notebook.pool_id
        await notebook.stop()
        assert state_of(await stream.event("model")) == "END"
        assert (await stream.event("pool")).data["phase"] == "ended"
        await pools.hosts[0].die()
        assert state_of(await stream.event("model")) == "START"
        phases = [(await stream.event("pool")).data["phase"] for _ in range(2)]
        assert phases == ["restarting", "running"]


async def test_a_reader_who_comes_back_is_told_what_it_missed(server: Server) -> None:
    async with reading(server) as stream:
        seen = await stream.event()
    await server.manager.load(MODEL)
    async with reading(server, {**AUTH, "Last-Event-ID": seen.id}) as stream:
        event = await stream.event()
        assert (event.kind, event.data["seq"]) == ("pool", seen.data["seq"] + 1)


@pytest.mark.parametrize(
    "seen", ["otherserver-1", "-1", "1", "x", "{epoch}-", "{epoch}-x", "{epoch}-999999999"]
)
async def test_what_this_server_never_told_is_answered_by_a_snapshot(
    server: Server, seen: str
) -> None:
    epoch = extension(server).hub.epoch
    headers = {**AUTH, "Last-Event-ID": seen.format(epoch=epoch)}
    async with reading(server, headers) as stream:
        assert (await stream.event()).kind == "snapshot"


async def test_a_slow_reader_gets_a_snapshot_of_what_it_missed(
    server: Server, pools: Pools
) -> None:
    await server.manager.load(MODEL)
    hub = extension(server).hub
    async with reading(server) as stream:
        first = await stream.event()
        stream.writer.transport.pause_reading()  # type: ignore[attr-defined]
        # More than sockets hold, and than the hub keeps, while nobody reads.
        for number in range(3000):
            text = f"{number}{'x' * 5000}"
            error = ServingError(Code.INTERNAL, text)
            pools.pool.set_state("m", 1, ManagerState.END, error)
            if number % 100 == 0:
                await server.manager.poll()  # its events have come by now
        await server.manager.poll()
        stream.writer.transport.resume_reading()  # type: ignore[attr-defined]
        seen = [first]
        while seen[-1].kind != "snapshot" or len(seen) == 1:
            seen.append(await stream.event())
        assert seen[-1].data["seq"] > seen[-2].data["seq"] + 1
        while (seq := seen[-1].data["seq"]) < hub.snapshot().seq:
            seen.append(await stream.event())
            assert seen[-1].data["seq"] == seq + 1


async def test_rates_are_told_while_they_change(
    server: Server, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.manager.load(MODEL)
    monkeypatch.setattr(extension(server).rates, "_period_s", 0.05)
    pools.pool.counts = [{**COUNTS, "requests": 10}, {**COUNTS, "name": "not here"}]
    async with reading(server) as stream:
        await stream.event("snapshot")
        (version,) = (await stream.event("rates")).data["versions"]
        assert (version["name"], version["requests"], version["requests_per_s"]) == ("m", 10, 0)
        pools.pool.counts = [{**COUNTS, "requests": 30, "errors": 10}]
        (version,) = (await stream.event("rates")).data["versions"]
        assert version["requests_per_s"] > 0
        assert version["errors_per_s"] == pytest.approx(version["requests_per_s"] / 2, abs=0.2)
        (version,) = (await stream.event("rates")).data["versions"]
        assert (version["requests"], version["requests_per_s"]) == (30, 0)
        seq = extension(server).hub.snapshot().seq
        asked = len(pools.pool.calls)
        await until(lambda: len(pools.pool.calls) > asked + 3)
        assert extension(server).hub.snapshot().seq == seq
    await until(lambda: extension(server).rates._task is None)


async def test_nobody_is_asked_while_nobody_reads(server: Server, pools: Pools) -> None:
    await server.manager.load(MODEL)
    async with reading(server) as stream:
        await stream.event("snapshot")
        await until(lambda: ("counts", {}) in pools.pool.calls)
    await until(lambda: extension(server).rates._watchers == 0)


async def test_a_quiet_stream_says_that_it_is_alive(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "ALIVE_S", 0.05)
    async with reading(server) as stream:
        await stream.event("snapshot")
        assert [await stream.block() for _ in range(3)] == [": alive"] * 3


async def test_it_ends_with_the_server(pools: Pools) -> None:
    async with running_server({}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await write_request(writer, server.port, "GET", EVENTS, None, AUTH)
        stream = Reader(reader, writer)
        assert await stream.begin() == 200
        await stream.event("snapshot")
        await extension(server).stop_extension()
        assert await stream.block() is None
        writer.close()


async def test_it_needs_a_login(server: Server) -> None:
    reply = await server.send("GET", EVENTS, headers=NO_AUTH)
    assert reply.status == 403
    assert reply.headers["content-type"] == "application/json"
