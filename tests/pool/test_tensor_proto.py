"""``TensorProto`` messages, held to TensorFlow's own reading of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensorflow_serving.apis import predict_pb2

from jupyter_tfserve.codec.deep import DeepTensor
from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.pool.tensor_proto import fill, to_tensor

tf = pytest.importorskip("tensorflow")


def new() -> Any:
    return predict_pb2.PredictRequest().inputs["x"]


def bfloat16(values: list[float]) -> np.ndarray:
    return np.array(values).astype(tf.bfloat16.as_numpy_dtype)


ARRAYS = [
    np.array([[1.5, -2.5]], np.float32),
    np.array(3.25),
    np.array([1, -2, 3], np.int32),
    np.array([2**40, -1], np.int64),
    np.array([200, 1], np.uint8),
    np.array([-100, 1], np.int8),
    np.array([-30000, 1], np.int16),
    np.array([60000, 1], np.uint16),
    np.array([2**32 - 1], np.uint32),
    np.array([2**64 - 1], np.uint64),
    np.array([True, False]),
    np.array([1.5, 65504.0], np.float16),
    np.array([1 + 2j, -1j], np.complex64),
    np.array([1 + 2j], np.complex128),
    np.zeros((2, 0, 3), np.float32),
    np.array([[b"a\x00\xff", b""], [b"b" * 300, b"c"]], object),
    np.array(b"one", object),
    bfloat16([1.5, -3.0]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_what_is_written_reads_back_here_and_in_tensorflow(array: np.ndarray) -> None:
    message = new()
    fill(message, array)
    for back in (to_tensor(message, "x"), tf.make_ndarray(message)):
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_the_fields_of_each_dtype_are_read(array: np.ndarray) -> None:
    message = new()
    # Its own writer, which fills the typed fields for lists.
    message.CopyFrom(tf.make_tensor_proto(array.tolist(), array.dtype, array.shape))
    back = to_tensor(message, "x")
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


def test_the_last_value_is_repeated_zeros_stand_for_none_and_surplus_is_dropped() -> None:
    message = new()
    message.dtype = 1
    message.tensor_shape.dim.add(size=4)
    assert to_tensor(message, "x").tolist() == [0.0] * 4  # type: ignore[union-attr]
    message.float_val.extend([1.0, 2.0])
    assert to_tensor(message, "x").tolist() == [1.0, 2.0, 2.0, 2.0]  # type: ignore[union-attr]
    message.float_val.extend([3.0, 4.0, 5.0])
    assert to_tensor(message, "x").tolist() == [1.0, 2.0, 3.0, 4.0]  # type: ignore[union-attr]


def test_strings_may_come_packed() -> None:
    message = new()
    message.dtype = 7
    message.tensor_shape.dim.add(size=2)
    message.tensor_content = b"\x01\xc8\x01" + b"a" + b"b" * 200
    assert to_tensor(message, "x").tolist() == [b"a", b"b" * 200]  # type: ignore[union-attr]


def test_more_dimensions_than_numpy_has_are_carried() -> None:
    message = new()
    deep = DeepTensor(np.array([1.0, 2.0], np.float32), (*[1] * 69, 2))
    fill(message, deep)
    back = to_tensor(message, "x")
    assert isinstance(back, DeepTensor)
    assert back.shape == deep.shape
    np.testing.assert_array_equal(back.values, deep.values)


@pytest.mark.parametrize(
    ("dtype", "dims", "content"),
    [
        (0, [1], b""),  # no dtype
        (20, [1], b""),  # a resource
        (101, [1], b""),  # a reference
        (999, [1], b""),
        (1, [-1], b""),
        (1, [1] * 255, b""),
        (1, [2], b"\0" * 4),
        (1, [2**40, 2**40], b""),
        (1, [2**33], b""),
        (7, [2], b"\x05"),
        (7, [1], b"\x05ab"),
        (7, [1], b"\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_what_is_no_tensor_is_refused_by_its_alias(
    dtype: int, dims: list[int], content: bytes
) -> None:
    message = new()
    message.dtype = dtype
    for size in dims:
        message.tensor_shape.dim.add(size=size)
    message.tensor_content = content
    with pytest.raises(ServingError) as refused:
        to_tensor(message, "image")
    assert refused.value.message == "tensor parsing error: image"


def test_an_unknown_rank_is_refused() -> None:
    message = new()
    message.dtype = 1
    message.tensor_shape.unknown_rank = True
    with pytest.raises(ServingError, match="tensor parsing error: x"):
        to_tensor(message, "x")
