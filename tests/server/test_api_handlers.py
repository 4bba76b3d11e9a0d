"""The management API of a real Jupyter server, over a fake pool."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fake_gpus import FakeGpus, gpu
from fake_pool import FakePool, Pools, until
from jupyter_door import AUTH, NO_AUTH, Reply, Server, mounted

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.state import ManagerState

API = "/tfserve/api"
MODEL = {"name": "team/m", "base_path": "/models/m"}


async def ask(server: Server, method: str, path: str, value: Any = None) -> Reply:
    body = None if value is None else json.dumps(value).encode()
    return await server.send(method, f"{API}/{path}", body)


async def test_a_model_is_loaded_listed_and_unloaded(server: Server, pools: Pools) -> None:
    loaded = await ask(server, "POST", "models", MODEL)
    assert loaded.status == 201
    (listed,) = (await ask(server, "GET", "models")).json["models"]
    assert listed == loaded.json
    assert (listed["name"], listed["base_path"]) == ("team/m", "/models/m")
    assert listed["versions"] == [{"version": 1, "state": "AVAILABLE", "error": None}]
    pool_id = server.manager.managed.mirror.pool_id
    owner = {"pool": pool_id, "name": "managed", "kind": "managed", "notebook": None}
    assert listed["owner"] == owner
    deleted = await ask(server, "DELETE", "models/team%2Fm")
    assert deleted.json == {"pool": "managed", "released": False, "remaining": []}
    assert (await ask(server, "GET", "config")).json == {"models": []}


async def test_a_notebooks_pool_is_adopted_listed_and_withdrawn(server: Server) -> None:
    pool = FakePool(kind="notebook", name="train.ipynb")
    pool.set_state("live", 1, ManagerState.AVAILABLE)
    await pool.start()
    adopted = await ask(server, "POST", "pools", {"id": pool.pool_id})
    assert adopted.status == 200
    assert (adopted.json["name"], adopted.json["phase"]) == ("train.ipynb", "running")
    (listed,) = (await ask(server, "GET", "models")).json["models"]
    assert listed["name"] == "live"
    owner = {
        "pool": pool.pool_id,
        "name": "train.ipynb",
        "kind": "notebook",
        "notebook": "train.ipynb",
    }
    assert listed["owner"] == owner
    assert (await ask(server, "DELETE", "models/live")).status == 200
    assert ("unpublish", {"name": "live"}) in pool.calls
    await pool.stop()
    await until(lambda: server.manager.registry.pools[-1].ended)
    (_, ended) = (await ask(server, "GET", "pools")).json["pools"]
    assert ended["phase"] == "ended"
    gone = await ask(server, "DELETE", "models/live")
    assert gone.status == 404
    assert "the kernel that published it (train.ipynb) has ended" in gone.json["error"]


@pytest.mark.parametrize(
    ("body", "status"), [({"id": "nobody"}, 404), ({"id": 3}, 400), ({}, 400), ([], 400)]
)
async def test_a_pool_that_nobody_announced_is_not_adopted(
    server: Server, body: Any, status: int
) -> None:
    reply = await ask(server, "POST", "pools", body)
    assert reply.status == status
    assert reply.json["hint"]


async def test_what_is_configured_is_listed_while_the_pool_is_down(
    server: Server, pools: Pools
) -> None:
    await ask(server, "POST", "models", MODEL)
    pools.errors = [ServingError(Code.UNAVAILABLE, "no memory")] * 6
    await pools.hosts[0].die()
    await until(lambda: server.manager.managed.mirror.client is None)
    (listed,) = (await ask(server, "GET", "models")).json["models"]
    assert [v["state"] for v in listed["versions"]] == ["START"]
    assert listed["base_path"] == "/models/m"


async def test_a_model_that_fails_tells_the_reason_with_a_hint_and_a_code(
    server: Server, pools: Pools
) -> None:
    pools.prepare = lambda p: p.problems.update({"team/m": "/models/m: looked for 1, 2, 3 ..."})
    reply = await ask(server, "POST", "models", MODEL)
    assert reply.status == 404
    assert reply.json["error"] == "/models/m: looked for 1, 2, 3 ..."
    assert reply.json["code"] == "NOT_FOUND"
    assert reply.json["hint"]


async def test_a_pool_that_cannot_start_tells_what_to_install(server: Server, pools: Pools) -> None:
    text = "Install it there: python -m pip install jupyter_tfserve"
    pools.errors = [ServingError(Code.FAILED_PRECONDITION, text)]
    reply = await ask(server, "POST", "models", MODEL)
    assert (reply.status, reply.json["error"]) == (400, text)
    (pool,) = (await ask(server, "GET", "pools")).json["pools"]
    assert (pool["phase"], pool["reason"]) == ("failed", text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("text", "no JSON object"),
        ({"name": "m"}, "'base_path'"),
        ({"name": "", "base_path": "/m"}, "'name'"),
        ({"name": "m", "base_path": "m"}, "absolute path"),
        ({**MODEL, "base-path": "/m"}, "Unknown field of a model: base-path"),
        ({**MODEL, "labels": {"a": "1"}}, "'labels'"),
        ({**MODEL, "policy": {"newest": {}}}, "version policy"),
        ({**MODEL, "policy": "all"}, "'policy'"),
        ({**MODEL, "platform": 1}, "'platform'"),
        ({**MODEL, "options": "greedy"}, "'options'"),
        ({**MODEL, "options": {"batches": 1}}, "'options'"),
        ({**MODEL, "options": {"batching": 1}}, "'batching' to be one of off, greedy"),
        ({**MODEL, "device": "cuda"}, "device of model team/m"),
        ({**MODEL, "device": 0.5}, "device of model team/m"),
        ({**MODEL, "pool": 1}, "'pool'"),
        ({**MODEL, "platform": "torch"}, "unsupported platform torch"),
    ],
)
async def test_a_request_of_another_form_is_refused_by_name(
    server: Server, value: Any, words: str
) -> None:
    reply = await ask(server, "POST", "models", value)
    assert reply.status == 400
    assert words in reply.json["error"]
    assert reply.json["code"] == "INVALID_ARGUMENT"


async def test_how_a_model_is_batched_is_part_of_the_configuration(
    server: Server, pools: Pools
) -> None:
    asked = {**MODEL, "options": {"batching": "greedy"}}
    reply = await ask(server, "POST", "models", asked)
    assert reply.status == 201
    (model,) = (await ask(server, "GET", "config")).json["models"]
    assert model["options"] == {"batching": "greedy"}
    assert pools.pool.configs[-1]["models"] == [model]
    assert (await ask(server, "PUT", "config", {"models": [model]})).status == 200
    assert server.manager.config_in_force.models[0].batching == "greedy"


async def test_a_body_that_is_no_json_is_refused(server: Server) -> None:
    for body in (b"{", b"\xff", b"[" * 100_000):
        reply = await server.send("PUT", f"{API}/config", body)
        assert reply.status == 400
        assert "no JSON" in reply.json["error"]


async def test_labels_are_set_and_removed_one_by_one(server: Server) -> None:
    await ask(server, "POST", "models", MODEL)
    path = "models/team%2Fm/labels"
    assert (await ask(server, "PUT", f"{path}/stable", {"version": 1})).json == {
        "labels": {"stable": 1}
    }
    await ask(server, "PUT", f"{path}/a%20b", {"version": 1})
    (listed,) = (await ask(server, "GET", "models")).json["models"]
    assert listed["labels"] == {"stable": 1, "a b": 1}
    assert (await ask(server, "DELETE", f"{path}/stable")).json == {"labels": {"a b": 1}}
    assert (await ask(server, "DELETE", f"{path}/stable")).status == 404
    assert (await ask(server, "PUT", f"{path}/stable", {"version": "1"})).status == 400


async def test_the_configuration_is_replaced_as_a_whole(server: Server, pools: Pools) -> None:
    models = [MODEL, {"name": "n", "base_path": "/models/n", "policy": {"all": {}}}]
    reply = await ask(server, "PUT", "config", {"models": models})
    assert reply.status == 200
    assert (await ask(server, "GET", "config")).json == reply.json
    assert reply.json["models"][1]["policy"] == {"all": {}}
    assert (await ask(server, "PUT", "config", {"models": [1]})).status == 400


TEXT = {**AUTH, "Content-Type": "text/plain; charset=utf-8", "Accept": "text/plain"}


async def test_the_configuration_is_told_and_taken_as_text(server: Server, pools: Pools) -> None:
    empty = await server.send("GET", f"{API}/config", headers=TEXT)
    assert (empty.status, empty.body) == (200, b"model_config_list {\n}\n")
    assert pools.hosts == []
    reply = await server.send("PUT", f"{API}/config", b"model_config_list { }", TEXT)
    assert [model["name"] for model in reply.json["models"]] == ["t"]
    assert ("parse_config", {"text": "model_config_list { }"}) in pools.pool.calls
    told = await server.send("GET", f"{API}/config", headers=TEXT)
    assert (told.body, told.headers["content-type"]) == (b"# ['t']", "text/plain; charset=utf-8")
    both = {**AUTH, "Accept": "application/json, text/plain, */*"}
    assert (await server.send("GET", f"{API}/config", headers=both)).json == reply.json


@pytest.mark.parametrize("body", [b"model_config_list {\n  oops: 1 }", b"\xff"])
async def test_a_text_that_is_refused_changes_nothing(server: Server, body: bytes) -> None:
    await ask(server, "POST", "models", MODEL)
    before = (await ask(server, "GET", "config")).json
    reply = await server.send("PUT", f"{API}/config", body, TEXT)
    assert (reply.status, reply.json["code"]) == (400, "INVALID_ARGUMENT")
    assert "2:3" in reply.json["error"] or "no UTF-8" in reply.json["error"]
    assert (await ask(server, "GET", "config")).json == before


async def test_a_configuration_is_no_text_while_the_pool_that_writes_it_is_down(
    server: Server, pools: Pools
) -> None:
    await ask(server, "POST", "models", MODEL)
    pools.gate = asyncio.Event()
    await pools.hosts[0].die()
    await until(lambda: server.manager.managed.phase == "restarting")
    reply = await server.send("GET", f"{API}/config", headers=TEXT)
    assert (reply.status, reply.json["code"]) == (503, "UNAVAILABLE")
    assert "is being restarted" in reply.json["error"]


async def test_the_managed_pool_is_restarted_by_its_id(server: Server, pools: Pools) -> None:
    await ask(server, "POST", "models", MODEL)
    (pool,) = (await ask(server, "GET", "pools")).json["pools"]
    assert (pool["kind"], pool["phase"]) == ("managed", "running")
    assert (await ask(server, "POST", f"pools/{pool['id']}/restart")).status == 200
    assert len(pools.hosts) == 2
    assert (await ask(server, "POST", "pools/unknown/restart")).status == 404


async def test_a_pool_is_started_and_restarted_by_its_id(server: Server, pools: Pools) -> None:
    asked = {"name": "cpu", "device": "cpu", "kernel_name": "python3"}
    started = await ask(server, "POST", "pools", asked)
    assert started.status == 201
    assert (started.json["name"], started.json["device"]) == ("cpu", "CPU")
    assert (await ask(server, "POST", "pools", asked)).status == 409
    loaded = await ask(server, "POST", "models", {**MODEL, "device": "CPU", "pool": "cpu"})
    assert loaded.json["owner"]["name"] == "cpu"
    (listed,) = (await ask(server, "GET", "config")).json["models"]
    assert (listed["device"], listed["pool"]) == ("CPU", "cpu")
    path = f"pools/{started.json['id']}/restart"
    assert (await ask(server, "POST", path)).status == 200
    assert len(pools.of("cpu")) == 2
    assert pools.of("managed") == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"name": "a b"}, "'name' of a pool"),
        ({"name": "a", "device": "cuda"}, "device of pool a"),
        ({"name": "a", "memory_limit": 3}, "Unknown field of a pool: memory_limit"),
    ],
)
async def test_a_pool_of_another_form_is_refused_by_field(
    server: Server, value: Any, words: str
) -> None:
    reply = await ask(server, "POST", "pools", value)
    assert reply.status == 400
    assert words in reply.json["error"]


@pytest.mark.parametrize(
    ("query", "body", "released"),
    [
        ("", None, False),
        ("?release=true", None, True),
        ("?release=false", None, False),
        ("", {"release": True}, True),
    ],
)
async def test_a_model_is_unloaded_with_its_process_where_that_is_asked_for(
    server: Server, pools: Pools, query: str, body: Any, released: bool
) -> None:
    await ask(server, "POST", "models", {**MODEL, "name": "m"})
    reply = await ask(server, "DELETE", f"models/m{query}", body)
    assert reply.json == {"pool": "managed", "released": released, "remaining": []}
    assert pools.hosts[0].ended is released
    if released:
        call = await server.send("POST", "/v1/models/m:predict", b"{}")
        assert (call.status, b"Servable not found" in call.body) == (404, True)


@pytest.mark.parametrize(("query", "body"), [("?release=1", None), ("", {"release": 1})])
async def test_a_release_that_is_neither_true_nor_false_is_refused(
    server: Server, query: str, body: Any
) -> None:
    await ask(server, "POST", "models", MODEL)
    reply = await ask(server, "DELETE", f"models/team%2Fm{query}", body)
    assert (reply.status, reply.json["code"]) == (400, "INVALID_ARGUMENT")
    assert (await ask(server, "GET", "config")).json["models"]


async def test_a_notebooks_kernel_is_not_ended(server: Server) -> None:
    pool = FakePool(kind="notebook", name="train.ipynb")
    pool.set_state("live", 1, ManagerState.AVAILABLE)
    await pool.start()
    await ask(server, "POST", "pools", {"id": pool.pool_id})
    reply = await ask(server, "DELETE", "models/live?release=true")
    assert (reply.status, reply.json["code"]) == (400, "FAILED_PRECONDITION")
    assert "unpublish" not in [method for method, _ in pool.calls]
    await pool.stop()


async def test_devices_are_told_with_a_hint_where_memory_is_short(
    server: Server, pools: Pools, gpus: FakeGpus
) -> None:
    gpus.have(gpu(0, 0.5))
    pools.prepare = lambda p: p.process.update(devices=["CPU:0", "GPU:0"], visible_devices=None)
    await ask(server, "POST", "models", MODEL)
    told = (await ask(server, "GET", "devices")).json
    assert [(d["name"], len(d["pools"])) for d in told["devices"]] == [("CPU", 1), ("GPU:0", 1)]
    pools.pool.failures["n"] = ServingError(Code.RESOURCE_EXHAUSTED, "OOM when allocating")
    reply = await ask(server, "POST", "models", {"name": "n", "base_path": "/models/n"})
    assert reply.status == 429
    assert reply.json["hint"].startswith("GPU:0 has 0.50 GiB of 16.00 GiB free and is used by")


async def test_reads_start_nothing(server: Server, pools: Pools) -> None:
    for path in ("models", "pools", "config", "devices"):
        assert (await ask(server, "GET", path)).status == 200
    assert pools.hosts == []


def routes(server: Server) -> list[tuple[str, str]]:
    """Every (method, path) that the extension adds to the server, with an example's path."""
    found = [
        (method, path.replace("([^/]+)", "x").replace("(?i:v1)/.*", "v1/models/x"))
        for method, path in mounted(server)
    ]
    assert len({path for _, path in found}) == 13
    return found


