"""NumPy values to the dtype of an input: exact or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jupyter_tfserve.codec.dtypes import dtype_of
from jupyter_tfserve.notebook.answer import read_predict
from jupyter_tfserve.notebook.casting import cast
from jupyter_tfserve.notebook.errors import InvalidArgumentError
from jupyter_tfserve.notebook.request import predict_body
from jupyter_tfserve.servable import SignatureInfo, TensorInfo

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def to(dtype: str, values: Any) -> np.ndarray[Any, Any]:
    array = values if isinstance(values, np.ndarray) else np.array(values)
    return cast(array, "x", TensorInfo(dtype, None), lambda index: f"x[{index}]")


def refusal(dtype: str, values: Any) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as refused:
        to(dtype, values)
    return refused.value


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_integers_arrive_exactly_or_not_at_all(dtype: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(INTEGERS))
    values = data.draw(hnp.arrays(source, hnp.array_shapes(max_dims=2, max_side=4)))
    try:
        cast_values = to(dtype, values)
    except InvalidArgumentError:
        bounds = np.iinfo(dtype)
        assert any(not bounds.min <= int(v) <= bounds.max for v in values.flat)
    else:
        assert cast_values.dtype == dtype
        assert cast_values.tolist() == values.tolist()


@given(values=hnp.arrays(np.float64, 4, elements=st.floats(allow_subnormal=True)))
def test_floats_become_integers_only_where_no_integer_could_have_become_the_same_float(
    values: np.ndarray[Any, Any],
) -> None:
    try:
        cast_values = to("int64", values)
    except InvalidArgumentError:
        assert any(not np.isfinite(v) or v % 1 or abs(v) >= 2**53 for v in values)
    else:
        assert cast_values.tolist() == values.tolist()


@given(values=hnp.arrays(np.int64, 4))
def test_integers_become_floats_only_where_they_stay_the_same(values: Any) -> None:
    for dtype in ("float", "double", "half"):
        try:
            cast_values = to(dtype, values)
        except InvalidArgumentError:
            limit = {"float": 2**24, "double": 2**53, "half": 2**11}[dtype]
            assert any(abs(int(v)) > limit for v in values)
        else:
            assert [int(v) for v in cast_values] == values.tolist()


@given(values=hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=4)))
def test_float32_goes_there_and_back_bit_for_bit(values: np.ndarray[Any, Any]) -> None:
    """O10 and O09: every token reads back, subnormals, -0.0, NaN and the infinities included."""
    info = TensorInfo("float", (-1,) * values.ndim)
    signature = SignatureInfo("serving_default", {"x": info}, {"y": info})
    body = predict_body({"x": to("float", values)}, signature)
    answer = body.replace(b'{"instances"', b'{"predictions"').replace(b'{"inputs"', b'{"outputs"')
    read = read_predict(answer, signature)["y"]
    np.testing.assert_array_equal(read, values)
    assert (np.signbit(read) == np.signbit(values))[~np.isnan(values)].all()


def test_half_takes_what_fits_and_refuses_what_does_not() -> None:
    """O08: 0.5 and 65504 are exact, 70000 is refused rather than made infinite."""
    for dtype in ("half", "bfloat16"):
        assert to(dtype, [0.5, 1.0]).astype(float).tolist() == [0.5, 1.0]
    assert to("half", np.array([0.5, 65504])).tolist() == [0.5, 65504.0]
    for values in ([0.5, 70000], [0.5, 70000.0]):
        error = refusal("half", values)
        assert "beyond the range of half" in str(error)
        assert error.where == "x[1]"
    assert to("half", [np.inf]).tolist() == [np.inf]


def test_a_double_beyond_float32_is_refused_and_infinity_is_not() -> None:
    assert to("float", [np.inf, -np.inf, 3e38]).tolist()[:2] == [np.inf, -np.inf]
    assert refusal("float", [0.0, 1e39]).where == "x[1]"


def test_large_whole_floats_are_refused_with_the_reason() -> None:
    """O30: 9007199254740993 in a float column has become 9007199254740992.0 by then."""
    assert to("int64", [1.0, 2.0]).tolist() == [1, 2]
    assert "2**53" in str(refusal("int64", [float(9007199254740993)]))
    assert "2**24" in str(refusal("int64", np.array([2**24], np.float32)))
    assert "not a whole number" in str(refusal("int64", [1.5]))
    assert "is no integer" in str(refusal("int64", [np.nan]))


def test_python_numbers_of_several_kinds_stay_exact() -> None:
    """O28: a mixed row is brought back to the dtype of the signature where nothing is lost."""
    mixed = np.array([2**53 + 1, 1.0, True, np.int8(3)], object)
    assert to("int64", mixed).tolist() == [2**53 + 1, 1, 1, 3]
    assert to("uint64", np.array([2**64 - 1, 0], object)).tolist() == [2**64 - 1, 0]
    assert to("float", np.array([np.float32(0.1)], object)).tolist() == [float(np.float32(0.1))]
    assert refusal("int64", np.array([0, 2**64], object)).where == "x[1]"
    assert refusal("int64", np.array([1, 0.5], object)).where == "x[1]"


def test_truth_values_and_numbers_are_one_only_as_0_and_1() -> None:
    assert to("bool", [0, 1]).tolist() == [False, True]
    assert to("bool", [np.bool_(True)]).tolist() == [True]
    assert to("int32", [True, False]).tolist() == [1, 0]
    assert refusal("bool", [0, 2]).where == "x[1]"
    assert refusal("bool", ["yes"]).where == "x[0]"


def test_strings_are_text_or_bytes_and_nothing_else() -> None:
    assert to("string", np.array(["é", b"\x00\xff\x00"], object)).tolist() == [
        "é".encode(),
        b"\x00\xff\x00",
    ]
    assert "astype(str)" in str(refusal("string", np.array([1], object)))
    assert refusal("string", np.array(["a", None], object)).where == "x[1]"
    assert refusal("float", ["1.0"]).where == "x[0]"


@pytest.mark.parametrize(
    ("text", "data"),
    [("-__-", b"\xfb\xff\xfe"), ("+//+", b"\xfb\xff\xfe"), ("-_8", b"\xfb\xff"), ("", b"")],
)
def test_either_base64_alphabet_gives_the_same_bytes(text: str, data: bytes) -> None:
    """O01: the web-safe alphabet, padded or not, is as good as the standard one."""
    assert to("string", np.array([{"b64": text}], object)).tolist() == [data]


def test_a_data_uri_is_told_from_base64() -> None:
    """O02: the prefix is named, and the payload is not repeated."""
    text = "data:image/jpeg;base64," + "/9j/4AAQ" * 1000
    error = refusal("string", np.array([{"b64": text}], object))
    assert "data:image/jpeg;base64" in str(error)
    assert "comma" in error.hint
    assert len(str(error)) < 300
    assert len(str(refusal("string", np.array([{"b64": "?" * 5000}], object)))) < 300


def test_an_array_for_a_string_input_has_to_be_encoded() -> None:
    """O03: nobody means the raw memory of an array."""
    for pixels in (np.zeros((8, 8, 3), np.uint8),):
        error = refusal("string", pixels)
        assert "encode_array" in error.hint
        assert "png" in error.hint


def test_what_json_cannot_carry_is_said() -> None:
    assert "JSON cannot carry" in str(refusal("complex64", [1.0]))


def test_every_dtype_with_json_takes_its_own_values_as_they_are() -> None:
    for name in ("float", "double", "int32", "uint8", "int64", "bool"):
        values = np.ones(3, dtype_of(name).numpy)
        assert to(name, values) is values
