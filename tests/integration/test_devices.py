"""Several managed pools: real kernels on the CPU behind one door."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import Server, jupyter, until

from jupyter_tfserve.announcement import is_alive

MODEL = "half_plus_three"
ANSWER = (200, {"predictions": [3.5, 4.0, 5.5]})
SETTINGS = 'c.PoolManager.pools = [{"name": "a", "device": "CPU"}, {"name": "b"}]'


@pytest.fixture
def without_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server finds no nvidia-ml-py."""
    (tmp_path / "pynvml.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/jupyter_server_config.py").write_text(SETTINGS)
    with jupyter(tmp_path) as server:
        yield server


def get(server: Server, path: str) -> Any:
    status, body = server.ask("GET", f"/tfserve/api/{path}")
    assert status == 200
    return json.loads(body)


def load(server: Server, name: str, model_dir: Path, **where: str) -> tuple[int, Any]:
    body = {"name": name, "base_path": str(model_dir / MODEL), **where}
    status, answer = server.ask("POST", "/tfserve/api/models", body)
    return status, json.loads(answer)


def pids(server: Server) -> dict[str, int]:
    """The processes of the pools, by name."""
    (cpu,) = get(server, "devices")["devices"]
    return {pool["name"]: pool["pid"] for pool in cpu["pools"] if pool["pid"]}


def environment(pid: int) -> dict[str, str]:
    variables = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(variable.split("=", 1) for variable in variables if variable)


def test_two_pools_serve_through_one_door_and_one_outlives_the_other(
    server: Server, model_dir: Path
) -> None:
    assert load(server, "m", model_dir, device="CPU")[1]["owner"]["name"] == "a"
    assert load(server, "n", model_dir, pool="b")[1]["owner"]["name"] == "b"
    for name in ("m", "n"):
        assert server.predict(name, [1.0, 2.0, 5.0]) == ANSWER
    before = pids(server)
    assert sorted(before) == ["a", "b"]
    assert environment(before["a"])["CUDA_VISIBLE_DEVICES"] == "-1"
    assert environment(before["b"])["CUDA_VISIBLE_DEVICES"] == ""  # as the server's own
    (cpu,) = get(server, "devices")["devices"]
    held = {pool["name"]: [m["name"] for m in pool["models"]] for pool in cpu["pools"]}
    assert held == {"a": ["m"], "b": ["n"]}
    assert cpu["total_bytes"] > cpu["free_bytes"] > 0
    assert all(pool["used_bytes"] > 10_000_000 for pool in cpu["pools"])
    os.kill(before["a"], signal.SIGKILL)

    def back() -> bool:
        assert server.predict("n", [1.0, 2.0, 5.0]) == ANSWER
        return server.predict("m", [1.0, 2.0, 5.0]) == ANSWER

    until(lambda: not is_alive(before["a"]), "the pool is dead")
    until(back, "the killed pool has been replaced and serves what it served")
    after = pids(server)
    assert after["b"] == before["b"]
    assert after["a"] != before["a"]


def test_a_released_pool_ends_and_starts_again_when_it_is_needed(
    server: Server, model_dir: Path
) -> None:
    assert load(server, "m", model_dir, pool="b")[0] == 201
    (first,) = pids(server).values()
    status, body = server.ask("DELETE", "/tfserve/api/models/m?release=true")
    assert (status, json.loads(body)["released"]) == (200, True)
    assert not is_alive(first)
    assert server.pool_pids() == []
    assert server.predict("m", [1.0])[0] == 404
    assert load(server, "m", model_dir, pool="b")[0] == 201
    assert server.predict("m", [1.0, 2.0, 5.0]) == ANSWER
    assert pids(server)["b"] != first


@pytest.mark.usefixtures("without_nvml")
def test_where_nobody_knows_the_gpus_a_device_is_tried_and_refused_by_its_process(
    server: Server, model_dir: Path
) -> None:
    assert "nvidia-ml-py is not installed" in get(server, "devices")["nvml"]["problem"]
    status, answer = load(server, "m", model_dir, device="GPU:0")
    assert (status, answer["code"]) == (400, "FAILED_PRECONDITION")
    assert "There is no device GPU:0: TensorFlow sees CPU:0" in answer["error"]
    assert [pool["name"] for pool in get(server, "pools")["pools"]] == ["a", "b"]
    assert server.leftovers() == []


def test_a_model_for_a_device_that_is_not_there_is_refused_by_what_there_is(
    server: Server, model_dir: Path
) -> None:
    status, answer = load(server, "m", model_dir, device="GPU:0")
    assert status == 400
    assert "no device GPU:0" in answer["error"]
    assert "CPU" in answer["error"]
    assert get(server, "config") == {"models": []}
    assert [pool["name"] for pool in get(server, "pools")["pools"]] == ["a", "b"]
    assert server.pool_pids() == []
