"""The quick readers against the general one: whatever they answer, it answers too, to the bit."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jupyter_tfserve.codec.document_tensors import Format, document_tensors
from jupyter_tfserve.codec.fast_json import has_refused_zero, read_fast, read_tree
from jupyter_tfserve.codec.fast_numbers import read_numbers
from jupyter_tfserve.codec.json_tensor import parse_object, parse_predict, signature_name
from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.servable import TensorInfo

if TYPE_CHECKING:
    from jupyter_tfserve.codec.fast_json import FastBody

Inputs = dict[str, TensorInfo]

INTEGERS = ["0", "-0", "1", "-1", "7", "300", "-300", "2147483647", "2147483648", "-2147483649"]
INTEGERS += ["4294967295", "4294967296", "9007199254740993", "9223372036854775807"]
INTEGERS += ["9223372036854775808", "-9223372036854775808", "18446744073709551615"]
INTEGERS += ["18446744073709551616", "1" * 40, "1" * 310]
FLOATS = ["0.0", "-0.0", "1.0", "0.1", "1e2", "1E+2", "5e-324", "1e-400", "1e39", "-3.5e38"]
FLOATS += ["3.4028235677973366e38", "1.7976931348623157e308", "1e308", "4.8127364591827364e-287"]
TOKENS = ["NaN", "-NaN", "Infinity", "-Infinity", "Inf", "-Inf"]
BROKEN = ["01", "1.", "1e", ".5", "+1", "-", "1e309", "0e309", "0.0E400", "1" * 310 + "e-5", "tru"]
BROKEN += ["NaN5", "5NaN", "--NaN", "Infi", "nan", "0x1", "1_0", "0.000e+0308", "1.79e309"]
TEXTS = ['"a"', '""', '"a:b"', '"[1,2]"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\udc00"', '"\\n\\/"']
TEXTS += ['"NaN"', '"é"', '"\x7f"', '"signature_name"', '"a\\":b"', '"\\u0000"', '"0e400"', '"\\x"']
B64 = [
    '{"b64":"AQID"}',
    '{"b64":"AQ"}',
    '{"b64":"?"}',
    '{"b64" : ""}',
    '{"b64":1}',
    '{"b64":"AQ="}',
]
B64 += ['{"b64":"AQ==","b64":"AQ=="}', '{"b64":"A Q = ."}']
WORDS = ["true", "false", "null", "{}", "[]"]

DTYPES = ["float", "double", "int32", "int16", "int8", "uint8", "int64", "uint32", "uint64"]
DTYPES += ["bool", "string", "half"]

blank = st.sampled_from(["", "", "", " ", "\n", "\t \r"])
number = st.sampled_from(INTEGERS + FLOATS) | st.floats(width=32, allow_nan=False).map(repr)
leaf_kinds = st.sampled_from(
    [
        st.sampled_from(INTEGERS),
        st.sampled_from(FLOATS),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.integers(-(2**33), 2**33).map(str),
        number,
        st.sampled_from(FLOATS + TOKENS),
        st.sampled_from(["true", "false"]),
        st.sampled_from(TEXTS),
        st.sampled_from(TEXTS[:3] + B64),
        st.sampled_from(INTEGERS + FLOATS + TOKENS + BROKEN + TEXTS + B64 + WORDS),
    ]
)


@st.composite
def tensors(draw: st.DrawFn, shape: list[int] | None = None) -> str:
    """The text of a rectangle, which may be spoilt in one place."""
    if shape is None:
        shape = draw(st.lists(st.integers(0, 4), max_size=4))
    leaves = draw(leaf_kinds)
    spoil = draw(st.integers(0, 60))

    def build(level: int) -> str:
        nonlocal spoil
        spoil -= 1
        if spoil == 0:
            return draw(st.sampled_from(["[]", "[1]", "1", "[[1,2]]", "true", "null", '"x"', "{}"]))
        if level == len(shape):
            return draw(leaves)
        gap = draw(blank)
        return f"[{gap}{f'{gap},{gap}'.join(build(level + 1) for _ in range(shape[level]))}{gap}]"

    return build(0)


names = st.sampled_from(["x", "x", "x", "y", "b64", "inputs", "\\u0078", "z"])


@st.composite
def objects(draw: st.DrawFn, inputs: list[str], shapes: dict[str, list[int]]) -> str:
    """An object of named tensors, mostly the right ones."""
    keys = list(inputs)
    if draw(st.integers(0, 9)) == 0:
        keys += [draw(names)]
    if draw(st.integers(0, 9)) == 0:
        keys = keys[1:]
    gap = draw(blank)
    members = [f'"{key}"{gap}:{gap}{draw(tensors(shapes.get(key)))}' for key in keys]
    return "{" + ",".join(members) + "}"


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, Inputs]:
    """A near-valid request and a signature."""
    keys = draw(
        st.sampled_from([["x"], ["x"], ["x"], ["x", "y"], ["b64"], ["x", "b64"], ["x", "y", "z"]])
    )
    inputs = {key: TensorInfo(draw(st.sampled_from(DTYPES)), None) for key in keys}
    shapes = {key: draw(st.lists(st.integers(1, 3), max_size=3)) for key in keys}
    rows = objects(keys, shapes)
    if draw(st.booleans()):
        if draw(st.booleans()):
            value = draw(tensors())
        else:
            value = f"[{','.join(draw(st.lists(rows, min_size=1, max_size=4)))}]"
        form = "instances"
    else:
        value = draw(tensors() | rows)
        form = "inputs"
    gap = draw(blank)
    members = [f'"{form}"{gap}:{gap}{value}']
    extras = [
        '"signature_name":"s"',
        '"signature_name":"t[,"',
        '"signature\\u005fname":"u"',
        '"signature_name":1',
        '"instances":[1]',
        '"inputs":[2]',
        '"other":[1.5]',
        '"other":{"a":1,"a":2}',
        '"other":NaN',
        '"other":0e400',
        '"k":"NaN"',
    ]
    for extra in draw(st.lists(st.sampled_from(extras), max_size=2)):
        members.insert(draw(st.integers(0, len(members))), extra)
    text = gap + "{" + f"{gap},{gap}".join(members) + "}"
    text += draw(st.sampled_from(["", "", "", "", " ", "\n", " junk", "}", "\0"]))
    body = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 30)) == 0:
        at = draw(st.integers(0, len(body)))
        body = (
            body[:at] + draw(st.sampled_from([b"\xff", b'"', b"[", b"]", b",", b"\\"])) + body[at:]
        )
    return body, inputs


def general(body: bytes, inputs: Inputs) -> Any:
    try:
        document = parse_object(body)
        name = signature_name(document)
        return name, *document_tensors(document, inputs)
    except ServingError as error:
        return error.code, error.message


def through_door(body: bytes, inputs: Inputs) -> Any:
    try:
        parsed = parse_predict(body)
        return parsed.signature_name, *parsed.tensors(inputs)
    except ServingError as error:
        return error.code, error.message


def assert_equal(got: Any, expected: Any) -> None:
    if len(expected) == 2:
        assert got == expected
        return
    assert len(got) == 3, got
    assert (got[0], got[2]) == (expected[0], expected[2])
    assert got[1].keys() == expected[1].keys()
    for name, array in got[1].items():
        other = expected[1][name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        if array.dtype == np.object_:
            assert array.tolist() == other.tolist()
        else:
            assert array.tobytes() == other.tobytes()


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
