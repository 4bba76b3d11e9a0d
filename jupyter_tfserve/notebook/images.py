"""Arrays to the encoded strings that models decode: pictures, and serialised tensors."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Literal

import numpy as np

from ..codec.dtypes import name_of
from ..codec.example import proto_field, varint

Encoding = Literal["png", "jpeg", "tensorproto"]

# DataType in tensorflow/core/framework/types.proto.
_ENUM = {
    "float": 1,
    "double": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "half": 19,
    "uint32": 22,
    "uint64": 23,
}


def encode_array(array: Any, encoding: Encoding) -> bytes:
    """One array as the bytes that a string input takes.

    Args:
        array: For a picture, ``uint8`` of shape (height, width) or (height, width, 1, 3 or 4).
        encoding: ``"png"`` or ``"jpeg"``, for graphs with ``decode_image`` or its kin (needs
            Pillow); ``"tensorproto"``, for those with ``parse_tensor``.

    Raises:
        ValueError: for an array that the encoding cannot hold, or an unknown encoding.
    """
    array = np.asarray(array)
    if encoding == "tensorproto":
        return _tensor_proto(array)
    if encoding not in ("png", "jpeg"):
        raise ValueError(f"The encoding is 'png', 'jpeg' or 'tensorproto', not {encoding!r}")
    if array.dtype != np.uint8:
        raise ValueError(f"A picture is an array of uint8, not of {array.dtype}")
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ValueError(f"A picture has the shape (height, width, channels), not {array.shape}")
    from PIL import Image

    buffer = BytesIO()
    picture = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array
    Image.fromarray(picture).save(buffer, encoding)
    return buffer.getvalue()


def _tensor_proto(array: np.ndarray[Any, Any]) -> bytes:
    """``tensorflow.TensorProto``: dtype (1), tensor_shape (2), tensor_content (4)."""
    number = _ENUM.get(name_of(array.dtype))
    if number is None:
        raise ValueError(f"No TensorProto is made of an array of {array.dtype}")
    dims = b"".join(proto_field(2, b"\x08" + varint(size)) for size in array.shape)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return b"\x08" + varint(number) + proto_field(2, dims) + proto_field(4, little.tobytes())
