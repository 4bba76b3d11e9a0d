"""Answers of TensorFlow Serving's REST API to NumPy arrays.

The answer of a predict call is laid out as a request is, so that the server's own reader of large
requests reads it: numbers go straight into arrays, NaN and infinities included.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from ..codec.dtypes import dtype_of
from ..codec.json_tensor import parse_predict
from ..errors import ServingError
from .casting import FLOATS
from .errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..servable import SignatureInfo, TensorInfo
    from .casting import Array

_HEAD = re.compile(rb'\s*\{\s*"(predictions|outputs)"\s*:')
_NO_ROWS = re.compile(rb"\s*\[\s*\]\s*\}")
_AS_REQUEST = {b"predictions": b'{"instances":', b"outputs": b'{"inputs":'}


class Classified(NamedTuple):
    """What a classify call answers: both have a row for each example, a column for each class."""

    labels: Array
    scores: Array


class UnexpectedAnswerError(InternalError):
    """The answer does not fit the signature that the call was made by."""


def read_predict(body: bytes, signature: SignatureInfo) -> dict[str, Array]:
    """The outputs, with the dtypes of the signature; strings are ``str``.

    Strings of an output whose name ends in ``_bytes``, and those that are no UTF-8, are ``bytes``.

    Raises:
        UnexpectedAnswerError: where it does not fit the signature.
    """
    match = _HEAD.match(body)
    if match is None:
        raise UnexpectedAnswerError(f"No answer to predict: {_shown(body)}", signature=signature)
    outputs = signature.outputs
    if match[1] == b"predictions" and _NO_ROWS.fullmatch(body, match.end()):
        return {name: without_rows(info) for name, info in outputs.items()}
    infos = {name: _carried(info) for name, info in outputs.items()}
    try:
        request = b"".join((_AS_REQUEST[match[1]], memoryview(body)[match.end() :]))
        tensors, _ = parse_predict(request).tensors(infos)
    except ServingError as error:
        raise UnexpectedAnswerError(
            f"The answer does not fit the signature: {error.message[:200]}", signature=signature
        ) from None
    return {name: _finished(name, outputs[name], array) for name, array in tensors.items()}


def _carried(info: TensorInfo) -> TensorInfo:
    """The dtype that JSON has for one that it lacks."""
    return replace(info, dtype="float") if info.dtype in FLOATS - {"double"} else info


def without_rows(info: TensorInfo) -> Array:
    """An output for no rows at all."""
    shape = (0, *(max(size, 0) for size in (info.shape or ())[1:]))
    return np.zeros(shape, dtype_of(info.dtype).numpy)


def _finished(name: str, info: TensorInfo, tensor: Any) -> Array:
    array: Array = tensor if isinstance(tensor, np.ndarray) else np.array(tensor.values)
    if info.dtype == "string":
        return array if name.endswith("_bytes") else _texts(array)
    if not array.flags.writeable:
        array = array.copy()
    return array.astype(dtype_of(info.dtype).numpy, copy=False)


def _texts(array: Array) -> Array:
    values = array.reshape(-1).tolist()
    try:
        texts: list[Any] = [value.decode() for value in values]
    except UnicodeDecodeError:
        return array
    out = np.empty(len(texts), np.object_)
    out[:] = texts
    return out.reshape(array.shape)


def read_classify(body: bytes) -> Classified:
    """The classes of each example, in the model's order."""
    results = _results(body)
    n, width = len(results), len(results[0]) if results else 0
    labels = np.empty((n, width), np.object_)
    scores = np.zeros((n, width), np.float32)
    for index, pairs in enumerate(results):
        labels[index] = [pair[0] for pair in pairs]
        scores[index] = [pair[1] for pair in pairs]
    return Classified(labels, scores)


def read_regress(body: bytes) -> Array:
    """One float32 number an example."""
    return np.array(_results(body), np.float32)


def _results(body: bytes) -> list[Any]:
    answer = read_json(body)
    if not isinstance(answer, dict) or not isinstance(answer.get("results"), list):
        raise UnexpectedAnswerError(f"No answer to classify or regress: {_shown(body)}")
    results: list[Any] = answer["results"]
    return results


def read_json(body: bytes) -> Any:
    """Any JSON, with the tokens that TensorFlow Serving writes for what is not finite.

    Raises:
        ValueError: where it is none.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        import json

        return json.loads(body.decode("utf-8", "replace"))


def error_text(body: bytes) -> Mapping[str, Any]:
    """The object of an error's body; empty where it is none, such as a proxy's page."""
    try:
        answer = read_json(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) and isinstance(answer.get("error"), str) else {}


def _shown(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace")
