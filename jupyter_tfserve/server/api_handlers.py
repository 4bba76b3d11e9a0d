"""The management API: what is served, by which pool, and changes to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tornado import web

from ..config import BATCHING, ModelConfig, ModelServerConfig, device_name, policy_from_dict
from ..errors import Code, ServingError, invalid_argument
from ..metrics import CONTENT_TYPE, expose
from .base_handler import DoorHandler, authorized
from .metrics import families

DESCRIPTION = Path(__file__).with_name("openapi.yaml")

_TEXT = "text/plain"
_MODEL_FIELDS = frozenset(
    ("name", "base_path", "platform", "policy", "labels", "options", "pool", "device")
)
_PUT_RIGHT = "Nothing was changed; what the error names has to be put right first"
HINTS = {
    Code.NOT_FOUND: "%tfserve status, or GET …/tfserve/api/models, lists what is served",
    Code.UNAVAILABLE: "GET …/tfserve/api/pools tells what the pools are doing; try again soon",
    Code.FAILED_PRECONDITION: _PUT_RIGHT,
    Code.ALREADY_EXISTS: "Choose another name",
    Code.INVALID_ARGUMENT: _PUT_RIGHT,
    Code.CANCELLED: "Another request has unloaded or replaced the model meanwhile",
    Code.DEADLINE_EXCEEDED: "The pool may still carry it out once it answers again; "
    "%tfserve status, or GET …/tfserve/api/models, shows it",
    Code.DATA_LOSS: "Nothing was changed; a file of the model is damaged or half copied: copy it "
    "again",
}


class ManagementHandler(DoorHandler):
    """What the handlers of the management API share."""

    hints: Mapping[Code, str] = HINTS

    def error_body(self, error: ServingError) -> bytes:
        """The error, a hint where there is one, and the code by name."""
        hint = error.hint or self.hints.get(error.code)
        body = {"error": error.message, "hint": hint, "code": error.code.name}
        return json.dumps(body).encode()

    def reply(self, value: Any, status: int = 200) -> None:
        """Answer with JSON."""
        self._track_activity = self.request.method != "GET"
        self.set_status(status)
        self.finish(json.dumps(value))

    def json_object(self) -> dict[str, Any]:
        """The body of the request.

        Raises:
            ServingError: INVALID_ARGUMENT where it is no JSON object.
        """
        try:
            value = json.loads(self.request.body)
        except (ValueError, RecursionError) as error:
            raise invalid_argument(f"The body is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise invalid_argument("The body is no JSON object")
        return value


class ModelsHandler(ManagementHandler):
    """All models."""

    hints = HINTS | {
        Code.NOT_FOUND: "A model is a directory on the server's machine whose numbered folders are "
        "its versions, such as /models/m with /models/m/1/saved_model.pb, or a file of Keras or "
        "TFLite"
    }

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """List them, whatever pool they are in; starts nothing."""
        self.reply({"models": await self.manager.overview.models()})

    @web.authenticated
    @authorized("write")
    async def post(self) -> None:
        """Load one; answers once it is available, or with the reason why it is not."""
        model = model_from_json(self.json_object())
        await self.manager.load(model)
        models = await self.manager.overview.models()
        self.reply(next((m for m in models if m["name"] == model.name), None), 201)


class ModelHandler(ManagementHandler):
    """One model."""

    @web.authenticated
    @authorized("write")
    async def delete(self, name: str) -> None:
        """Take it out of the configuration, or withdraw it where a notebook has published it."""
        self.reply(asdict(await self.manager.unload(name, release=self._release())))

    def _release(self) -> bool:
        """Whether the query, or the body, asks for the pool's process to be ended."""
        query = self.get_query_argument("release", None)
        if query in ("true", "false"):
            return query == "true"
        asked = self.json_object().get("release", False) if self.request.body else False
        if query is not None or type(asked) is not bool:
            raise invalid_argument("Expected 'release' to be true or false")
        return asked


class RecordHandler(ManagementHandler):
    """The recording of calls of one model, to be replayed at its next load."""

    hints = HINTS | {
        Code.ALREADY_EXISTS: '"replace": true, or --replace in a notebook, replaces the file',
        Code.FAILED_PRECONDITION: "What the error names has to be put right first",
    }

    @web.authenticated
    @authorized("read")
    async def get(self, name: str) -> None:
        """Tell how far it is."""
        self.reply(await self.manager.record(name, "state"))

    @web.authenticated
    @authorized("write")
    async def post(self, name: str) -> None:
        """Start it, stop it or save what was recorded."""
        self.reply(await self.manager.record(name, **recording_from_json(self.json_object())))


class LabelHandler(ManagementHandler):
    """One label of one model."""

    @web.authenticated
    @authorized("write")
    async def put(self, name: str, label: str) -> None:
        """Point it at a version."""
        version = self.json_object().get("version")
        if type(version) is not int:
            raise invalid_argument('Expected {"version": N} with a whole number')
        self.reply({"labels": await self.manager.label(name, label, version)})

    @web.authenticated
    @authorized("write")
    async def delete(self, name: str, label: str) -> None:
        """Remove it."""
        self.reply({"labels": await self.manager.label(name, label, None)})


