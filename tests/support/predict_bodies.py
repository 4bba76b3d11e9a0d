"""Predict requests made up by hypothesis, and what the general reader says to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from jupyter_tfserve.codec.document_tensors import document_tensors
from jupyter_tfserve.codec.json_tensor import parse_object, parse_predict, signature_name
from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.servable import TensorInfo

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
