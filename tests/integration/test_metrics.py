"""Metrics of real models at both doors, read as Prometheus reads them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from described import check_answer, check_event
from prometheus_client.parser import text_string_to_metric_families
from servers import Server, jupyter, standalone

MODEL = "half_plus_three"
PATHS = {"standalone": "/monitoring/prometheus/metrics", "jupyter": "/tfserve/api/metrics"}
LATENCY = {"model_name": MODEL, "API": "predict", "entrypoint": "REST"}
COUNT = ":tensorflow:serving:request_count"


@pytest.fixture(scope="module", params=["standalone", "jupyter"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model_dir: Path
) -> Iterator[tuple[Server, str]]:
    """A server of each kind that has answered, refused and missed, and the path of its metrics."""
    folder = tmp_path_factory.mktemp(request.param)
    monitoring = folder / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    base_path = model_dir / MODEL
    if request.param == "standalone":
        running = standalone(
            folder,
            f"--model_name={MODEL}",
            f"--model_base_path={base_path}",
            f"--monitoring_config_file={monitoring}",
        )
    else:
        running = jupyter(
            folder,
            f"--PoolManager.model_name={MODEL}",
            f"--PoolManager.model_base_path={base_path}",
        )
    with running as server:
        server.wait_for(MODEL)
        for _ in range(3):
            assert server.predict(MODEL, [1.0, 2.0, 5.0])[0] == 200
        assert server.predict(MODEL, ["text"])[0] == 400
        assert server.predict("nobody", [1.0])[0] == 404
        assert server.ask("POST", f"/v1/models/{MODEL}:predict?x=1", {})[0] == 400
        assert server.ask("GET", f"/v1/models/{MODEL}/metadata")[0] == 200
        yield server, PATHS[request.param]


def scrape(door: tuple[Server, str]) -> str:
    server, path = door
    status, body = server.ask("GET", path)
    assert status == 200
    return body.decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All samples by name and labels; a text that Prometheus does not take fails here."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_told_as_tensorflow_serving_does(door: tuple[Server, str]) -> None:
    text = scrape(door)
    lines = text.splitlines()
    assert f"# TYPE {COUNT} counter" in lines
    assert f'{COUNT}{{model_name="",status="INVALID_ARGUMENT"}} 1' in lines
    assert f'{COUNT}{{model_name="{MODEL}",status="INVALID_ARGUMENT"}} 1' in lines
    assert f'{COUNT}{{model_name="nobody",status="NOT_FOUND"}} 1' in lines
    assert not any(line.startswith("# HELP :") for line in lines)
    told = samples(text)
    bucket = f"{COUNT.removesuffix('count')}latency_bucket"
    beyond = told[bucket, frozenset({**LATENCY, "le": "+Inf"}.items())]
    assert beyond == 3
    bounds = [
        labels
        for name, labels in told
        if name == bucket and LATENCY.items() <= dict(labels).items()
    ]
    assert len(bounds) == 34
    runtime = {"model_name": MODEL, "API": "Predict", "runtime": "TF1"}
    name = ":tensorflow:serving:runtime_latency_count"
    assert told[name, frozenset(runtime.items())] == 3


def test_versions_and_the_pool_are_told_too(door: tuple[Server, str]) -> None:
    told = {
        (name, labels.get("model"), labels.get("version")): value
        for (name, pairs), value in samples(scrape(door)).items()
        if name.startswith("jupyter_tfserve_") and (labels := dict(pairs)) and "le" not in labels
    }
    (version,) = {version for name, model, version in told if model == MODEL}
    assert told["jupyter_tfserve_version_requests_total", MODEL, version] == 4
    assert told["jupyter_tfserve_version_errors_total", MODEL, version] == 1
    assert told["jupyter_tfserve_version_in_flight", MODEL, version] == 0
    assert told["jupyter_tfserve_version_latency_seconds_count", MODEL, version] == 3
    assert told["jupyter_tfserve_resident_memory_bytes", None, None] > 1 << 27
    assert told["jupyter_tfserve_queue_depth", None, None] == 0

    server, path = door
    if path == PATHS["jupyter"]:
        for path in ("models", "pools", "config"):
            status, body = server.ask("GET", f"/tfserve/api/{path}")
            check_answer("GET", f"/{path}", status, "application/json", body)
        (model,) = json.loads(server.ask("GET", "/tfserve/api/models")[1])["models"]
        (described,) = model["versions"]
        assert (described["requests"], described["errors"], described["in_flight"]) == (4, 1, 0)
        assert 0 < described["p50_ms"] <= described["p99_ms"] < 60_000


@pytest.mark.parametrize("door", ["jupyter"], indirect=True)
def test_events_tell_the_traffic_of_the_model(door: tuple[Server, str]) -> None:
    server, _ = door
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    path = f"{server.prefix}/tfserve/api/events"
    connection.request("GET", path, headers=server.headers)
    stream = connection.getresponse()
    told: dict[str, Any] = {}
    kind = ""
    while "rates" not in told:
        line = stream.readline().decode()
        name, _, value = line.strip().partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            told[kind] = json.loads(value)
            check_event(kind, told[kind])
    connection.close()
    assert [model["name"] for model in told["snapshot"]["models"]] == [MODEL]
    (version,) = told["rates"]["versions"]
    assert (version["name"], version["requests"], version["errors"]) == (MODEL, 4, 1)


@pytest.mark.parametrize("door", ["jupyter"], indirect=True)
def test_the_configuration_is_told_and_taken_as_text(door: tuple[Server, str]) -> None:
    server, _ = door
    headers = {**server.headers, "Accept": "text/plain", "Content-Type": "text/plain"}
    asker = dataclasses.replace(server, headers=headers)
    status, text = asker.ask("GET", "/tfserve/api/config")
    assert status == 200
    assert f'name: "{MODEL}"'.encode() in text
    wrong = text.replace(b"base_path", b"base_paht")
    status, refusal = asker.ask("PUT", "/tfserve/api/config", wrong)
    assert status == 400
    assert re.search(r'\d+:\d+ .*"base_paht"', json.loads(refusal)["error"])
    assert asker.ask("GET", "/tfserve/api/config") == (200, text)
    assert asker.ask("PUT", "/tfserve/api/config", text)[0] == 200
    assert server.predict(MODEL, [1.0])[0] == 200
