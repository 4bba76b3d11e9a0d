"""Changes become numbered events, once each, and are kept for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_tfserve.server.event_hub import Event, EventHub


class World:
    """What the hub is told of."""

    def __init__(self) -> None:
        self.models: dict[str, dict[str, Any]] = {}
        self.pools: dict[str, dict[str, Any]] = {}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def hub(world: World) -> EventHub:
    world.models["m"] = {"name": "m", "labels": {}}
    world.pools["p"] = {"id": "p", "phase": "stopped"}
    return EventHub(world.models.get, world.models.keys, lambda: world.pools)


def kinds(events: list[Event] | None) -> list[tuple[int, str]]:
    assert events is not None
    return [(event.seq, event.kind) for event in events]


def test_a_snapshot_holds_all_and_the_number_of_the_last_change(hub: EventHub) -> None:
    snapshot = hub.snapshot()
    assert (snapshot.seq, snapshot.kind) == (2, "snapshot")
    assert snapshot.data == {
        "models": [{"name": "m", "labels": {}}],
        "pools": [{"id": "p", "phase": "stopped"}],
        "rates": [],
    }


def test_only_what_differs_becomes_an_event(hub: EventHub, world: World) -> None:
    hub.refresh()
    assert hub.since(2) == []
    world.models["m"] = {"name": "m", "labels": {"stable": 1}}
    world.pools["p"] = {"id": "p", "phase": "running"}
    hub.refresh_model("m")
    hub.refresh_model("m")
    hub.refresh()
    assert hub.since(2) == [
        Event(3, "model", {"name": "m", "labels": {"stable": 1}}),
        Event(4, "pool", {"id": "p", "phase": "running"}),
    ]
    assert kinds(hub.since(3)) == [(4, "pool")]


def test_what_is_gone_is_told_by_its_name(hub: EventHub, world: World) -> None:
    world.models.clear()
    world.pools.clear()
    hub.refresh()
    assert hub.since(2) == [
        Event(3, "pool", {"id": "p", "removed": True}),
        Event(4, "model", {"name": "m", "removed": True}),
    ]
    assert hub.snapshot().data == {"models": [], "pools": [], "rates": []}


def test_rates_are_told_while_they_change(hub: EventHub) -> None:
    one, two = ("m", 1), ("m", 2)
    hub.set_rates({one: {"version": 1, "rate": 0.0}, two: {"version": 2, "rate": 5.0}})
    hub.set_rates({one: {"version": 1, "rate": 0.0}, two: {"version": 2, "rate": 7.0}})
    hub.set_rates({one: {"version": 1, "rate": 0.0}, two: {"version": 2, "rate": 7.0}})
    events = hub.since(3)
    assert events == [Event(4, "rates", {"versions": [{"version": 2, "rate": 7.0}]})]
    hub.set_rates({one: {"version": 1, "rate": 0.0}})
    assert hub.since(4) == []
    assert hub.snapshot().data["rates"] == [{"version": 1, "rate": 0.0}]


def test_numbers_that_were_never_given_or_are_forgotten_ask_for_a_snapshot(
    hub: EventHub, world: World
) -> None:
    assert kinds(hub.since(0)) == [(1, "pool"), (2, "model")]
    assert hub.since(3) is None
    for number in range(1000):
        world.models["m"] = {"name": "m", "number": number}
        hub.refresh_model("m")
    assert hub.since(1) is None
    assert len(hub.since(2) or []) == 1000
    assert hub.since(1002) == []


async def test_readers_are_woken_by_a_change_and_by_the_end(hub: EventHub, world: World) -> None:
    first, same = hub.changed(), hub.changed()
    assert first is same
    world.models["n"] = {"name": "n"}
    hub.refresh_model("n")
    await asyncio.wait_for(first, 5)
    last = hub.changed()
    assert not last.done()
    hub.close()
    await asyncio.wait_for(last, 5)
    assert hub.closed
