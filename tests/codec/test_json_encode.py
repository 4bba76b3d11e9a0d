"""Arrays to answers: values, refusals and the layout of small ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jupyter_tfserve.codec.document_tensors import Format
from jupyter_tfserve.codec.json_encode import encode_classify, encode_predict, encode_regress
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import TensorInfo


def strings(items: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(np.shape(items), np.object_)
    array[...] = items
    return array


def row(**outputs: Any) -> str:
    arrays = {name: np.asarray(array) for name, array in outputs.items()}
    return encode_predict(arrays, {}, Format.ROW).decode()


def columnar(**outputs: Any) -> str:
    arrays = {name: np.asarray(array) for name, array in outputs.items()}
    return encode_predict(arrays, {}, Format.COLUMNAR).decode()


def test_one_output_is_a_list_of_rows() -> None:
    floats = np.array([3.5, 4.0, 5.5], np.float32)
    assert row(y=floats) == '{\n    "predictions": [3.5, 4.0, 5.5\n    ]\n}'
    assert row(y=floats.reshape(3, 1)) == '{\n    "predictions": [[3.5], [4.0], [5.5]\n    ]\n}'
    assert row(y=[[1, 2], [3, 4]]) == '{\n    "predictions": [[1, 2], [3, 4]\n    ]\n}'


def test_several_outputs_are_objects() -> None:
    assert row(a=[1, 2], b=[[True, False], [False, True]]) == (
        '{\n    "predictions": [\n'
        '        {\n            "a": 1,\n            "b": [true, false]\n        },\n'
        '        {\n            "a": 2,\n            "b": [false, true]\n        }\n    ]\n}'
    )


def test_columnar_answers_are_expanded() -> None:
    assert columnar(y=np.float32(1)) == '{\n    "outputs": 1.0\n}'
    assert columnar(y=[[1], [2]]) == (
        '{\n    "outputs": [\n        [\n            1\n        ],\n'
        "        [\n            2\n        ]\n    ]\n}"
    )
    assert columnar(a=7, b=[1.5]) == (
        '{\n    "outputs": {\n        "a": 7,\n        "b": [\n            1.5\n        ]\n    }\n}'
    )


def test_bytes_outputs_are_b64_objects() -> None:
    assert row(y_bytes=strings([b"abc"])) == (
        '{\n    "predictions": [{\n            "b64": "YWJj"\n        }\n    ]\n}'
    )
    assert columnar(y_bytes=strings([[b"\xff"]])) == (
        '{\n    "outputs": [\n        [\n            {\n                "b64": "/w=="\n'
        "            }\n        ]\n    ]\n}"
    )
    assert row(a_bytes=strings([b"a"]), b=strings([b"a"])) == (
        '{\n    "predictions": [\n        {\n            "a_bytes": {\n'
        '                "b64": "YQ=="\n            },\n            "b": "a"\n        }\n    ]\n}'
    )


def test_strings_are_their_bytes() -> None:
    array = strings([b'a/"\\\n\x01\x7f\xc3\xa9\xff'])
    body = encode_predict({"s": array}, {}, Format.ROW)
    assert b'"a/\\"\\\\\\n\\u0001\x7f\xc3\xa9\xff"' in body


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (2, 0, 3), (2, 3, 0)])
@pytest.mark.parametrize("dtype", ["f4", "i8", "O", "f2"])
def test_empty_arrays_keep_their_shape(shape: tuple[int, ...], dtype: str) -> None:
    array = np.empty(shape, dtype)
    expected = np.empty(shape).tolist()
    assert json.loads(row(y=array)) == {"predictions": expected}
    assert json.loads(columnar(y=array)) == {"outputs": expected}
    if shape[0]:
        assert json.loads(row(y=array, z=np.zeros(shape[0])))["predictions"] == [
            {"y": item, "z": 0.0} for item in expected
        ]


def test_tokens_stand_where_json_has_none() -> None:
    array = np.array([[np.nan, 1], [np.inf, -np.inf]], np.float32)
    assert row(y=array) == '{\n    "predictions": [[NaN, 1.0], [Infinity, -Infinity]\n    ]\n}'
    large = np.zeros(5000)
    large[[0, 4999]] = np.nan, -np.inf
    got = json.loads(row(y=large))["predictions"]
    assert np.isnan(got[0])
    assert got[1:] == [0.0] * 4998 + [-np.inf]


@pytest.mark.parametrize("size", [1, 5000])
def test_whole_floats_of_nine_digits_are_exact(size: int) -> None:
    array = np.full(size, 123456789, np.float32)
    assert "123456792.0" in row(y=array)
    assert "-123456792.0" in row(y=-array)
    assert "123456790.0" in row(y=np.full(size, 123456790.0))


@pytest.mark.parametrize("dtype", ["half", "uint16", "complex64"])
def test_dtypes_without_json_are_refused(dtype: str) -> None:
    array = np.zeros(2, {"half": "f2"}.get(dtype, dtype))
    for infos in ({}, {"y": TensorInfo(dtype, None)}):
        with pytest.raises(ServingError) as caught:
            encode_predict({"y": array}, infos, Format.COLUMNAR)
        assert caught.value.code is Code.INVALID_ARGUMENT
        assert caught.value.message == f"Failed to write JSON value for tensor type: {dtype}"


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({}, "Cannot convert empty tensor map to JSON"),
        ({"s": 1.0}, "Tensor name: s has no shape information "),
        (
            {"a": [1, 2], "b": [1, 2, 3]},
            "Tensor name: b has inconsistent batch size: 3 expecting: 2",
        ),
    ],
)
def test_what_has_no_rows_is_refused(outputs: dict[str, Any], text: str) -> None:
    with pytest.raises(ServingError) as caught:
        row(**outputs)
    assert caught.value.message == text


def test_no_rows_is_an_empty_list() -> None:
    assert row(y=np.empty((0, 3))) == '{\n    "predictions": []\n}'
    assert row(a=np.empty((0, 3)), b=np.empty(0)) == '{\n    "predictions": []\n}'


shapes = hnp.array_shapes(min_dims=1, max_dims=4, max_side=4)
arrays = st.sampled_from(["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u4", "u8", "?"]).flatmap(
    lambda dtype: hnp.arrays(dtype, shapes)
)


def assert_reads_back(got: Any, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            back = np.array(got, np.float64).astype(array.dtype)
        np.testing.assert_array_equal(back, array)
        finite = ~np.isnan(array)
        assert np.array_equal(np.signbit(back)[finite], np.signbit(array)[finite])
        return
    assert np.array(got, object).tolist() == array.tolist()


@given(arrays)
def test_numbers_read_back_to_the_bit(array: np.ndarray[Any, Any]) -> None:
    assert_reads_back(json.loads(row(y=array))["predictions"], array)
    assert_reads_back(json.loads(columnar(y=array))["outputs"], array)
    rows = json.loads(row(y=array, z=array))["predictions"]
    assert_reads_back([item["y"] for item in rows], array)
    columns = json.loads(columnar(y=array, z=array.T))["outputs"]
    assert_reads_back(columns["z"], array.T)


@given(hnp.arrays("f4", st.sampled_from([(600, 2), (40, 30, 1), (1100, 1, 1)])))
def test_large_answers_read_back_too(array: np.ndarray[Any, Any]) -> None:
    text = row(y=array)
    assert ", " not in text
    assert_reads_back(json.loads(text)["predictions"], array)
    rows = json.loads(row(y=array, z=array))["predictions"]
    assert_reads_back([item["z"] for item in rows], array)
    assert_reads_back(json.loads(columnar(y=array))["outputs"], array)


def test_a_scalar_beside_a_large_output_stays_a_scalar() -> None:
    for scalar in (np.float32(1), np.int64(7), True):
        got = json.loads(columnar(s=scalar, y=np.zeros(2000)))["outputs"]
        assert got["s"] == scalar
    got = json.loads(columnar(s=strings(["a"])[0], y=np.zeros(2000)))["outputs"]
    assert got["s"] == "a"


def test_floats_never_look_like_integers() -> None:
    for dtype in ("f4", "f8"):
        array = np.array([0, 1, 1e6, 1e15, 1e16, 1e20, 1e-7], dtype)
        for token in row(y=array).split("[")[1].split("\n")[0].split(", "):
            assert "." in token or "e" in token


def test_arrays_of_any_byte_order_and_stride() -> None:
    array = np.arange(6, dtype=">f4").reshape(2, 3)
    assert json.loads(row(y=array.T))["predictions"] == [[0, 3], [1, 4], [2, 5]]


def test_classify() -> None:
    classes, scores = strings([[b"car", b""]]), np.array([[0.2, np.nan]], np.float32)
    assert encode_classify(classes, scores, 1) == (
        b'{\n    "results": [[["car", 0.2], ["", NaN]]\n    ]\n}'
    )
    assert encode_classify(None, scores[:, :1], 1) == b'{\n    "results": [[["", 0.2]]\n    ]\n}'
    assert encode_classify(classes, None, 1) == (
        b'{\n    "results": [[["car", 0.0], ["", 0.0]]\n    ]\n}'
    )
    assert encode_classify(None, np.empty((2, 0), np.float32), 2) == (
        b'{\n    "results": [[], []\n    ]\n}'
    )


def test_regress() -> None:
    array = np.array([0.2, 3, np.nan], np.float32)
    assert encode_regress(array) == b'{\n    "results": [0.2, 3.0, NaN]\n}'
    assert encode_regress(array.reshape(3, 1)) == b'{\n    "results": [0.2, 3.0, NaN]\n}'
