"""Configurations that change while models are served; real servers, real models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numbered import Numbered
from servers import Server, jupyter, standalone, until

HEAD = "Request to assign label to version"
MODEL = """
  config {{
    name: "{name}" base_path: "{path}" model_platform: "tensorflow"
    {more}
  }}"""
NOT_APPLIED = "The model config file is not applied; what is served stays: "


class Models:
    """Three models with the versions 1 to 3, and the file that configures them."""

    def __init__(self, folder: Path, original: Path) -> None:
        self.file = folder / "models.config"
        self.folder = folder / "models"
        for name in "abc":
            model = Numbered(original, self.folder / name)
            for version in (1, 2, 3):
                model.add(version)

    def entry(self, name: str, more: str = "") -> str:
        return MODEL.format(name=name, path=self.folder / name, more=more)

    def write(self, *entries: str) -> str:
        """Replace the file's content; returns it."""
        text = f"model_config_list {{{''.join(entries)}\n}}\n"
        self.write_text(text)
        return text

    def write_text(self, text: str) -> None:
        self.file.write_text(text)


@pytest.fixture
def models(tmp_path: Path, model_dir: Path) -> Models:
    made = Models(tmp_path, model_dir / "numbered" / "1")
    made.write(*first(made))
    return made


def first(models: Models) -> tuple[str, ...]:
    """Two policies beside the default, and labels."""
    return (
        models.entry("a"),
        models.entry("b", "model_version_policy { all {} }"),
        models.entry("c", LABELLED.format(stable=1)),
    )


LABELLED = """
    model_version_policy {{ specific {{ versions: 1 versions: 2 }} }}
    version_labels {{ key: "stable" value: {stable} }}
    version_labels {{ key: "canary" value: 2 }}
"""
FLAGS = (
    "model_config_file_poll_wait_seconds=0.1",
    "file_system_poll_wait_seconds=0.1",
    "allow_version_labels_for_unavailable_models=true",
)


@pytest.fixture(params=["standalone", "jupyter"])
def server(request: pytest.FixtureRequest, tmp_path: Path, models: Models) -> Iterator[Server]:
    flags = (f"model_config_file={models.file}", *FLAGS)
    if request.param == "standalone":
        running = standalone(tmp_path, *(f"--{flag}" for flag in flags))
    else:
        running = jupyter(tmp_path, *(f"--PoolManager.{flag}" for flag in flags))
    with running as started:
        started.wait_for("a", "b", "c")
        yield started
        started.must_run()


def available(server: Server, name: str) -> set[int]:
    """The versions that answer."""
    told = json.loads(server.ask("GET", f"/v1/models/{name}")[1]).get("model_version_status", [])
    return {int(version["version"]) for version in told if version["state"] == "AVAILABLE"}


def answer(server: Server, name: str, rest: str = "") -> Any:
    """The version that answers, or the text of the refusal."""
    status, body = server.ask("POST", f"/v1/models/{name}{rest}:predict", {"instances": [1.0]})
    told = json.loads(body)
    return int(told["predictions"][0].removeprefix("v")) if status == 200 else told["error"]


def is_as_at_first(server: Server) -> bool:
    return (
        available(server, "a") == {3}
        and available(server, "b") == {1, 2, 3}
        and available(server, "c") == {1, 2}
        and answer(server, "c", "/labels/stable") == 1
        and answer(server, "c", "/labels/canary") == 2
    )


def test_a_file_that_changes_is_followed_to_the_states_that_it_asks_for(
    server: Server, models: Models
) -> None:
    until(lambda: is_as_at_first(server), "all versions are up")
    # Another policy, one model less, a label moved and one removed, a model without a base path.
    models.write(
        models.entry("nowhere"),
        models.entry("a", "model_version_policy { latest { num_versions: 2 } }"),
        models.entry(
            "c",
            "model_version_policy { specific { versions: 1 versions: 2 } }"
            'version_labels { key: "stable" value: 2 }',
        ),
    )
    until(lambda: available(server, "a") == {2, 3}, "a second version of a is up")
    until(lambda: available(server, "b") == set(), "b is unloaded")
    assert answer(server, "b") == "Servable not found for request: Latest(b)"
    until(lambda: answer(server, "c", "/labels/stable") == 2, "the label has moved")
    text = "Unrecognized servable version label: canary"
    assert answer(server, "c", "/labels/canary") == text
    assert available(server, "c") == {1, 2}
    models.write(*first(models))
    until(lambda: is_as_at_first(server), "all is as it was")
    # A model that is not listed any more is told as ended, as by the original.
    assert server.ask("GET", "/v1/models/nowhere")[0] == 404


