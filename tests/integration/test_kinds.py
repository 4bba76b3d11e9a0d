"""Kinds of models and warm-up, from the management API of a real server to a real model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from servers import Server, jupyter, until

API = "/tfserve/api/models"
RECORDS = ":tensorflow:serving:model_warmup_records_read"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter(tmp_path_factory.mktemp("server")) as running:
        yield running


def load(server: Server, name: str, base_path: Path) -> tuple[int, Any]:
    body = {"name": name, "base_path": str(base_path)}
    status, answer = server.ask("POST", API, body)
    return status, json.loads(answer)


def predict(server: Server, model: str, **body: Any) -> tuple[int, Any]:
    status, answer = server.ask("POST", f"/v1/models/{model}:predict", body)
    return status, json.loads(answer)


def test_a_keras_file_in_a_version_is_called_by_its_layers(server: Server, model_dir: Path) -> None:
    assert load(server, "keras", model_dir / "keras")[0] == 201
    rows = [{"age": [3], "text": ["b"]}, {"age": [40], "text": ["a"]}]
    assert predict(server, "keras", instances=rows) == (200, {"predictions": [[5.0], [41.0]]})
    metadata = json.loads(server.ask("GET", "/v1/models/keras/metadata")[1])["metadata"]
    inputs = metadata["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert {alias: info["dtype"] for alias, info in inputs.items()} == {
        "age": "DT_INT32",
        "text": "DT_STRING",
    }


def test_a_file_is_served_by_its_own_path_as_version_1(server: Server, model_dir: Path) -> None:
    status, model = load(server, "double", model_dir / "keras_files" / "double.h5")
    assert (status, [v["version"] for v in model["versions"]]) == (201, [1])
    answer = predict(server, "double", instances=[[1.0, 2.0]])
    assert answer == (200, {"predictions": [[2.0, 4.0]]})
    assert (server.folder / "data" / "tfserve" / "keras").is_dir()


def test_a_tflite_model_takes_any_number_of_rows(server: Server, model_dir: Path) -> None:
    assert load(server, "lite", model_dir / "tflite" / "1" / "model.tflite")[0] == 201
    for x in ([[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]):
        status, answer = predict(server, "lite", inputs={"x": x})
        doubled = [[2 * value for value in row] for row in x]
        assert (status, answer["outputs"]) == (200, {"total": sum(map(sum, x)), "y": doubled})
    status, answer = predict(server, "lite", inputs={"x": [["text", "text"]]})
    assert status == 400
    assert "is not of expected type: float" in answer["error"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("tflite_flex", 501, "uses the op FlexMatrixDeterminant"),
        ("keras_files/own_layer.keras", 400, "Could not locate class '_Own'"),
        ("keras_files", 404, "To serve one file, give its own path"),
    ],
)
def test_what_cannot_be_loaded_says_why(
    server: Server, model_dir: Path, path: str, status: int, words: str
) -> None:
    answer = load(server, "bad", model_dir / path)
    assert answer[0] == status
    assert words in answer[1]["error"]


def test_recorded_calls_are_replayed_by_the_next_load(
    server: Server, model_dir: Path, tmp_path: Path
) -> None:
    base = tmp_path / "m"
    copytree(model_dir / "half_plus_two", base)
    assert load(server, "m", base)[0] == 201
    recording = f"{API}/m/record"
    assert server.ask("POST", recording, {"action": "start"})[0] == 200
    for _ in range(3):
        assert predict(server, "m", instances=[1.0, 2.0])[0] == 200
    status, saved = server.ask("POST", recording, {"action": "save"})
    file = base / "00000123" / "assets.extra" / "tf_serving_warmup_requests"
    assert (status, json.loads(saved)["file"]) == (200, str(file))
    assert server.ask("POST", recording, {"action": "save"})[0] == 409
    assert server.ask("DELETE", f"{API}/m")[0] == 200
    until(lambda: b'"END"' in server.ask("GET", "/v1/models/m")[1], "the version has ended")
    status, model = load(server, "m", base)
    assert (status, model["versions"][0]["warmup"]["records"]) == (201, 3)
    text = server.ask("GET", "/tfserve/api/metrics")[1].decode()
    version = base / "00000123"
    assert f'{RECORDS}{{model_path="{version}",status="OK"}} 3\n' in text
    assert server.ask("DELETE", f"{API}/m")[0] == 200


def test_a_warm_up_that_fails_fails_the_load(
    server: Server, model_dir: Path, tmp_path: Path
) -> None:
    base = tmp_path / "m"
    copytree(model_dir / "half_plus_two", base)
    folder = base / "00000123" / "assets.extra"
    folder.mkdir()
    (folder / "tf_serving_warmup_requests").write_bytes(b"no records, but a text of some length")
    status, answer = load(server, "m", base)
    assert status == 500
    assert "Please verify your warmup data is in TFRecord format." in answer["error"]
