"""TensorFlow's dtypes: their names, their NumPy dtypes, and the JSON that fills them.

Names are those of ``DataTypeString`` (``float``, ``int32``, ...), as in
:class:`~jupyter_tfserve.servable.TensorInfo` and in error texts; the name of the enum constant is
always ``DT_`` and the name in upper case. What JSON accepts is the ``switch`` of
``util/json_tensor.cc: AddValueToTensor``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any

import numpy as np


class Json(Enum):
    """The kinds of JSON element that a dtype takes."""

    NUMBER = auto()
    INT32 = auto()
    INT64 = auto()
    UINT32 = auto()
    UINT64 = auto()
    BOOL = auto()
    STRING = auto()
    NOTHING = auto()

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest integer taken, for the integer kinds."""
        return _BOUNDS.get(self)


_BOUNDS = {
    Json.INT32: (-(2**31), 2**31 - 1),
    Json.INT64: (-(2**63), 2**63 - 1),
    Json.UINT32: (0, 2**32 - 1),
    Json.UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class DType:
    """One dtype: TensorFlow's name, NumPy's dtype of its arrays, and the JSON it takes.

    Strings are object arrays of ``bytes``. int16, int8 and uint8 take what int32 takes, and wrap.
    """

    name: str
    numpy: np.dtype[Any]
    json: Json

    @property
    def enum_name(self) -> str:
        """The name of the constant in ``types.proto``, such as ``DT_FLOAT``."""
        return f"DT_{self.name.upper()}"


_TAKEN = {
    "float": (np.float32, Json.NUMBER),
    "double": (np.float64, Json.NUMBER),
    "int32": (np.int32, Json.INT32),
    "int16": (np.int16, Json.INT32),
    "int8": (np.int8, Json.INT32),
    "uint8": (np.uint8, Json.INT32),
    "int64": (np.int64, Json.INT64),
    "uint32": (np.uint32, Json.UINT32),
    "uint64": (np.uint64, Json.UINT64),
    "bool": (np.bool_, Json.BOOL),
    "string": (np.object_, Json.STRING),
}
# Only empty arrays of these come from JSON; quantised ones are their plain integers to NumPy.
_NOT_TAKEN = {
    "uint16": np.uint16,
    "half": np.float16,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "qint8": np.int8,
    "quint8": np.uint8,
    "qint16": np.int16,
    "quint16": np.uint16,
    "qint32": np.int32,
}


@cache
def dtype_of(name: str) -> DType:
    """The dtype of that TensorFlow name; a name unknown here takes nothing in JSON."""
    if name in _TAKEN:
        numpy, json = _TAKEN[name]
        return DType(name, np.dtype(numpy), json)
    if name in _NOT_TAKEN:
        return DType(name, np.dtype(_NOT_TAKEN[name]), Json.NOTHING)
    return DType(name, _extension(name), Json.NOTHING)


def _extension(name: str) -> np.dtype[Any]:
    """The dtype of a name that NumPy itself lacks, such as ``bfloat16``."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.object_)
    return np.dtype(getattr(ml_dtypes, name, np.object_))


def name_of(dtype: np.dtype[Any]) -> str:
    """TensorFlow's name for arrays of a NumPy dtype; its own name where there is none."""
    if dtype.kind in "OSU":
        return "string"
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)