async def test_no_route_is_open(server: Server, pools: Pools) -> None:
    for method, path in routes(server):
        reply = await server.send(method, path, b"{}", NO_AUTH)
        assert reply.status == 403, (method, path)
        if method != "HEAD":
            assert "error" in reply.json
    assert pools.hosts == []


async def test_each_verb_asks_for_its_own_leave(server: Server, pools: Pools) -> None:
    asked: list[tuple[str, str]] = []

    def refuse(_handler: Any, _user: Any, action: str, resource: str) -> bool:
        asked.append((action, resource))
        return False

    server.app.web_app.settings["authorizer"].is_authorized = refuse
    for method, path in routes(server):
        asked.clear()
        assert (await server.send(method, path, b"{}")).status == 403, (method, path)
        action = {"GET": "read", "HEAD": "read", "POST": "write"}.get(method, "write")
        if path.startswith("/v1") and method == "POST":
            action = "execute"
        assert asked == [(action, "tfserve")], (method, path)
    assert pools.hosts == []


async def test_the_recording_of_a_models_calls(server: Server, pools: Pools) -> None:
    assert (await ask(server, "GET", "models/m/record")).status == 404
    await ask(server, "POST", "models", MODEL)
    path = "models/team%2Fm/record"
    missing = await ask(server, "GET", path)
    assert (missing.status, missing.json["error"]) == (404, "Model team/m is not being recorded")
    started = await ask(server, "POST", path, {"action": "start", "version": 1, "limit": 5})
    assert started.status == 200
    assert (started.json["version"], started.json["limit"]) == (1, 5)
    assert (await ask(server, "GET", path)).json["recording"]
    saved = await ask(server, "POST", path, {"action": "save", "path": "/f", "replace": True})
    assert saved.json["file"] == "/f"
    asked = [params for method, params in pools.pool.calls if method == "record"]
    assert asked[-1] == {"model": "team/m", "action": "save", "path": "/f", "replace": True}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "'action'"),
        ({"action": "begin"}, "'action'"),
        ({"action": "stop", "limit": 1}, "Unknown field of stop: limit"),
        ({"action": "start", "version": "1"}, "'version'"),
        ({"action": "start", "limit": True}, "'limit'"),
        ({"action": "save", "path": "here"}, "'path'"),
        ({"action": "save", "replace": 1}, "'replace'"),
    ],
)
async def test_a_recording_of_another_form_is_refused_by_name(
    server: Server, pools: Pools, value: Any, words: str
) -> None:
    reply = await ask(server, "POST", "models/m/record", value)
    assert reply.status == 400
    assert words in reply.json["error"]


async def test_what_may_have_changed_on_disk_is_looked_at(server: Server, pools: Pools) -> None:
    await ask(server, "POST", "models", MODEL)
    reply = await ask(server, "POST", "reload")
    assert (reply.status, reply.json) == (200, {"config_changed": False})
    assert pools.pool.calls[-1] == ("poll", {})
