"""TensorFlow Serving's URL grammar: a request line to what it asks for.

The grammar is matched against the raw request target, path and query alike, before any percent
decoding; so a query string never is an argument (``GET /v1/models/m?x=1`` asks for a model called
``m?x=1``). Source: ``model_servers/http_rest_api_util.cc`` and ``http_rest_api_handler.cc``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from .errors import Code, ServingError, invalid_argument
from .servable import ModelSpec


class Api(StrEnum):
    """The operations of the REST API."""

    STATUS = "status"
    METADATA = "metadata"
    PREDICT = "predict"
    CLASSIFY = "classify"
    REGRESS = "regress"


@dataclass(frozen=True, slots=True)
class Route:
    """A request line understood: the operation and the model that it is for."""

    api: Api
    spec: ModelSpec

    @property
    def is_inference(self) -> bool:
        """Whether the call runs the model, rather than telling about it."""
        return self.api not in (Api.STATUS, Api.METADATA)


_SPEC = r"(?:/versions/([0-9]+)|/labels/([^/:]+))?"
_INFERENCE = re.compile(
    rf"/v1/models/([^/:]+){_SPEC}:(classify|regress|predict)", re.IGNORECASE | re.ASCII
)
_QUERY = re.compile(rf"/v1/models(?:/([^/:]+))?{_SPEC}(/metadata)?", re.IGNORECASE | re.ASCII)
_INT64_MAX = 2**63 - 1


def malformed(method: str, target: str) -> ServingError:
    """The answer to a request line that matches no grammar."""
    return invalid_argument(f"Malformed request: {method} {target}")


@lru_cache(maxsize=1024)
def parse_route(method: str, target: str) -> Route:
    """Understand a request line; ``target`` is the raw one, starting with ``/v1``.

    Raises:
        ServingError: INVALID_ARGUMENT for a request line that is no call of the API, with no text
            at all for a version beyond int64.
    """
    if method == "POST" and (match := _INFERENCE.fullmatch(target)):
        name, version, label, verb = match.groups()
        spec = _model_spec(name, version, label)
        # The pattern ignores case, the dispatch does not.
        if verb not in ("classify", "regress", "predict"):
            raise malformed(method, target)
        return Route(Api(verb), spec)
    if method == "GET" and (match := _QUERY.fullmatch(target)):
        name, version, label, metadata = match.groups()
        spec = _model_spec(name or "", version, label)
        if not spec.name:
            raise invalid_argument("Missing model name in request.")
        return Route(Api.METADATA if metadata == "/metadata" else Api.STATUS, spec)
    raise malformed(method, target)


def _model_spec(name: str, version: str | None, label: str | None) -> ModelSpec:
    number = None if version is None else _int64(version)
    return ModelSpec(_decode(name), number, None if label is None else _decode(label))


def _int64(digits: str) -> int:
    # Leading zeros do not count; int() refuses very long texts with an error of its own.
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(_INT64_MAX)) or int(significant) > _INT64_MAX:
        raise ServingError(Code.INVALID_ARGUMENT, "")
    return int(significant)


def _decode(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


def model_path(name: str, version: int | None = None, label: str | None = None) -> str:
    """The path of a model below ``/v1``, percent-encoded: the inverse of :func:`parse_route`."""
    path = f"/v1/models/{quote(name, safe='', errors='surrogateescape')}"
    if version is not None:
        return f"{path}/versions/{version}"
    if label is not None:
        return f"{path}/labels/{quote(label, safe='', errors='surrogateescape')}"
    return path
