"""The quick readers against the general one: whatever they answer, it answers too, to the bit."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from predict_bodies import Inputs, assert_equal, general, requests, through_door

from jupyter_tfserve.codec.document_tensors import Format
from jupyter_tfserve.codec.fast_json import has_refused_zero, read_fast, read_tree
from jupyter_tfserve.codec.fast_numbers import read_numbers
from jupyter_tfserve.codec.json_tensor import parse_predict
from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.servable import TensorInfo

if TYPE_CHECKING:
    from jupyter_tfserve.codec.fast_json import FastBody

thorough = settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
FLOAT = {"x": TensorInfo("float", None)}


@thorough
@given(requests())
@example((b'{"instances":[1.5,1.5,[1.5],1.5]}', FLOAT))
@example((b'{"instances":[[1,2],[3],[4,5,6]]}', FLOAT))
@example((b'{"instances":[[[1,2],[]],[[3],[4]]]}', FLOAT))
@example((b'{"instances":[[1,[2]],[[3],4]]}', FLOAT))
@example((b'{"x":"[","instances":[[1],[2]]}', FLOAT))
@example((b'{"x":"[[,","instances":[1,2],"y":"]"}', FLOAT))
@example((b'{"instances":[NaN],"k":"]"}', FLOAT))
@example((b'{"instances":[NaN,4.8127364591827364e-287]}', FLOAT))
@example((b'{"instances":[NaN5,1]}', FLOAT))
@example((b'{"instances":[1],"instances":[2]}', FLOAT))
@example((b'{"instances":[{"x":1,"x":2}]}', FLOAT))
@example((b'{"instances":[0e309]}', FLOAT))
@example((b'{"instances":[0.0000E+400, 1]}', FLOAT))
@example((b'{"instances":[10e1,20E001,0e1,-0E309]}', FLOAT))
@example((b'{"instances":[%b0e400]}' % (b"1e-5,10e1," * 200), FLOAT))
@example((b'{"instances":[%b0.0E+0400]}' % (b"1.5," * 200), FLOAT))
@example((b'{"instances":["a"],"signature_name":"a","signature_n\\u0061me":"b"}', FLOAT))
def test_quick_readers_agree_with_the_general_one(request: tuple[bytes, Inputs]) -> None:
    body, inputs = request
    expected = general(body, inputs)
    assert_equal(through_door(body, inputs), expected)
    if has_refused_zero(body):
        return
    for read in (read_tree, read_numbers):
        fast: FastBody | None = read(body)
        if fast is None:
            continue
        converted = fast.tensors(inputs)
        if converted is not None:
            assert_equal((fast.signature_name, *converted), expected)


@pytest.mark.parametrize("padding", [0, 600])
@pytest.mark.parametrize(
    ("body", "dtypes"),
    [
        (b'{"instances":[1.0,2.0,5.0]}', "float"),
        (b'{"instances":[[1,2],[3,4]]}', "int32"),
        (b'{"inputs":[[[1],[2]],[[3],[4]]]}', "uint8"),
        (b'{"signature_name":"s","inputs":[1e-5, 1.5E2 ]}', "double"),
        (b'{"instances":[{"x":[1,2],"y":3},{"x":[4,5],"y":6}]}', "float int64"),
        (b'{"inputs":{"x":[[1.5],[2]],"y":[3]}}', "float uint64"),
        (b'{"instances":["a","b:c"]}', "string"),
        (b'{"instances":[{"b64":"AQID"},{"b64":"BA=="}]}', "string"),
        (b'{"instances":[{"x":"a","y":true}]}', "string bool"),
        (b'{"inputs":1}', "float"),
        (b'{"instances":[[],[]]}', "float"),
    ],
)
def test_common_bodies_are_read_quickly(body: bytes, dtypes: str, padding: int) -> None:
    inputs = {
        name: TensorInfo(dtype, None) for name, dtype in zip("xy", dtypes.split(), strict=False)
    }
    body += b" " * padding
    fast = read_fast(body)
    assert fast is not None
    converted = fast.tensors(inputs)
    if converted is None:
        tree = read_tree(body)
        assert tree is not None
        converted = tree.tensors(inputs)
    assert converted is not None
    assert_equal((fast.signature_name, *converted), general(body, inputs))


@pytest.mark.parametrize(
    "shape", [(1000,), (20, 50), (7, 28, 28, 1), (500, 1), (500, 2), (3, 1, 1, 200), (1, 1000)]
)
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64", "uint8", "uint64"])
def test_large_arrays_go_through_buffers(shape: tuple[int, ...], dtype: str) -> None:
    numbers = np.arange(np.prod(shape)).reshape(shape) % 250
    array = numbers.astype({"float": "f4", "double": "f8"}.get(dtype, dtype))
    body = b'{"instances":' + orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY) + b"}"
    fast = read_numbers(body)
    assert fast is not None
    converted = fast.tensors({"x": TensorInfo(dtype, None)})
    assert converted is not None
    got = converted[0]["x"]
    assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_tokens_in_large_arrays_go_through_buffers() -> None:
    array = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    array[5, 1], array[7, 0], array[8, 2], array[9, 0] = np.nan, np.inf, -np.inf, np.nan
    body = json.dumps({"instances": array.tolist()}).encode()
    fast = read_numbers(body)
    assert fast is not None
    converted = fast.tensors(FLOAT)
    assert converted is not None
    assert converted[0]["x"].tobytes() == array.tobytes()


def test_a_parser_is_not_shared_by_two_bodies_in_flight() -> None:
    one = parse_predict(b'{"instances":[' + b",".join([b"1.5"] * 1000) + b"]}")
    two = parse_predict(b'{"instances":[' + b",".join([b"2.5"] * 1000) + b"]}")
    assert set(two.tensors(FLOAT)[0]["x"].tolist()) == {2.5}
    three = parse_predict(b'{"instances":[' + b",".join([b"3.5"] * 1000) + b"]}")
    assert set(one.tensors(FLOAT)[0]["x"].tolist()) == {1.5}
    assert set(three.tensors(FLOAT)[0]["x"].tolist()) == {3.5}


def test_a_refused_body_leaves_its_parser_usable() -> None:
    ragged = b'{"instances":[' + b"[1,2]," * 500 + b"[3]]}"
    for _ in range(20):
        with pytest.raises(ServingError, match="Expecting tensor size: 2 but got: 1"):
            parse_predict(ragged).tensors(FLOAT)
    good = parse_predict(b'{"instances":[' + b"[1,2]," * 500 + b"[3,4]]}")
    assert good.tensors(FLOAT)[0]["x"].shape == (501, 2)


def test_a_body_is_converted_again_by_the_general_reader() -> None:
    parsed = parse_predict(b'{"inputs":{"x":[1,2]}}')
    first, form = parsed.tensors(FLOAT)
    again, _ = parsed.tensors(FLOAT)
    assert form is Format.COLUMNAR
    assert first["x"].tolist() == again["x"].tolist() == [1.0, 2.0]


def test_views_and_byte_arrays_are_bodies_too() -> None:
    body = b'{"instances":[1,2]}'
    for form in (bytearray(body), memoryview(body)):
        assert parse_predict(form).tensors(FLOAT)[0]["x"].tolist() == [1.0, 2.0]


def test_megabytes_of_base64_stay_out_of_the_general_reader() -> None:
    data = bytes(range(256)) * 4000
    body = json.dumps({"instances": [{"b64": base64.b64encode(data).decode()}]}).encode()
    fast = read_fast(body)
    assert fast is not None
    converted = fast.tensors({"x": TensorInfo("string", None)})
    assert converted is not None
    assert converted[0]["x"].tolist() == [data]
