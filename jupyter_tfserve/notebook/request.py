"""Tensors and examples to the JSON bodies of TensorFlow Serving's REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from ..codec import b64
from ..codec.json_encode import compact_text, key_text
from .errors import InvalidArgumentError
from .metadata import DEFAULT_SIGNATURE

if TYPE_CHECKING:
    from ..servable import SignatureInfo
    from .casting import Array

_TEXT, _BYTES = "", "_bytes"  # how outputs of that name are written


def predict_body(tensors: Mapping[str, Array], signature: SignatureInfo) -> bytes:
    """The body of a predict request.

    It has rows (``instances``) where one input and one output go row by row, and columns
    (``inputs``) otherwise: the row form cannot hold outputs of other leading sizes, and names every
    input in every row.
    """
    head = _head(signature)
    if len(tensors) == 1:
        ((name, array),) = tensors.items()
        key = b"instances" if _is_row_by_row(array, name, signature) else b"inputs"
        return b'%b"%b":%b}' % (head, key, tensor_text(array))
    members = b",".join(b"%b:%b" % (key_text(k), tensor_text(v)) for k, v in tensors.items())
    return b'%b"inputs":{%b}}' % (head, members)


def _head(signature: SignatureInfo) -> bytes:
    if signature.key == DEFAULT_SIGNATURE:
        return b"{"
    return b'{"signature_name":%b,' % key_text(signature.key)


def _is_row_by_row(array: Array, name: str, signature: SignatureInfo) -> bool:
    shapes = [signature.inputs[name].shape, *(o.shape for o in signature.outputs.values())]
    return (
        array.ndim > 0
        and array.shape[0] > 0
        and len(shapes) == 2
        and all(shape is not None and shape[:1] == (-1,) for shape in shapes)
    )


def tensor_text(array: Array) -> bytes:
    """The JSON of one tensor; strings are text where all of them are UTF-8, and base64 if not."""
    if array.dtype == np.object_:
        return compact_text(_TEXT if _is_text(array) else _BYTES, array)
    if array.dtype.kind == "V" or array.dtype == np.float16:  # bfloat16 is a V to NumPy
        array = array.astype(np.float32)
    return compact_text(_TEXT, array)


def _is_text(array: Array) -> bool:
    try:
        for value in array.reshape(-1).tolist():
            value.decode()
    except UnicodeDecodeError:
        return False
    return True


def examples_body(
    examples: Sequence[Mapping[str, Any]], context: Mapping[str, Any] | None, signature: str
) -> bytes:
    """The body of a classify or regress request.

    Raises:
        InvalidArgumentError: naming the example and the feature that cannot be sent.
    """
    rows = []
    for index, example in enumerate(examples):
        if not isinstance(example, Mapping):
            raise InvalidArgumentError(
                f"Example {index} is no dict of features", where=f"example {index}"
            )
        rows.append(example_text(example, f"example {index}"))
    return scored_body(rows, context_text(context), signature)


def scored_body(examples: Sequence[bytes], context: bytes, signature: str) -> bytes:
    """The same from the JSON of each example, and of their context if it is not empty."""
    head = b"{"
    if signature not in ("", DEFAULT_SIGNATURE):
        head = b'{"signature_name":%b,' % key_text(signature)
    if context:
        head += b'"context":%b,' % context
    return b'%b"examples":[%b]}' % (head, b",".join(examples))


def context_text(context: Mapping[str, Any] | None) -> bytes:
    """The JSON of features that examples share; empty where there are none."""
    return b"" if context is None else example_text(context, "context")


def example_text(example: Mapping[str, Any], where: str) -> bytes:
    """The JSON of one example: each feature a scalar or a flat list of one kind."""
    members = []
    for name, value in example.items():
        array = feature_array(value, f"{where}, feature {name!r}")
        text = tensor_text(array) if array.ndim else tensor_text(array.reshape(1))[1:-1]
        members.append(b"%b:%b" % (key_text(str(name)), text))
    return b"{%b}" % b",".join(members)


def feature_array(value: Any, where: str) -> Array:
    """A feature's values: float32 or float64, int64, or strings as ``bytes``.

    Integers and floats in one list are floats; truth values are integers, as in ``tf.Example``.

    Raises:
        InvalidArgumentError: for what is none of these, or nested.
    """
    if isinstance(value, str | bytes):
        value = np.array(value, np.object_)
    elif isinstance(value, list | tuple) and any(isinstance(v, str | bytes) for v in value):
        items, value = value, np.empty(len(value), np.object_)
        value[:] = items
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidArgumentError(f"{where}: a list within a list", where=where) from None
    if array.ndim > 1:
        raise InvalidArgumentError(f"{where}: {array.ndim} dimensions, not one", where=where)
    if array.dtype.kind in "SUO":
        return _strings(array, where)
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind in "iub" and (array.dtype != np.uint64 or array.max(initial=0) < 2**63):
        return array.astype(np.int64)
    raise InvalidArgumentError(f"{where}: {array.dtype} is no feature's dtype", where=where)


def _strings(array: Array, where: str) -> Array:
    items = array.reshape(-1).tolist()
    if not all(isinstance(item, str | bytes) for item in items):
        raise InvalidArgumentError(f"{where}: neither numbers nor strings alone", where=where)
    out = np.empty(len(items), np.object_)
    out[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return out.reshape(array.shape)


def as_examples(data: Any) -> list[Mapping[str, Any]]:
    """Examples as they come: a list of dicts, one dict of scalars, or a dict of columns.

    A dict whose values are all arrays or lists of one length holds as many examples.

    Raises:
        InvalidArgumentError: where it is none of these.
    """
    if not isinstance(data, Mapping):
        if isinstance(data, list | tuple) and data:
            return list(data)
        raise InvalidArgumentError("Examples are a list of dicts of features, at least one")
    columns = {k: v for k, v in data.items() if isinstance(v, list | tuple | np.ndarray)}
    sizes = {len(column) for column in columns.values()}
    if len(columns) < len(data) or len(sizes) != 1:
        return [data]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def json_body(value: Any) -> bytes:
    """Any other request's body."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def plain_values(array: Array) -> list[Any]:
    """An array as nested lists that any JSON writer takes, but for NaN and infinities."""
    if array.dtype != np.object_:
        values: list[Any] = array.tolist()
        return values
    is_text = _is_text(array)
    items = [
        item.decode() if is_text else {"b64": b64.encode(item).decode()}
        for item in array.reshape(-1).tolist()
    ]
    out = np.empty(len(items), np.object_)
    out[:] = items
    nested: list[Any] = out.reshape(array.shape).tolist()
    return nested
