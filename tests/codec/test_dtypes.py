"""The table of dtypes."""

from __future__ import annotations

import pytest

from jupyter_tfserve.codec.dtypes import Json, dtype_of, name_of

tf = pytest.importorskip("tensorflow")

TAKEN = ["float", "double", "int32", "int16", "int8", "uint8", "int64", "uint32", "uint64", "bool"]
TAKEN += ["string"]
OTHERS = ["uint16", "half", "bfloat16", "complex64", "complex128", "resource", "variant", "qint8"]


@pytest.mark.parametrize("name", [*TAKEN, "uint16", "half", "bfloat16", "complex64", "complex128"])
def test_numpy_dtypes_are_tensorflows(name: str) -> None:
    from tensorflow.core.framework import types_pb2

    dtype = dtype_of(name)
    number = types_pb2.DataType.Value(dtype.enum_name)
    assert tf.dtypes.as_dtype(number).as_numpy_dtype == dtype.numpy
    assert name_of(dtype.numpy) == name


@pytest.mark.parametrize("name", OTHERS)
def test_what_json_cannot_fill_is_known_by_name(name: str) -> None:
    dtype = dtype_of(name)
    assert (dtype.name, dtype.json, dtype.scalars) == (name, Json.NOTHING, frozenset())


@pytest.mark.parametrize("name", TAKEN)
def test_what_json_fills(name: str) -> None:
    assert dtype_of(name).json is not Json.NOTHING
