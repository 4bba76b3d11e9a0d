"""``TensorProto`` messages from and to arrays, by the rules of TensorFlow's ``tensor.cc``.

TensorFlow itself is not needed for it: a message comes with the request that it is a part of.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codec.deep import MAX_NUMPY_RANK, MAX_RANK, DeepTensor, flat
from ..codec.dtypes import DType, dtype_of, name_of
from ..errors import invalid_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codec.deep import Tensor

_MAX_BYTES = 1 << 31
"""A few values may stand for many equal ones, but for no more than a message could hold."""
_FIELDS = {
    "float": "float_val",
    "double": "double_val",
    "string": "string_val",
    "bool": "bool_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "half": "half_val",
    "bfloat16": "half_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
}
_SMALL = frozenset(
    ("int32", "int16", "int8", "uint16", "uint8", "qint8", "quint8", "qint16", "quint16", "qint32")
)
"""These share the field ``int_val``."""
_COMPLEX = {"scomplex_val": np.float32, "dcomplex_val": np.float64}


def to_tensor(message: Any, alias: str) -> Tensor:
    """The tensor that a message stands for; strings become object arrays of bytes.

    Where fewer values are given than the shape needs, the last one is repeated, or zeros stand
    for none; surplus ones are dropped.

    Args:
        message: a ``TensorProto``.
        alias: the input that it is sent for.

    Raises:
        ServingError: INVALID_ARGUMENT where it is no tensor.
    """
    try:
        return _tensor(message)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise invalid_argument(f"tensor parsing error: {alias}") from error


def fill(message: Any, tensor: Tensor) -> None:
    """Write a tensor into an empty message: numbers as ``tensor_content``, strings one by one."""
    name = name_of(tensor.dtype)
    values = flat(tensor)
    message.dtype = _enum(message).values_by_name[f"DT_{name.upper()}"].number
    message.tensor_shape.SetInParent()
    for size in tensor.shape:
        message.tensor_shape.dim.add(size=size)
    if name == "string":
        message.string_val.extend(values.tolist())
    else:
        little = values.dtype.newbyteorder("<") if values.dtype.kind in "iufc" else values.dtype
        message.tensor_content = values.astype(little, copy=False).tobytes()


def _tensor(message: Any) -> Tensor:
    dtype = _dtype(message)
    if message.tensor_shape.unknown_rank:
        raise ValueError("the rank is unknown")
    shape = tuple(dim.size for dim in message.tensor_shape.dim)
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        raise ValueError("no shape of a tensor")
    size = math.prod(shape)
    if size * max(dtype.numpy.itemsize, 1) > _MAX_BYTES:
        raise ValueError("too large")
    content = message.tensor_content
    if not content:
        values = _spread(_given(message, dtype), size)
    elif dtype.name == "string":
        values = _objects(_split(content, size))
    else:
        values = np.frombuffer(content, dtype.numpy)
        if values.size != size:
            raise ValueError("the content is of another size")
    return values.reshape(shape) if len(shape) <= MAX_NUMPY_RANK else DeepTensor(values, shape)


def _dtype(message: Any) -> DType:
    value = _enum(message).values_by_number.get(message.dtype)
    name = value.name.removeprefix("DT_").lower() if value is not None else ""
    if name not in _FIELDS and name not in _SMALL:
        raise ValueError("no dtype of values")
    return dtype_of(name)


def _enum(message: Any) -> Any:
    return message.DESCRIPTOR.fields_by_name["dtype"].enum_type


def _given(message: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """The values of the field that belongs to the dtype."""
    field = _FIELDS.get(dtype.name, "int_val")
    values = getattr(message, field)
    if field == "string_val":
        return _objects(values)
    if field == "half_val":  # the bits, as integers
        return np.array(values, np.int64).astype(np.uint16).view(dtype.numpy)
    if field in _COMPLEX:  # real and imaginary parts by turns
        parts = np.array(values, _COMPLEX[field])
        return parts[: len(parts) // 2 * 2].view(dtype.numpy)
    if field == "int_val":  # of wider integers the low bits count, as in C++
        return np.array(values, np.int32).astype(dtype.numpy)
    return np.array(values, dtype.numpy)


def _spread(values: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    if values.size >= size:
        return values[:size]
    fill_value: Any = b"" if values.dtype == object else 0
    spread = np.full(size, values[-1] if values.size else fill_value, values.dtype)
    spread[: values.size] = values
    return spread


def _objects(values: Sequence[bytes]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _split(content: bytes, size: int) -> list[bytes]:
    """Strings as TensorFlow packs them: all lengths as varints, then all bytes."""
    lengths = []
    at = 0
    for _ in range(size):
        length = shift = 0
        while True:
            if at >= len(content) or shift > 28:
                raise ValueError("the content ends within the lengths")
            byte = content[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    strings = []
    for length in lengths:
        strings.append(content[at : at + length])
        at += length
    if at != len(content):
        raise ValueError("the content is of another size than its strings")
    return strings
