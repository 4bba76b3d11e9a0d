"""The description of the management API holds for every route, verb and answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from described import check_answer, check_event, check_request, description
from event_reader import reading
from fake_gpus import FakeGpus, gpu
from fake_pool import FakePool, Pools
from jsonschema import Draft202012Validator, ValidationError
from jupyter_door import AUTH, NO_AUTH, Reply, Server, mounted

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server.nvml import GpuProcess
from jupyter_tfserve.state import ManagerState

API = "/tfserve/api"
MODEL = {"name": "team/m", "base_path": "/models/m"}
MEMORY = {"device": "CPU", "memory": {"host": 10, "device": 0, "estimate": True}}
COUNTS = {"name": "m", "version": 1, "requests": 1, "errors": 0, "in_flight": 0, "p50_ms": None}
TEXT = {**AUTH, "Content-Type": "text/plain", "Accept": "text/plain"}


async def ask(
    server: Server, method: str, path: str, body: Any = None, headers: Any = AUTH
) -> Reply:
    """One request, whose answer has to be as described, and whose body where it is accepted."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    reply = await server.send(method, f"{API}/{path}", data, headers)
    check_answer(method, f"/{path}", reply.status, reply.headers["content-type"], reply.body)
    if reply.status < 400 and body is not None and not isinstance(body, bytes):
        check_request(method, f"/{path}", body)
    return reply


def described() -> Iterator[tuple[str, str]]:
    for path, item in description()["paths"].items():
        for verb in item.keys() - {"parameters"}:
            yield verb, re.sub(r"\{\w+\}", "{}", path)


async def test_every_route_and_verb_is_described_and_no_other(server: Server) -> None:
    routes = [
        (method.lower(), path.removeprefix(API).replace("([^/]+)", "{}"))
        for method, path in mounted(server)
        if path.startswith(API)
    ]
    assert sorted(described()) == sorted(routes)


async def test_the_description_is_told_as_it_is(server: Server) -> None:
    reply = await ask(server, "GET", "spec.yaml")
    assert yaml.safe_load(reply.body) == description()


def test_its_schemas_are_schemas_and_its_references_lead_somewhere() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "$ref":
                    yield inner
                else:
                    yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    for schema in description()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    used = set(references(description()))
    defined = {
        f"#/components/{kind}/{name}"
        for kind, items in description()["components"].items()
        for name in items
        if kind != "securitySchemes"
    }
    assert used == defined
    codes = description()["components"]["schemas"]["Error"]["properties"]["code"]["enum"]
    assert codes == [code.name for code in Code if code is not Code.OK]
    states = description()["components"]["schemas"]["State"]["enum"]
    assert states == [state.name for state in ManagerState]


