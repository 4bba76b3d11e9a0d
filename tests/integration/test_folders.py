"""Folders as users lay them out, told to a real server."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numbered import Numbered
from servers import Server, jupyter, until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flag = "--PoolManager.file_system_poll_wait_seconds=0.05"
    with jupyter(tmp_path_factory.mktemp("server"), flag) as running:
        yield running


@pytest.fixture
def version(model_dir: Path) -> Path:
    """The folder of one version, to be copied."""
    return model_dir / "numbered" / "1"


class Model:
    """A model of the server by a name that no other test has."""

    numbers = itertools.count()

    def __init__(self, server: Server) -> None:
        self._server = server
        self.name = f"m{next(self.numbers)}"

    def load(self, base: Path, **more: Any) -> tuple[int, str]:
        body = {"name": self.name, "base_path": str(base), **more}
        status, answer = self._server.ask("POST", "/tfserve/api/models", body)
        return status, answer.decode()

    def states(self) -> dict[int, str]:
        told = json.loads(self._server.ask("GET", f"/v1/models/{self.name}")[1])
        return {int(v["version"]): v["state"] for v in told["model_version_status"]}

    def problem(self) -> str:
        models = json.loads(self._server.ask("GET", "/tfserve/api/models")[1])["models"]
        return next(m["problem"] for m in models if m["name"] == self.name) or ""

    def answer(self) -> Any:
        return self._server.predict(self.name, [1.0])[1]


@pytest.fixture
def model(server: Server) -> Model:
    return Model(server)


def test_a_folder_that_is_a_model_itself_is_told_what_it_lacks(
    model: Model, tmp_path: Path, version: Path
) -> None:
    """O12: ``m/saved_model.pb``."""
    base = shutil.copytree(version, tmp_path / "m")
    status, answer = model.load(base)
    assert status == 404
    assert "This folder itself is a SavedModel: move its content into a numbered" in answer
    assert str(base / "1") in answer


def test_a_folder_without_numbers_is_told_what_it_has(
    model: Model, tmp_path: Path, version: Path
) -> None:
    """O12: ``m/v1/saved_model.pb``."""
    shutil.copytree(version, tmp_path / "m" / "v1")
    status, answer = model.load(tmp_path / "m")
    assert status == 404
    assert "Did you forget to name your leaf directory as a number" in answer
    assert "Found v1." in answer


def test_other_folders_beside_versions_are_left_alone(
    model: Model, tmp_path: Path, version: Path
) -> None:
    """O12: ``m/1/`` beside ``m/tmp/``; ``m/000123`` is 123."""
    for name in ("1", "tmp", ".ipynb_checkpoints", "000123"):
        shutil.copytree(version, tmp_path / "m" / name)
    status, answer = model.load(tmp_path / "m", policy={"all": {}})
    assert status == 201
    until(lambda: model.states() == {1: "AVAILABLE", 123: "AVAILABLE"}, "both versions are up")
    assert json.loads(answer)["problem"] is None


def test_a_version_that_is_being_copied_is_served_once_it_is_complete(
    model: Model, tmp_path: Path, version: Path
) -> None:
    """O12: ``m/2/`` without a ``saved_model.pb``, then with half of it, then whole."""
    base = tmp_path / "m"
    Numbered(version, base).add(1)
    assert model.load(base)[0] == 201
    copied = base / "2"
    copied.mkdir()
    until(lambda: "2 holds no complete model (yet)" in model.problem(), "it is told")
    assert model.states() == {1: "AVAILABLE"}
    content = (version / "saved_model.pb").read_bytes()
    (copied / "saved_model.pb").write_bytes(content[: len(content) // 2])
    until(lambda: model.states().get(2) == "END", "half a file does not load")
    assert model.states()[1] == "AVAILABLE"
    (copied / "saved_model.pb").write_bytes(content)
    until(lambda: model.states() == {2: "AVAILABLE", 1: "END"}, "the whole file does")


def test_versions_that_vanish_and_come_back_are_followed(
    model: Model, tmp_path: Path, version: Path
) -> None:
    """Content that was rewritten is read when its number comes back."""
    folder = Numbered(version, tmp_path / "m")
    folder.add(7)
    folder.add(8)
    assert model.load(folder.base)[0] == 201
    assert model.answer() == {"predictions": ["v00008"]}
    folder.remove(8)
    until(lambda: model.answer() == {"predictions": ["v00007"]}, "7 is served")
    until(lambda: model.states()[8] == "END", "8 has ended")
    shutil.copytree(folder.base / "7", folder.base / ".again")
    (folder.base / ".again").rename(folder.base / "8")
    until(lambda: model.states()[8] == "AVAILABLE", "8 is back")
    assert model.answer() == {"predictions": ["v00007"]}


def test_a_policy_that_matches_nothing_leaves_the_model_as_it_is(
    model: Model, tmp_path: Path, version: Path
) -> None:
    folder = Numbered(version, tmp_path / "m")
    folder.add(1)
    assert model.load(folder.base)[0] == 201
    status, answer = model.load(folder.base, policy={"specific": {"versions": [9]}})
    assert status == 404
    assert f"Version(s) 9 of servable {model.name} not found" in answer
    assert model.states() == {1: "AVAILABLE"}


def test_a_name_may_be_any_text(server: Server, tmp_path: Path, version: Path) -> None:
    """O11: a slash, a blank, a colon, a letter beyond ASCII; percent-encoded in every place."""
    model = Numbered(version, tmp_path / "m")
    model.add(1)
    name, quoted = "team/rés: net", "team%2Fr%C3%A9s%3A%20net"
    body = {"name": name, "base_path": str(model.base)}
    assert server.ask("POST", "/tfserve/api/models", json.dumps(body).encode())[0] == 201
    assert server.predict(quoted, [1.0]) == (200, {"predictions": ["v00001"]})
    for path in ("", "/metadata", "/versions/1", "/versions/1/metadata"):
        assert server.ask("GET", f"/v1/models/{quoted}{path}")[0] == 200
    path = f"/tfserve/api/models/{quoted}"
    assert server.ask("PUT", f"{path}/labels/a%2Fb", {"version": 1})[0] == 200
    assert server.predict(f"{quoted}/labels/a%2Fb", [1.0])[0] == 200
    status, body = server.ask("GET", "/v1/models/team/r%C3%A9s%3A%20net")
    assert (status, b"Malformed request" in body) == (400, True)  # the original's own answer
    assert server.ask("DELETE", path)[0] == 200
