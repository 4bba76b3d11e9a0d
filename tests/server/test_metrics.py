"""The metrics that a Jupyter server tells, of itself and of fake pools."""

from __future__ import annotations

import pytest
from fake_pool import FakePool, Pools, until
from jupyter_door import NO_AUTH, Server

from jupyter_tfserve.config import ModelConfig
from jupyter_tfserve.metrics import Family, Kind
from jupyter_tfserve.state import ManagerState

METRICS = "/tfserve/api/metrics"
COUNT = ":tensorflow:serving:request_count"


def counted(name: str, number: int) -> Family:
    labels = ("model_name", "status")
    return Family(COUNT, Kind.COUNTER, labels, cells={(name, "OK"): number})


async def lines(server: Server) -> list[str]:
    reply = await server.send("GET", METRICS)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain")
    return reply.body.decode().splitlines()


async def counts(server: Server) -> dict[str, int]:
    told = [line.rsplit(" ", 1) for line in await lines(server) if line.startswith(COUNT)]
    return {labels.removeprefix(COUNT): int(number) for labels, number in told}


async def test_what_no_pool_sees_is_counted_by_the_server(server: Server, pools: Pools) -> None:
    for method, target in [
        ("GET", "/v1/models/nobody"),
        ("POST", "/v1/models/nobody:predict"),
        ("POST", "/v1/models/nobody:predict?x=1"),
        ("HEAD", "/v1/models/nobody"),
    ]:
        await server.send(method, target)
    await server.send("GET", "/v1/models/nobody", headers=NO_AUTH)  # never came to the API
    assert await counts(server) == {
        '{model_name="nobody",status="NOT_FOUND"}': 2,
        '{model_name="",status="INVALID_ARGUMENT"}': 2,
    }
    assert pools.hosts == []


async def test_counts_of_the_server_and_all_pools_are_added_up(
    server: Server, pools: Pools
) -> None:
    pools.prepare = lambda pool: pool.families.append(counted("m", 5))
    await server.manager.load(ModelConfig("m", "/models/m"))
    notebook = FakePool(kind="notebook", name="train.ipynb")
    notebook.families = [counted("live", 3), counted("m", 1)]
    notebook.set_state("live", 1, ManagerState.AVAILABLE)
    await notebook.start()
    await server.manager.adopt(notebook.pool_id)
    assert (await server.send("GET", "/v1/models/m")).status == 200
    assert (await server.send("POST", "/v1/models/m:predict", b"{}")).status == 200
    assert await counts(server) == {
        '{model_name="m",status="OK"}': 7,  # the prediction is the pool's to count
        '{model_name="live",status="OK"}': 3,
    }
    labels = f'{{kind="notebook",name="train.ipynb",pool="{notebook.pool_id}"}}'
    assert f"jupyter_tfserve_pool_up{labels} 1.0" in await lines(server)
    await notebook.stop()
    await until(lambda: server.manager.registry.pools[-1].ended)
    assert f"jupyter_tfserve_pool_up{labels} 0.0" in await lines(server)


async def test_a_status_has_a_latency_and_no_api(server: Server) -> None:
    await server.manager.load(ModelConfig("m", "/models/m"))
    await server.send("GET", "/v1/models/m")
    labels = 'model_name="m",API="",entrypoint="REST"'
    assert f":tensorflow:serving:request_latency_count{{{labels}}} 1" in await lines(server)


async def test_a_pool_that_died_counts_as_restarted(server: Server, pools: Pools) -> None:
    await server.manager.load(ModelConfig("m", "/models/m"))
    await pools.hosts[0].die()
    await until(lambda: len(pools.hosts) == 2 and server.manager.managed.mirror.client)
    pool_id = server.manager.managed.mirror.pool_id
    told = await lines(server)
    assert f'jupyter_tfserve_pool_restarts_total{{pool="{pool_id}"}} 1.0' in told
    labels = f'{{kind="managed",name="managed",pool="{pool_id}"}}'
    assert f"jupyter_tfserve_pool_up{labels} 1.0" in told


async def test_metrics_need_a_login(server: Server) -> None:
    assert (await server.send("GET", METRICS, headers=NO_AUTH)).status == 403


@pytest.mark.parametrize(
    "jupyter_config", [{"PoolManager": {"max_in_flight_per_model": 0}}], indirect=False
)
async def test_a_request_over_a_limit_is_counted_by_the_server(server: Server) -> None:
    await server.manager.load(ModelConfig("m", "/models/m"))
    assert (await server.send("POST", "/v1/models/m:predict", b"{}")).status == 429
    assert await counts(server) == {'{model_name="m",status="RESOURCE_EXHAUSTED"}': 1}