async def test_answers_are_as_described(server: Server, pools: Pools, gpus: FakeGpus) -> None:
    pools.prepare = lambda pool: pool.failures.update(bad=ServingError(Code.DATA_LOSS, "damaged"))
    assert (await ask(server, "GET", "models")).status == 200
    assert (await ask(server, "GET", "pools")).status == 200
    assert (await ask(server, "GET", "config", headers=TEXT)).status == 200
    assert (await ask(server, "POST", "models", MODEL)).status == 201
    policy = {**MODEL, "policy": {"specific": {"versions": [1]}}, "labels": {"a": 1}}
    policy["options"] = {"batching": "greedy"}
    assert (await ask(server, "POST", "models", policy)).status == 201
    assert (await ask(server, "POST", "models", {**MODEL, "name": "bad"})).status == 500
    assert (await ask(server, "POST", "models", {"name": "x"})).status == 400
    label = "models/team%2Fm/labels/stable"
    assert (await ask(server, "PUT", label, {"version": 1})).status == 200
    labels = {m["name"]: m["labels"] for m in (await ask(server, "GET", "models")).json["models"]}
    assert labels["team/m"] == {"a": 1, "stable": 1}
    assert (await ask(server, "DELETE", label)).status == 200
    assert (await ask(server, "DELETE", label)).status == 404
    recording = "models/team%2Fm/record"
    assert (await ask(server, "GET", recording)).status == 404
    assert (await ask(server, "POST", recording, {"action": "start", "limit": 5})).status == 200
    assert (await ask(server, "POST", recording, {"action": "save", "replace": True})).status == 200
    assert (await ask(server, "GET", recording)).status == 200
    config = await ask(server, "GET", "config")
    assert (await ask(server, "PUT", "config", config.json)).status == 200
    assert (await ask(server, "PUT", "config", b"oops", TEXT)).status == 400
    assert (await ask(server, "PUT", "config", b"", TEXT)).status == 200
    assert (await ask(server, "GET", "config", headers=TEXT)).status == 200
    notebook = FakePool(kind="notebook", name="train.ipynb")
    notebook.set_state("live", 1, ManagerState.AVAILABLE)
    await notebook.start()
    assert (await ask(server, "POST", "pools", {"id": notebook.pool_id})).status == 200
    assert (await ask(server, "GET", "pools")).json["pools"][1]["kind"] == "notebook"
    assert (await ask(server, "DELETE", "models/live")).status == 200
    assert (await ask(server, "GET", "metrics")).status == 200
    asked = {"name": "cpu", "device": "cpu", "kernel_name": "python3"}
    assert (await ask(server, "POST", "pools", asked)).status == 201
    assert (await ask(server, "POST", "pools", asked)).status == 409
    held = {**MODEL, "name": "held", "device": "CPU", "pool": "cpu"}
    pools.pool.memory["held"] = MEMORY
    assert (await ask(server, "POST", "models", held)).status == 201
    assert (await ask(server, "GET", "config")).status == 200
    assert (await ask(server, "POST", "models", {**MODEL, "pool": "x"})).status == 404
    told = (await ask(server, "GET", "devices")).json["devices"][0]["pools"]
    assert [m["name"] for pool in told for m in pool["models"]] == ["held"]
    gpus.have(gpu(0, 8, GpuProcess(7)))
    assert len((await ask(server, "GET", "devices")).json["devices"]) == 2
    assert (await ask(server, "DELETE", "models/held", {"release": True})).json["released"]
    assert (await ask(server, "DELETE", "models/held?release=true")).status == 404
    pool_id = server.manager.managed.mirror.pool_id
    assert (await ask(server, "POST", f"pools/{pool_id}/restart")).status == 200
    assert (await ask(server, "POST", "pools/x/restart")).status == 404
    assert (await ask(server, "GET", "models", headers=NO_AUTH)).status == 403
    await notebook.stop()


async def test_events_are_as_described(server: Server, pools: Pools) -> None:
    pools.prepare = lambda pool: pool.counts.append(COUNTS)
    seen = set()
    async with reading(server) as stream:
        await ask(server, "POST", "models", {**MODEL, "name": "m"})
        while seen != {"snapshot", "model", "pool", "rates"}:
            event = await stream.event()
            check_event(event.kind, event.data)
            seen.add(event.kind)
    async with reading(server) as stream:
        event = await stream.event()
        assert event.data["models"]
        assert event.data["rates"]
        check_event(event.kind, event.data)
    check_event("model", {"seq": 1, "name": "m", "removed": True})
    check_event("pool", {"seq": 1, "id": "p", "removed": True})


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("model", {"seq": 1, "name": "m"}),
        ("model", {"name": "m", "removed": True}),
        ("pool", {"seq": 1, "id": "p", "removed": True, "other": 1}),
        ("snapshot", {"seq": 1, "models": [{}], "pools": [], "rates": []}),
        ("rates", {"seq": 1, "versions": [{"name": "m"}]}),
    ],
)
def test_the_description_is_strict(kind: str, data: Any) -> None:
    with pytest.raises(ValidationError):
        check_event(kind, data)
