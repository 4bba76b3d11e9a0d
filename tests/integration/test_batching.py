"""Batching in real processes: the standalone door's queues, and a model that asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from servers import Server, jupyter, standalone, until

CONFIG = """model_config_list {{
  config {{ name: "fails" base_path: "{0}/fails" model_platform: "tensorflow" }}
  config {{ name: "shapes" base_path: "{0}/shapes" model_platform: "tensorflow" }}
  config {{ name: "scalar_out" base_path: "{0}/scalar_out" model_platform: "tensorflow" }}
}}"""
BATCHING = """
max_batch_size { value: 16 }
batch_timeout_micros { value: 20000 }
max_enqueued_batches { value: 100 }
num_batch_threads { value: 2 }
"""
CLIENTS = 16
BAD = 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("batching")
    (folder / "models.config").write_text(CONFIG.format(model_dir))
    (folder / "batching.txt").write_text(BATCHING)
    (folder / "monitoring.txt").write_text("prometheus_config { enable: true }")
    flags = (
        f"--model_config_file={folder / 'models.config'}",
        "--enable_batching",
        f"--monitoring_config_file={folder / 'monitoring.txt'}",
        f"--batching_parameters_file={folder / 'batching.txt'}",
    )
    with standalone(folder, *flags) as server:
        server.wait_for("fails", "shapes", "scalar_out")
        yield server


def ask(server: Server, model: str, signature: str, rows: object) -> tuple[int, object]:
    body = {"signature_name": signature, "instances": rows}
    status, answer = server.ask("POST", f"/v1/models/{model}:predict", body)
    return status, json.loads(answer)


def all_at_once(server: Server, model: str, signature: str, rows: list[object]) -> list[object]:
    """What each of as many clients is answered, several times over."""
    with ThreadPoolExecutor(len(rows)) as clients:
        answers: list[object] = []
        for _ in range(10):
            answers += clients.map(lambda row: ask(server, model, signature, row), rows)
    return answers


def test_one_callers_bad_value_fails_no_other_caller(server: Server) -> None:
    rows = [[99 if n == BAD else n % 3, 0] for n in range(CLIENTS)]
    answers = all_at_once(server, "fails", "gather", rows)
    for n, (status, answer) in enumerate(answers):
        if n % CLIENTS == BAD:
            assert status == 400
            assert "indices[0] = 99 is not in [0, 3)" in answer["error"]
        else:
            assert (status, answer) == (200, {"predictions": [10.0 * (n % CLIENTS % 3 + 1), 10.0]})


def test_one_callers_bad_shape_fails_no_other_caller(server: Server) -> None:
    rows = [[[n, n]] if n == BAD else [[n, n, n]] for n in range(CLIENTS)]
    answers = all_at_once(server, "shapes", "product", rows)
    for n, (status, answer) in enumerate(answers):
        if n % CLIENTS == BAD:
            assert status == 400
        else:
            assert (status, answer) == (200, {"predictions": [[6.0 * (n % CLIENTS)]]})


def test_runs_go_through_the_queue(server: Server) -> None:
    assert ask(server, "fails", "gather", [0] * 17) == (
        400,
        {"error": "Task size 17 is larger than maximum input batch size 16"},
    )


def test_batches_are_counted(server: Server) -> None:
    assert ask(server, "fails", "gather", [0]) == (200, {"predictions": [10.0]})
    _, body = server.ask("GET", "/monitoring/prometheus/metrics")
    lines = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if line[0] != "#")
    runs = int(lines[":tensorflow:serving:batching_session:wrapped_run_count{}"])
    assert runs > 0
    name = ":tensorflow:serving:batching_session:input_batch_size_count{}"
    assert int(lines[name]) == runs
    label = 'thread_pool_name="batch_threads"'
    assert f":tensorflow:serving:batching_session:queuing_latency_count{{{label}}}" in lines


def test_what_cannot_be_batched_is_answered_as_ever(server: Server) -> None:
    body = {"signature_name": "scalar_in", "inputs": 2.0}
    status, answer = server.ask("POST", "/v1/models/scalar_out:predict", body)
    assert (status, json.loads(answer)) == (200, {"outputs": 3.0})


def test_wrong_parameters_stop_the_start_and_say_where(tmp_path: Path, model_dir: Path) -> None:
    file = tmp_path / "batching.txt"
    file.write_text("max_batch_size { value: 16 }\nmax_batch: 2\n")
    flags = (f"--model_base_path={model_dir / 'fails'}", f"--batching_parameters_file={file}")
    with standalone(tmp_path, *flags, "--enable_batching") as server:
        assert server.process.wait(120) == 1
        assert f"Invalid protobuf file: '{file}': 2:1" in server.log()
    with standalone(tmp_path, *flags) as server:
        assert server.process.wait(120) == 1
        assert (
            "Failed to start server. Error: INVALID_ARGUMENT: "
            "server_options.batching_parameters_file is set without setting "
            "server_options.enable_batching to true."
        ) in server.log()


def test_a_model_asks_for_greedy_batching_and_keeps_it(tmp_path: Path, model_dir: Path) -> None:
    def batching() -> dict[str, object]:
        _, body = server.ask("GET", "/tfserve/api/models")
        (model,) = json.loads(body)["models"]
        told: dict[str, object] = {}
        for version in model["versions"]:
            told = version.get("batching", {})
        return told

    with jupyter(tmp_path) as server:
        model = {"name": "rows", "base_path": str(model_dir / "rows")}
        status, body = server.ask("POST", "/tfserve/api/models", model)
        assert (status, batching()["mode"]) == (201, "off"), body
        wrong = {**model, "options": {"batching": "much"}}
        status, body = server.ask("POST", "/tfserve/api/models", wrong)
        assert status == 400
        assert json.loads(body)["error"] == "Expected 'batching' to be one of off, greedy"
        asked = {**model, "options": {"batching": "greedy"}}
        status, body = server.ask("POST", "/tfserve/api/models", asked)
        assert status == 201, body
        told = batching()
        assert told["mode"] == "greedy"
        reasons = told["not_batched"]
        assert reasons["noise"] == (
            "its operation RandomUniform keeps state or draws random numbers"
        )
        assert "serving_default" not in reasons
        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = list(clients.map(lambda n: server.predict("rows", [n, n + 1]), range(200)))
        assert answers == [(200, {"predictions": [2.0 * n, 2.0 * n + 2]}) for n in range(200)]
        _, pools = server.ask("GET", "/tfserve/api/pools")
        (pool,) = json.loads(pools)["pools"]
        status, _ = server.ask("POST", f"/tfserve/api/pools/{pool['id']}/restart", {})
        assert status == 200
        until(lambda: batching().get("mode") == "greedy", "the option is replayed")
