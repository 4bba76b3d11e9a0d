"""One JSON value to one dense tensor, by TensorFlow Serving's rules and in its words.

The shape of a value is found by descending through first elements, and every node is then checked
against it, in document order (``util/json_tensor.cc: GetDenseTensorShape, FillTensorProto``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import Code, ServingError, invalid_argument
from . import b64
from .dtypes import INT32, DType, Json
from .json_debug import shown
from .json_value import Object, Value, b64_text, type_name

_FLOAT32_MAX = 3.4028234663852886e38


def fill(value: Value, dtype: DType, out: list[Any]) -> tuple[int, ...]:
    """Append the elements of one value to ``out``; returns its shape.

    Raises:
        ServingError: INVALID_ARGUMENT for a ragged value or a wrong element, UNIMPLEMENTED for an
            element of a dtype that JSON cannot fill.
    """
    shape = _shape_of(value)
    rank = len(shape)
    if not isinstance(value, list):
        out.append(_element(value, dtype))
        return shape
    pending: list[Iterator[Value]] = [iter((value,))]
    while pending:
        level = len(pending) - 1
        for node in pending[-1]:
            if not isinstance(node, list):
                if level != rank:
                    raise invalid_argument(
                        f"JSON Value: {shown(node)} found at incorrect level: {level + 1} in the "
                        f"JSON DOM. Expected at level: {rank}"
                    )
                out.append(_element(node, dtype))
                continue
            if level >= rank:
                raise invalid_argument(
                    f"Encountered list at unexpected level: {level} expected < {rank}"
                )
            if len(node) != shape[level]:
                raise invalid_argument(
                    f"Encountered list at unexpected size: {len(node)} at level: {level} "
                    f"expected size: {shape[level]}"
                )
            if level + 1 == rank and all_taken(node, dtype):
                out.extend(node)
                continue
            pending.append(iter(node))
            break
        else:
            pending.pop()
    return shape


def _shape_of(value: Value) -> tuple[int, ...]:
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def all_taken(leaves: list[Any], dtype: DType) -> bool:
    """Whether all elements are scalars that the dtype takes as they are."""
    if not dtype.scalars.issuperset(map(type, leaves)):
        return False
    if dtype.bounds is None or not leaves:
        return True
    low, high = dtype.bounds
    return bool(low <= min(leaves) and max(leaves) <= high)


def _element(value: Value, dtype: DType) -> Any:
    """Check one scalar or object against the dtype; a b64 object becomes its bytes."""
    if isinstance(value, Object):
        if dtype.json is not Json.STRING:
            raise _wrong_type(value, dtype)
        return decode_b64(value)
    if dtype.json is Json.NOTHING:
        raise ServingError(
            Code.UNIMPLEMENTED, f"Conversion of JSON Value: {shown(value)} to type: {dtype.name}"
        )
    if dtype.json is Json.STRING and isinstance(value, bytes):
        return value
    if not all_taken([value], dtype):
        raise _wrong_type(value, dtype)
    return value


def decode_b64(value: Object) -> bytes:
    """The bytes of a b64 object.

    Raises:
        ServingError: INVALID_ARGUMENT where it is none, or cannot be decoded.
    """
    text = b64_text(value)
    if text is None:
        raise invalid_argument(
            f"JSON Value: {shown(value)} not formatted correctly for base64 data"
        )
    try:
        return b64.decode(text)
    except ValueError:
        raise invalid_argument("Unable to base64 decode") from None


def _wrong_type(value: Value, dtype: DType) -> ServingError:
    return invalid_argument(
        f"JSON Value: {shown(value)} Type: {type_name(value)} is not of expected type: {dtype.name}"
    )


def pack(elements: list[Any], shape: Sequence[int], dtype: DType) -> np.ndarray[Any, Any]:
    """Make the array of checked elements; those beyond the shape's size are left out.

    int16, int8 and uint8 wrap, and a double beyond float32 becomes infinite, as TensorFlow's
    narrowing does.

    Raises:
        ValueError: the rank is more than NumPy can hold.
    """
    if len(shape) == 1 and len(elements) == shape[0]:
        return _flat(elements, dtype)
    return _flat(elements[: math.prod(shape)], dtype).reshape(shape)


def _flat(elements: list[Any], dtype: DType) -> np.ndarray[Any, Any]:
    if dtype.name == "float":
        # The length of the vector bounds all its elements, and is one call.
        if math.hypot(*elements) <= _FLOAT32_MAX:
            return np.array(elements, dtype.numpy)
        with np.errstate(over="ignore"):
            return np.array(elements, dtype.numpy)
    if dtype.json is Json.STRING:
        array = np.empty(len(elements), np.object_)
        array[:] = elements
        return array
    if dtype.bounds == INT32:
        return np.array(elements, np.int32).astype(dtype.numpy)
    return np.array(elements, dtype.numpy)
