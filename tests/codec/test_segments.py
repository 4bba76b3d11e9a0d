"""Large arrays read in segments, against the general reader, wherever the text is cut."""

from __future__ import annotations

import tracemalloc

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from predict_bodies import DTYPES, FLOATS, INTEGERS, TOKENS, Inputs, assert_equal, general, requests

from jupyter_tfserve.codec.json_tensor import parse_predict
from jupyter_tfserve.codec.segments import LARGE, SegmentedBody, read_segments
from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.servable import TensorInfo

FLOAT = {"x": TensorInfo("float", None)}

thorough = settings(
    max_examples=600, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
cuts = st.integers(0, 40)
# Integers beyond 64 bits, which simdjson refuses, and the number that stands for NaN.
UNREAD = "18446744073709551616", "1" * 40, "4.8127364591827364e-287"


def assert_agrees(body: bytes, inputs: Inputs, segment: int) -> bool:
    """The segmented reader says the same as the general one; whether it said anything."""
    expected = general(body, inputs)
    read = read_segments(body, segment=segment)
    if read is None:
        return False
    whole = read.tensors(inputs)
    if whole is not None:
        assert_equal((read.signature_name, *whole), expected)
    converted = read.in_segments(inputs)
    if converted is None:
        return False
    assert_equal((read.signature_name, *converted), expected)
    return True


@st.composite
def arrays(draw: st.DrawFn) -> str:
    """The text of a rectangle of numbers, with white space anywhere between them."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    leaves = st.sampled_from(
        draw(st.sampled_from([["1", "20", "0"], INTEGERS[:6], FLOATS + INTEGERS, TOKENS + FLOATS]))
    )
    gaps = st.sampled_from(draw(st.sampled_from([[""], ["", " "], ["", "\n  ", "\t\r"]])))

    def build(level: int) -> str:
        if level == len(shape):
            return draw(leaves)
        parts = [draw(gaps) + build(level + 1) + draw(gaps) for _ in range(shape[level])]
        return f"[{','.join(parts)}]"

    return build(0)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A body around an array, changed in a few places or in none."""
    before, after = draw(
        st.sampled_from(
            [
                ('{"instances":', "}"),
                ('{"instances" : ', ' ,"signature_name":"s"}'),
                ('{"signature_name":"s","inputs":', "} junk"),
                ('{"inputs":{"x":', "}}"),
                ('{"inputs":{"y":1,"x":', ',"x":2}}'),
                ('{"inputs":{"x":', '},"instances":1}'),
                ('{"instances":1,"instances":', "}"),
                ('{"instances":', ',"instances":1}'),
                ('{"k":"\\"","instances":', ',"k":"["}'),
                ('{"instances":', "}]"),
                ('{"inputs":{"b64":', "}}"),
            ]
        )
    )
    text = before + draw(arrays()) + after
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        at = draw(st.integers(0, len(text)))
        until = draw(st.integers(at, min(at + 2, len(text))))
        inserted = draw(
            st.sampled_from(["", "", ",", "[", "]", "],[", "[[", "]]", ",,", "{}", "[]", "[1]"])
            | st.sampled_from(['"', " ", "0", "1", "-", ".", "e", "0e400", "NaN", "true", "N", "}"])
        )
        text = text[:at] + inserted + text[until:]
    return text.encode()


@thorough
@given(requests(), cuts)
def test_any_request_is_read_as_the_general_reader_does(
    request: tuple[bytes, Inputs], segment: int
) -> None:
    assert_agrees(*request, segment)


@thorough
@given(bodies(), st.sampled_from(DTYPES[:9]), cuts)
@example(b'{"instances":[[1],[2],[],[3]]}', "float", 0)
@example(b'{"instances":[[1,[2]],[[3],4]]}', "float", 0)
@example(b'{"instances":[[1[,]2],[3,4]]}', "float", 0)
@example(b'{"instances":[[1,2]3,[4,5]]}', "float", 0)
@example(b'{"instances":[[1,2],[3]],[4,5]}', "float", 4)
@example(b'{"instances":[1,,2]}', "float", 0)
@example(b'{"instances":[1,2,]}', "float", 0)
@example(b'{"instances":[,1,2]}', "float", 3)
@example(b'{"instances":[1],[2]}', "float", 0)
@example(b'{"instances":[]}', "float", 0)
@example(b'{"instances":[[],[]]}', "float", 0)
@example(b'{"instances":[1,0e309,2]}', "float", 0)
@example(b'{"instances":[NaN,1,NaN5]}', "float", 0)
@example(b'{"instances":[1,[2],3]}', "float", 0)
@example(b'{"instances":[1,{},3]}', "float", 0)
@example(b'{"instances":[1]2,3]}', "float", 0)
@example(b'{"instances":[300,70000,3000000000]}', "uint8", 0)
@example(b'{"x":"[1,2]","instances":1}', "float", 0)
def test_broken_arrays_are_read_as_the_general_reader_does(
    body: bytes, dtype: str, segment: int
) -> None:
    assert_agrees(body, {"x": TensorInfo(dtype, None)}, segment)


@settings(max_examples=200)
@given(arrays(), st.sampled_from(["float", "double"]), cuts, st.booleans())
def test_every_rectangle_of_numbers_is_read_in_segments(
    text: str, dtype: str, segment: int, columnar: bool
) -> None:
    form = "inputs" if columnar else "instances"
    assume(not any(number in text for number in UNREAD))
    body = f'{{"signature_name":"s","{form}":{text}}}'.encode()
    assert assert_agrees(body, {"x": TensorInfo(dtype, None)}, segment)


@pytest.mark.parametrize("segment", [1000, 1 << 18])
@pytest.mark.parametrize(
    "shape",
    [
        (100_000,),
        (100_000, 1),
        (50_000, 2),
        (100, 784),
        (100, 28, 28, 1),
        (1, 90_000),
        (1, 9, 9999),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64", "uint8", "uint64"])
def test_large_arrays_are_read_in_segments(
    shape: tuple[int, ...], dtype: str, segment: int
) -> None:
    numbers = np.arange(np.prod(shape)).reshape(shape) % 250
    array = numbers.astype({"float": "f4", "double": "f8"}.get(dtype, dtype))
    if dtype in ("float", "double"):
        array /= 7
    body = b'{"instances":' + orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY) + b"}"
    read = read_segments(body, segment=segment)
    assert read is not None
    converted = read.in_segments({"x": TensorInfo(dtype, None)})
    assert converted is not None
    got = converted[0]["x"]
    assert (got.dtype, got.shape) == (array.dtype, array.shape)
    assert np.array_equal(got, array)


def large(last: bytes) -> bytes:
    return b'{"instances":[' + b"[1.5,2.5]," * (LARGE // 10) + last + b"]}"


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_large_bodies_are_read_in_segments(kind: type[bytes | bytearray]) -> None:
    parsed = parse_predict(kind(large(b"[3,4]")))
    assert isinstance(parsed._fast, SegmentedBody)
    array = parsed.tensors(FLOAT)[0]["x"]
    assert array.shape == (LARGE // 10 + 1, 2)
    assert array[-1].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (b"[3]", "Expecting tensor size: 2 but got: 1"),
        (b'[3,"a"]', 'JSON Value: "a" Type: String is not of expected type: float'),
        (b"[3,4", "JSON Parse error: Missing a comma or ']' after an array element"),
    ],
)
def test_mistakes_in_large_bodies_are_worded_by_the_general_reader(last: bytes, error: str) -> None:
    with pytest.raises(ServingError, match=error.replace("]", r"\]")):
        parse_predict(large(last)).tensors(FLOAT)


def test_little_memory_is_taken_beside_body_and_array() -> None:
    body = b'{"instances":[' + b"[0.123456]," * 1_000_000 + b"[1]]}"
    tracemalloc.start()
    try:
        read = read_segments(body)
        assert read is not None
        converted = read.in_segments(FLOAT)
        assert converted is not None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    array = converted[0]["x"]
    assert peak < array.nbytes + len(body) // 4
