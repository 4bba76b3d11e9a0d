"""TensorFlow's dtypes: their names, their NumPy dtypes, and the JSON that fills them.

Names are those of ``DataTypeString`` (``float``, ``int32``, ...), as in
:class:`~jupyter_tfserve.servable.TensorInfo` and in error texts; the name of the enum constant is
always ``DT_`` and the name in upper case. What JSON accepts is the ``switch`` of
``util/json_tensor.cc: AddValueToTensor``.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cache
from typing import Any

import numpy as np


class Json(Enum):
    """The kinds of JSON element that a dtype takes."""

    NUMBER = auto()
    INTEGER = auto()
    BOOL = auto()
    STRING = auto()
    NOTHING = auto()


_SCALARS = {
    Json.NUMBER: frozenset((int, float)),
    Json.INTEGER: frozenset((int,)),
    Json.BOOL: frozenset((bool,)),
}


class DType:
    """One dtype: TensorFlow's name, NumPy's dtype of its arrays, and the JSON it takes.

    Strings are object arrays of ``bytes``. ``scalars`` are the Python types of the elements that
    are taken as they are, ``bounds`` the least and the greatest integer taken: int32's for int16,
    int8 and uint8, which wrap.
    """

    __slots__ = ("bounds", "json", "name", "numpy", "scalars")

    def __init__(
        self,
        name: str,
        numpy: np.dtype[Any],
        json: Json = Json.NOTHING,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        self.name = name
        self.numpy = numpy
        self.json = json
        self.bounds = bounds
        self.scalars: frozenset[type] = _SCALARS.get(json, frozenset())

    @property
    def enum_name(self) -> str:
        """The name of the constant in ``types.proto``, such as ``DT_FLOAT``."""
        return f"DT_{self.name.upper()}"


INT32 = (-(2**31), 2**31 - 1)
_TAKEN: dict[str, tuple[type, Json, tuple[int, int] | None]] = {
    "float": (np.float32, Json.NUMBER, None),
    "double": (np.float64, Json.NUMBER, None),
    "int32": (np.int32, Json.INTEGER, INT32),
    "int16": (np.int16, Json.INTEGER, INT32),
    "int8": (np.int8, Json.INTEGER, INT32),
    "uint8": (np.uint8, Json.INTEGER, INT32),
    "int64": (np.int64, Json.INTEGER, (-(2**63), 2**63 - 1)),
    "uint32": (np.uint32, Json.INTEGER, (0, 2**32 - 1)),
    "uint64": (np.uint64, Json.INTEGER, (0, 2**64 - 1)),
    "bool": (np.bool_, Json.BOOL, None),
    "string": (np.object_, Json.STRING, None),
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
        numpy, json, bounds = _TAKEN[name]
        return DType(name, np.dtype(numpy), json, bounds)
    if name in _NOT_TAKEN:
        return DType(name, np.dtype(_NOT_TAKEN[name]))
    return DType(name, _extension(name))


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
