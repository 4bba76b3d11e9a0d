"""The parent process of ``jupyter tfserve``, over a fake pool that serves no HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from fake_pool import FakePool, Pools, until
from jupyter_door import Reply, read_reply
from traitlets import TraitError
from traitlets.config import Config

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server.managed_pool import Phase
from jupyter_tfserve.server.pool_manager import PoolManager
from jupyter_tfserve.server.pool_spec import PoolSpec
from jupyter_tfserve.server.standalone import StandaloneManager, TFServeApp

STATUS = b"GET /v1/models/m HTTP/1.1\r\nHost: x\r\n\r\n"
NO_MODEL = "Both server_options.model_base_path and server_options.model_config_file are empty!"
MODEL = {"model_name": "m", "model_base_path": "/models/m"}


class Running:
    """The command, running in the test's own loop."""

    def __init__(self, config: dict[str, dict[str, object]]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        config = {
            **config,
            "TFServeApp": {"rest_api_port": self.port, **config.get("TFServeApp", {})},
        }
        self.app = TFServeApp(config=Config(config))
        self.task = asyncio.ensure_future(self.app.serve())

    async def ask(self, request: bytes = STATUS) -> Reply | None:
        """An answer, or None where nobody answers for now."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(0.3):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(request)
                    return await read_reply(reader)
                finally:
                    writer.close()
        return None

    async def answered(self) -> Reply:
        """The first answer that comes."""
        while (reply := await self.ask()) is None:
            assert not self.task.done()
        return reply


@asynccontextmanager
async def running(**config: dict[str, object]) -> AsyncIterator[Running]:
    command = Running(config)
    try:
        yield command
    finally:
        if not command.task.done():
            os.kill(os.getpid(), signal.SIGTERM)
            assert await command.task == 0
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", command.port)


def opened(pools: Pools) -> bool:
    return bool(pools.hosts) and ("open_http", {}) in pools.pool.calls


async def test_it_answers_503_until_the_pool_takes_over(pools: Pools) -> None:
    pools.gate = asyncio.Event()
    async with running(PoolManager=MODEL) as command:
        reply = await command.answered()
        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
        assert reply.body == b'{\n    "error": "The model pool is starting"\n}'
        outside = await command.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert outside is not None
        assert outside.status == 404
        pools.gate.set()
        await until(lambda: opened(pools))
        # The fake pool does not serve: what is not answered any more was left to it.
        while await command.ask() is not None:
            pass


async def test_it_answers_again_while_a_dead_pool_is_restarted(pools: Pools) -> None:
    async with running(
        PoolManager=MODEL, TFServeApp={"rest_api_enable_cors_support": True}
    ) as command:
        await until(lambda: opened(pools))
        pools.errors = [ServingError(Code.UNAVAILABLE, "no memory")] * 2
        await pools.hosts[0].die()
        reply = await command.answered()
        assert reply.status == 503
        assert reply.json["error"].startswith("The model pool is being restarted")
        assert reply.headers["access-control-allow-origin"] == "*"
        await until(lambda: len(pools.hosts) == 4 and opened(pools))


async def test_models_that_are_still_loading_keep_the_door_shut(pools: Pools) -> None:
    # No version and no problem: it has not been looked for yet.
    pools.prepare = lambda pool: pool.problems.update(m="")
    async with running(PoolManager=MODEL) as command:
        reply = await command.answered()
        await until(lambda: pools.hosts and len(pools.pool.calls) > 5)
        assert not opened(pools)
        assert reply.status == 503
        pools.pool.problems["m"] = "looked for /models/m/N"  # then it waits for it no longer
        await until(lambda: opened(pools))


async def test_a_pool_that_is_given_up_ends_the_command(
    pools: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    pools.errors = [ServingError(Code.FAILED_PRECONDITION, "no tensorflow there")]
    async with running(PoolManager=MODEL) as command:
        assert await command.task == 1


@pytest.mark.parametrize("failing", ["failures", "problems"])
async def test_a_strict_start_fails_with_any_model(
    pools: Pools, failing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ServingError(Code.NOT_FOUND, "no such file")

    def prepare(pool: FakePool) -> None:
        if failing == "failures":
            pool.failures["m"] = error
        else:
            pool.problems["m"] = "nothing there"

    pools.prepare = prepare
    async with running(PoolManager=MODEL, TFServeApp={"strict_start": True}) as command:
        assert await command.task == 1
    assert not opened(pools)
    assert capsys.readouterr().err.count("m: nothing there") == (failing == "problems")


async def test_a_model_that_fails_does_not_stop_the_others(pools: Pools) -> None:
    pools.prepare = lambda pool: pool.failures.update(m=ServingError(Code.NOT_FOUND, "no file"))
    async with running(PoolManager=MODEL):
        await until(lambda: opened(pools))


async def test_without_a_model_it_says_what_is_missing(pools: Pools) -> None:
    async with running() as command:
        assert await command.task == 1
    assert pools.hosts == []


async def test_a_port_that_is_taken_is_told(pools: Pools) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = {"rest_api_port": taken.getsockname()[1]}
        command = Running({"PoolManager": MODEL, "TFServeApp": port})
        assert await command.task == 1
    assert pools.hosts == []


@pytest.mark.parametrize(
    ("config", "environment", "words"),
    [
        ({"StandaloneManager": {"start_timeout": "soon"}}, {}, "'start_timeout' trait"),
        ({}, {"AIP_HTTP_PORT": "http"}, "The variable AIP_HTTP_PORT is no port: 'http'"),
        ({}, {"AIP_HTTP_PORT": "99999"}, "'rest_api_port' trait"),
        ({}, {"JUPYTER_RUNTIME_DIR": "/dev/null"}, "runtime directory cannot be used"),
    ],
)
async def test_what_was_set_wrong_is_told_in_a_line(
    pools: Pools,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: dict[str, dict[str, object]],
    environment: dict[str, str],
    words: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert await TFServeApp(config=Config({"PoolManager": MODEL, **config})).serve() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "Failed to start server. Error: " in line
    assert words in line
    assert pools.hosts == []


async def test_the_pool_learns_the_path_of_the_metrics(pools: Pools) -> None:
    monitoring = {"monitoring_config_file": "/monitoring.config"}
    async with running(PoolManager=MODEL, TFServeApp=monitoring):
        opening = ("open_http", {"metrics_path": "/metrics"})
        await until(lambda: pools.hosts and opening in pools.pool.calls)
        await pools.hosts[0].die()
        await until(lambda: len(pools.hosts) == 2 and opening in pools.pool.calls)


async def test_a_monitoring_config_that_cannot_be_read_ends_the_command(
    pools: Pools, capsys: pytest.CaptureFixture[str]
) -> None:
    monitoring = {"monitoring_config_file": "/no/such/file"}
    async with running(PoolManager=MODEL, TFServeApp=monitoring) as command:
        assert await command.task == 1
    assert "Failed to start server. Error: NOT_FOUND: /no/such/file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "words"),
    [(["a", "b"], "may list one pool here"), (["a b"], "INVALID_ARGUMENT: Expected 'name'")],
)
async def test_pools_that_cannot_answer_on_its_port_are_refused(
    pools: Pools, capsys: pytest.CaptureFixture[str], names: list[str], words: str
) -> None:
    specs: object = [{"name": name} for name in names]
    async with running(PoolManager={**MODEL, "pools": specs}) as command:
        assert await command.task == 1
    error = capsys.readouterr().err
    assert "Failed to start server. Error: " in error
    assert words in error
    assert pools.hosts == []


async def test_its_pool_may_be_on_a_device_and_limited(pools: Pools) -> None:
    spec = {"name": "gpu1", "device": "GPU:1", "memory_limit_mb": 4000}
    async with running(PoolManager={**MODEL, "pools": [spec]}) as command:
        assert (await command.answered()).status
        assert pools.hosts[0].spec == PoolSpec("gpu1", "GPU:1", 4000)


def test_the_memory_of_a_gpu_is_shared_by_tensorflow_servings_flag() -> None:
    app = TFServeApp()
    app.initialize(["--per_process_gpu_memory_fraction=0.25"])
    options = StandaloneManager(parent=app).kernel_options(PoolSpec())
    assert options.pool["devices"]["per_process_gpu_memory_fraction"] == 0.25


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(TraitError, match="rest_api_port"):
        TFServeApp(rest_api_port=port)


def test_its_pools_get_the_socket_and_tensorflow_servings_defaults() -> None:
    manager: PoolManager = StandaloneManager()
    manager.http = {"fd": 5, "cors": True}
    options = manager.kernel_options(PoolSpec())
    assert options.pass_fds == (5,)
    assert options.pool["http"] == {"fd": 5, "cors": True}
    assert options.pool["core"]["max_num_load_retries"] == 5
    assert options.pool["inference"]["max_body_bytes"] == 1 << 30
    assert manager.managed.phase is Phase.STOPPED


def test_batching_is_told_to_the_pool_as_it_is_set() -> None:
    app = TFServeApp()
    app.initialize(
        [
            "--enable_batching",
            "--batching_parameters_file=/b.txt",
            "--enable_per_model_batching_parameters=true",
        ]
    )
    manager = StandaloneManager(parent=app)
    assert manager.kernel_options(PoolSpec()).pool["batching"] == {
        "enable_greedy_batching": False,
        "enable_batching": True,
        "batching_parameters_file": "/b.txt",
        "enable_per_model_batching_parameters": True,
    }
    assert PoolManager(enable_greedy_batching=True).kernel_options(PoolSpec()).pool["batching"] == {
        "enable_greedy_batching": True,
        "enable_batching": False,
        "batching_parameters_file": "",
        "enable_per_model_batching_parameters": False,
    }


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"batching_parameters_file": "/b.txt"},
            "server_options.batching_parameters_file is set without setting "
            "server_options.enable_batching to true.",
        ),
        ({"enable_batching": True, "enable_greedy_batching": True}, "exclude each other"),
    ],
)
def test_batching_that_contradicts_itself_is_refused(
    settings: dict[str, object], text: str
) -> None:
    with pytest.raises(ServingError) as refused:
        PoolManager(**settings).kernel_options(PoolSpec())
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert text in refused.value.message


def test_flags_reach_their_traits() -> None:
    app = TFServeApp()
    argv = ["--rest_api_port=1234", "--model_name", "m", "--strict_start", "--kernel_name=k"]
    app.initialize([*argv, "--allow_version_labels_for_unavailable_models=1", "--port=8500"])
    manager = StandaloneManager(parent=app)
    assert (app.rest_api_port, app.rest_api_host, app.strict_start) == (1234, "127.0.0.1", True)
    assert (manager.model_name, manager.kernel_name) == ("m", "k")
    assert manager.allow_version_labels_for_unavailable_models is True


def test_a_container_of_vertex_listens_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIP_HTTP_PORT", "8080")
    app = TFServeApp()
    assert (app.rest_api_port, app.rest_api_host) == (8080, "0.0.0.0")
