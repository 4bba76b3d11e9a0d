"""The standalone door's own part: metrics, CORS and what is no call, over a pool without models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jupyter_tfserve.http.message import Request, Response
from jupyter_tfserve.metrics import Family, Kind
from jupyter_tfserve.pool.core.server_core import CoreOptions, ServerCore
from jupyter_tfserve.pool.http_door import HttpDoor
from jupyter_tfserve.pool.metrics import PoolMetrics
from jupyter_tfserve.pool.recorder import Recorder
from jupyter_tfserve.pool.rest_api import RestApi
from jupyter_tfserve.pool.scheduler import Scheduler
from jupyter_tfserve.pool.statistics import Statistics

PATH = "/monitoring/prometheus/metrics"


class Client:
    """Asks the door and returns its answer."""

    def __init__(self, rest: RestApi, metrics: PoolMetrics) -> None:
        self.metrics = metrics
        self.metrics_path: str | None = PATH
        self._rest = rest

    async def ask(
        self, method: str, target: str, body: bytes = b"", **headers: str
    ) -> tuple[int, str | None, str]:
        answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        class Respond:
            closed = False

            def on_close(self, callback: object) -> None:
                """Nobody goes away here."""

            def __call__(self, response: Response) -> None:
                answered.set_result(response)

        path = self.metrics_path
        door = HttpDoor(self._rest, cors=False, metrics=self.metrics, metrics_path=path)
        door(Request(method, target, headers, body), Respond())
        response = await answered
        assert isinstance(response.body, bytes)
        return response.status, response.content_type, response.body.decode()

    async def lines(self) -> list[str]:
        status, _, text = await self.ask("GET", PATH)
        assert status == 200
        return text.splitlines()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    def no_loader(*_arguments: object) -> None:
        raise AssertionError

    core: ServerCore = ServerCore(no_loader, CoreOptions(file_system_poll_wait_seconds=-1))
    statistics = Statistics(lambda name: bool(core.monitor.versions(name)))
    scheduler = Scheduler(
        asyncio.get_running_loop(), timeout_s=0, max_in_flight=8, max_in_flight_per_model=8
    )
    metrics = PoolMetrics("p", core, scheduler, statistics, lambda _device: 0)
    yield Client(RestApi(core, scheduler, statistics, Recorder(core)), metrics)
    scheduler.close()
    core.close()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "HEAD", "OPTIONS"])
async def test_metrics_are_told_at_their_path_whatever_the_method(
    client: Client, method: str
) -> None:
    status, content_type, text = await client.ask(method, PATH)
    assert (status, content_type) == (200, "text/plain")
    assert text.startswith("# TYPE :tensorflow:serving:request_count counter\n")
    assert text.endswith("\n")


@pytest.mark.parametrize("tail", ["?x=1", "?", "#f"])
async def test_a_query_is_refused_in_tensorflow_servings_words(client: Client, tail: str) -> None:
    text = f"Unexpected path: {PATH}{tail}. Should be {PATH}"
    assert await client.ask("GET", PATH + tail) == (400, "text/plain", text)


async def test_the_path_wins_over_the_api(client: Client) -> None:
    client.metrics_path = "/v1/models/m"
    assert (await client.ask("GET", "/v1/models/m"))[1] == "text/plain"
    assert (await client.ask("GET", "/v1/models/more"))[1] == "application/json"


async def test_without_a_path_it_is_a_page_that_is_not_there(client: Client) -> None:
    client.metrics_path = None
    assert (await client.ask("GET", PATH))[:2] == (404, "text/html")


async def test_every_request_of_the_api_is_counted(client: Client) -> None:
    await client.ask("GET", "/v1/models/m")
    await client.ask("GET", "/v1/models/m/metadata")
    await client.ask("POST", "/v1/models/m:predict", b'{"instances": [1]}')
    await client.ask("POST", "/v1/models/m:predict", b"{")
    await client.ask("DELETE", "/v1/models/m")
    await client.ask("OPTIONS", "/v1/models/m", origin="https://x")
    await client.ask("OPTIONS", "/v1/models/m")
    await client.ask("GET", "/elsewhere")
    count = ":tensorflow:serving:request_count"
    assert [line for line in await client.lines() if line.startswith(count)] == [
        f'{count}{{model_name="",status="INVALID_ARGUMENT"}} 2',
        f'{count}{{model_name="",status="OK"}} 1',
        f'{count}{{model_name="m",status="INVALID_ARGUMENT"}} 1',
        f'{count}{{model_name="m",status="NOT_FOUND"}} 3',
    ]


async def test_the_pool_tells_of_its_process_and_its_queue(client: Client) -> None:
    lines = await client.lines()
    assert 'jupyter_tfserve_queue_depth{pool="p"} 0.0' in lines
    assert 'jupyter_tfserve_in_flight{pool="p"} 0.0' in lines
    assert any(line.startswith('jupyter_tfserve_resident_memory_bytes{pool="p"}') for line in lines)


async def test_parts_of_the_pool_may_add_what_they_count(client: Client) -> None:
    family = Family(":tensorflow:serving:batching_session:wrapped_run_count", Kind.COUNTER, ())
    family.cells[()] = 4
    client.metrics.register(lambda: [family])
    assert f"{family.name}{{}} 4" in await client.lines()