def refusals(models: Models) -> dict[str, str]:
    """Contents that are refused, and what is said of them."""
    a = models.entry("a")
    return {
        # Written by half.
        f"model_config_list {{{a}\n config {{": f"Invalid protobuf file: '{models.file}': 6:",
        "": "Taking no action for empty config.",
        f"model_config_list {{\n{a}\n  config {{ nmae: 'x' }}\n}}": (
            f"Invalid protobuf file: '{models.file}': 7:12 : Message type "
            '"tensorflow.serving.ModelConfig" has no field named "nmae"'
        ),
        f"model_config_list {{{a}{a}}}": ("Illegal to list model a multiple times in config list"),
        'model_config_list { config { name: "r" base_path: "r" model_platform: "tensorflow" } }': (
            "Expected model r to have an absolute path or URI; got base_path()=r"
        ),
        'model_config_list { config { name: "t" base_path: "/t" model_platform: "torch" } }': (
            "Model t requests unsupported platform torch"
        ),
        'model_config_list { config { name: "n" base_path: "/n" } }': (
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor"
        ),
        'model_config_list { config { base_path: "/n" model_platform: "tensorflow" } }': (
            "Illegal to list a model without a name in config list"
        ),
        "custom_model_config {}": "Cannot transition to requested config.",
        f"model_config_list {{{models.entry('c', LABELLED.format(stable=9))}}}": (
            f"{HEAD} 9 of model c, which is not currently available for inference"
        ),
    }


def test_a_file_that_is_refused_changes_nothing_and_is_told_once(
    server: Server, models: Models
) -> None:
    until(lambda: is_as_at_first(server), "all versions are up")
    good = models.file.read_text()
    for content, reason in refusals(models).items():
        models.write_text(content)
        told = until(
            lambda reason=reason: [
                line for line in server.log().splitlines() if NOT_APPLIED in line and reason in line
            ],
            f"the refusal is told: {reason}",
        )
        assert len(told) == 1, content
        assert is_as_at_first(server), content
    models.file.unlink()
    until(lambda: "No such file or directory" in server.log(), "the missing file is told")
    assert is_as_at_first(server)
    told = server.log().count(NOT_APPLIED)
    assert told == len(refusals(models)) + 1
    models.write_text(good.replace('"a"', '"d"'))  # the same folder by another name
    until(lambda: available(server, "d") == {3}, "the next good file is applied")
    assert server.log().count(NOT_APPLIED) == told


def put(server: Server, body: str | dict[str, Any], kind: str) -> tuple[int, Any]:
    headers, server.headers = server.headers, {**server.headers, "Content-Type": kind}
    try:
        status, answered = server.ask("PUT", "/tfserve/api/config", body)
        return status, json.loads(answered)
    finally:
        server.headers = headers


@pytest.mark.parametrize("server", ["jupyter"], indirect=True)
def test_the_same_through_the_management_api(server: Server, models: Models) -> None:
    until(lambda: is_as_at_first(server), "all versions are up")
    config = json.loads(server.ask("GET", "/tfserve/api/config")[1])
    for content, reason in refusals(models).items():
        status, answered = put(server, content, "text/plain")
        assert status == 400, content
        # Of a text that was sent no file can be named.
        assert reason.replace(f"file: '{models.file}'", "text") in answered["error"]
        assert answered["hint"]
        assert json.loads(server.ask("GET", "/tfserve/api/config")[1]) == config
    for wrong, reason in (
        ({**config["models"][0], "base_path": "r"}, "to have an absolute path"),
        ({**config["models"][0], "platform": "torch"}, "unsupported platform torch"),
        ({**config["models"][2], "labels": {"stable": 9}}, f"{HEAD} 9 of model c"),
        ({**config["models"][0], "name": ""}, "Expected 'name'"),
        ({**config["models"][0], "policy": {"first": {}}}, "Expected a version policy"),
    ):
        status, answered = put(server, {"models": [wrong]}, "application/json")
        assert status == 400
        assert reason in answered["error"]
    status, answered = put(server, {"models": config["models"][:1] * 2}, "application/json")
    assert (status, answered["code"]) == (400, "INVALID_ARGUMENT")
    assert json.loads(server.ask("GET", "/tfserve/api/config")[1]) == config
    assert is_as_at_first(server)

    only_b = models.entry("b", "model_version_policy { specific { versions: 2 } }")
    status, answered = put(server, f"model_config_list {{{only_b}}}", "text/plain")
    assert status == 200
    until(lambda: available(server, "b") == {2}, "b has its one version")
    until(lambda: available(server, "a") == available(server, "c") == set(), "others are gone")
    # The file has not changed, so it does not take that back; asked for all models, it does.
    status, answered = server.ask("POST", "/tfserve/api/reload", {})
    assert (status, json.loads(answered)) == (200, {"config_changed": False})
    assert available(server, "b") == {2}
    status, _ = put(server, config, "application/json")
    assert status == 200
    until(lambda: is_as_at_first(server), "all is as it was")
