"""Tensors beyond NumPy's 64 dimensions, which TensorFlow Serving takes up to 254."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jupyter_tfserve.codec.deep import DeepTensor
from jupyter_tfserve.codec.json_encode import encode_predict
from jupyter_tfserve.codec.json_tensor import Format, parse_predict
from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.servable import TensorInfo

FLOAT = {"x": TensorInfo("float", None)}


def nested(value: str, depth: int) -> str:
    return "[" * depth + value + "]" * depth


@pytest.mark.parametrize("depth", [65, 254])
def test_a_deep_value_keeps_its_shape(depth: int) -> None:
    body = f'{{"inputs": {nested("1.5, 2.5", depth)}}}'.encode()
    tensors, form = parse_predict(body).tensors(FLOAT)
    deep = tensors["x"]
    assert isinstance(deep, DeepTensor)
    assert deep.shape == (1,) * (depth - 1) + (2,)
    assert deep.values.dtype == np.float32
    assert json.loads(encode_predict(tensors, FLOAT, form)) == {
        "outputs": json.loads(nested("1.5, 2.5", depth))
    }


def test_deep_rows_are_answered_as_rows() -> None:
    row = nested("7", 70)
    body = f'{{"instances": [{row}, {row}]}}'.encode()
    tensors, form = parse_predict(body).tensors(FLOAT)
    assert tensors["x"].shape == (2,) + (1,) * 70
    answer = json.loads(encode_predict(tensors, FLOAT, form))
    assert answer == {"predictions": [json.loads(nested("7.0", 70))] * 2}
    two = {"a": tensors["x"], "b": np.float32([1, 2])}
    assert json.loads(encode_predict(two, {}, Format.ROW))["predictions"][1]["b"] == 2.0


def test_beyond_tensorflows_own_limit_the_text_is_its_own() -> None:
    with pytest.raises(ServingError, match=r"^INVALID_ARGUMENT: tensor parsing error: x$"):
        parse_predict(f'{{"inputs": {nested("1", 255)}}}'.encode()).tensors(FLOAT)


def test_a_ragged_deep_value_is_refused_like_any_other() -> None:
    body = f'{{"inputs": {nested("[1], [1, 2]", 80)}}}'.encode()
    with pytest.raises(ServingError, match="Encountered list at unexpected size"):
        parse_predict(body).tensors(FLOAT)
