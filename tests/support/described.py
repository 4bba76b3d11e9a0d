"""The management API's description, and what holds an answer against it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from jupyter_tfserve.server.api_handlers import DESCRIPTION

VERBS = ("get", "post", "put", "delete", "patch", "head")
_POINTER = "#/components/"


@cache
def description() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(DESCRIPTION.read_text())
    return loaded


def check(schema: dict[str, Any], value: Any) -> None:
    """Raise where a value is not what a schema of the description says."""
    # References are to the whole document, so the schema is taken into it.
    whole = {**description(), **schema}
    Draft202012Validator(whole).validate(value)


def check_event(kind: str, data: Any) -> None:
    """The same for the data of one event."""
    check({"$ref": f"{_POINTER}schemas/{kind.capitalize()}Event"}, data)


def check_request(method: str, path: str, body: Any) -> None:
    """The same for the JSON body of a request; ``path`` is below ``tfserve/api``."""
    check(operation(method, path)["requestBody"]["content"]["application/json"]["schema"], body)


def check_answer(method: str, path: str, status: int, content_type: str, body: bytes) -> None:
    """The same for an answer."""
    responses = operation(method, path)["responses"]
    response = responses.get(str(status)) or responses["default"]
    if status >= 400:
        assert response is responses["default"]
    content = resolve(response)["content"]
    schema = content[content_type.partition(";")[0]]["schema"]
    check(schema, json.loads(body) if "json" in content_type else body.decode())


def operation(method: str, path: str) -> dict[str, Any]:
    for template, item in description()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            found: dict[str, Any] = item[method.lower()]
            return found
    raise LookupError(path)


def resolve(value: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for."""
    if "$ref" not in value:
        return value
    kind, name = value["$ref"].removeprefix(_POINTER).split("/")
    found: dict[str, Any] = description()["components"][kind][name]
    return found