class ReloadHandler(ManagementHandler):
    """A look at what may have changed on disk."""

    @web.authenticated
    @authorized("write")
    async def post(self) -> None:
        """Read the model config file again, and look for new versions; waits for no load."""
        self.reply({"config_changed": await self.manager.reload()})


class DescriptionHandler(ManagementHandler):
    """The description of this API."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Tell it as Jupyter tells its own."""
        self.finish(DESCRIPTION.read_bytes(), set_content_type="text/x-yaml")


class MetricsHandler(ManagementHandler):
    """The metrics of the server and its pools, for Prometheus."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Tell them all; starts nothing."""
        text = expose(await families(self.manager))
        self.finish(text, set_content_type=CONTENT_TYPE)


class ConfigHandler(ManagementHandler):
    """The aspired configuration as a whole."""

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Show it as JSON, or as TensorFlow Serving's text where plain text alone is accepted."""
        accepted = self.request.headers.get("Accept", "")
        if _TEXT in accepted and "json" not in accepted:
            text = await self.manager.config_text()
            self.finish(text, set_content_type=f"{_TEXT}; charset=utf-8")
        else:
            self.reply(self.manager.config_in_force.to_dict())

    @web.authenticated
    @authorized("write")
    async def put(self) -> None:
        """Replace it: models that are not listed any more are unloaded."""
        if self.request.headers.get("Content-Type", "").lower().startswith(_TEXT):
            config = await self.manager.parse_config(self._text())
        else:
            config = self._json()
        await self.manager.reload_config(config)
        self.reply(config.to_dict())

    def _text(self) -> str:
        try:
            return self.request.body.decode()
        except UnicodeDecodeError as error:
            raise invalid_argument(f"The body is no UTF-8: {error}") from error

    def _json(self) -> ModelServerConfig:
        models = self.json_object().get("models")
        if not isinstance(models, list) or not all(isinstance(m, dict) for m in models):
            raise invalid_argument('Expected {"models": [{"name", "base_path", ...}, ...]}')
        return ModelServerConfig(tuple(model_from_json(model) for model in models))


def recording_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a request asks of a recording.

    Raises:
        ServingError: INVALID_ARGUMENT, naming the field.
    """
    fields = {"start": ("version", "limit"), "stop": (), "save": ("path", "replace")}
    action = data.get("action")
    if not isinstance(action, str) or action not in fields:
        raise invalid_argument("Expected 'action' to be one of start, stop and save")
    unknown = data.keys() - {"action", *fields[action]}
    if unknown:
        raise invalid_argument(f"Unknown field of {action}: {', '.join(sorted(unknown))}")
    for field in ("version", "limit"):
        if type(data.get(field, 1)) is not int and data[field] is not None:
            raise invalid_argument(f"Expected '{field}' to be a whole number")
    path = data.get("path")
    if path is not None and not (isinstance(path, str) and path.startswith("/")):
        raise invalid_argument("Expected 'path' to be an absolute path on the server's machine")
    if not isinstance(data.get("replace", False), bool):
        raise invalid_argument("Expected 'replace' to be true or false")
    return dict(data)


def model_from_json(data: Mapping[str, Any]) -> ModelConfig:
    """One model as a request tells it.

    Raises:
        ServingError: INVALID_ARGUMENT, naming the field.
    """
    unknown = data.keys() - _MODEL_FIELDS
    if unknown:
        raise invalid_argument(f"Unknown field of a model: {', '.join(sorted(unknown))}")
    for field in ("name", "base_path"):
        if not isinstance(data.get(field), str) or not data[field]:
            raise invalid_argument(f"Expected '{field}' to be a string that is not empty")
    labels = data.get("labels", {})
    if not isinstance(labels, dict) or not all(type(v) is int for v in labels.values()):
        raise invalid_argument("Expected 'labels' to be an object of label to version")
    policy = data.get("policy", {"latest": {}})
    if not isinstance(policy, dict):
        raise invalid_argument("Expected 'policy' to be an object such as {\"all\": {}}")
    platform = data.get("platform", "tensorflow")
    if not isinstance(platform, str):
        raise invalid_argument("Expected 'platform' to be a string")
    pool = data.get("pool") or ""
    if not isinstance(pool, str):
        raise invalid_argument("Expected 'pool' to be the name of a managed pool")
    return ModelConfig(
        data["name"],
        data["base_path"],
        platform,
        policy_from_dict(policy),
        labels,
        _batching(data.get("options", {})),
        pool,
        device_name(data.get("device") or "", f"model {data['name']}"),
    )


def _batching(options: object) -> str:
    """How a model is to be batched, by its options; empty where they do not say."""
    if not isinstance(options, dict) or options.keys() - {"batching"}:
        raise invalid_argument(
            'Expected \'options\' to be an object such as {"batching": "greedy"}'
        )
    batching = options.get("batching", "")
    if batching and batching not in BATCHING:
        raise invalid_argument(f"Expected 'batching' to be one of {', '.join(BATCHING)}")
    return str(batching)
