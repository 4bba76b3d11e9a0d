"""The general reader: RapidJSON's grammar, values, error texts and offsets."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.codec.json_value import MISSING, Object, Value
from jupyter_tfserve.codec.rapidjson import parse
from jupyter_tfserve.errors import Code, ServingError


def plain(value: Value) -> Any:
    """A value as Python's json has it; the last of repeated names stays."""
    if isinstance(value, Object):
        return {name.decode(): plain(member) for name, member in value.members}
    if isinstance(value, list):
        return list(map(plain, value))
    return value.decode() if isinstance(value, bytes) else value


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
)


@given(documents, st.sampled_from([None, 1]), st.booleans())
def test_standard_json_reads_as_elsewhere(document: Any, indent: int | None, ascii_: bool) -> None:
    try:
        text = json.dumps(document, indent=indent, ensure_ascii=ascii_).encode()
    except UnicodeEncodeError:
        return
    got = plain(parse(text))
    assert got == document
    assert json.dumps(got) == json.dumps(document)


@pytest.mark.parametrize(
    ("body", "reason", "offset"),
    [
        (b"  ", "The document is empty.", 2),
        (b"\0", "The document is empty.", 0),
        (b"x", "Invalid value.", 0),
        (b"[1,]", "Invalid value.", 3),
        (b"[,1]", "Invalid value.", 1),
        (b"[", "Invalid value.", 1),
        (b"[+1]", "Invalid value.", 1),
        (b"[.5]", "Invalid value.", 1),
        (b"[-]", "Invalid value.", 2),
        (b"[-x]", "Invalid value.", 2),
        (b"[tru]", "Invalid value.", 4),
        (b"[nUll]", "Invalid value.", 2),
        (b"[nan]", "Invalid value.", 2),
        (b'{"a":}', "Invalid value.", 5),
        (b"{", "Missing a name for object member.", 1),
        (b"{a:1}", "Missing a name for object member.", 1),
        (b'{"a":1,}', "Missing a name for object member.", 7),
        (b'{"a" 1}', "Missing a colon after a name of object member.", 5),
        (b'{"a":1', "Missing a comma or '}' after an object member.", 6),
        (b'{"a":1]', "Missing a comma or '}' after an object member.", 6),
        (b"[1", "Missing a comma or ']' after an array element.", 2),
        (b"[1\0]", "Missing a comma or ']' after an array element.", 2),
        (b"[01]", "Missing a comma or ']' after an array element.", 2),
        (b"[1_0]", "Missing a comma or ']' after an array element.", 2),
        (b"[[1, 2, 3] 4]", "Missing a comma or ']' after an array element.", 11),
        (b"[1.]", "Miss fraction part in number.", 3),
        (b"[1.e5]", "Miss fraction part in number.", 3),
        (b"[1e]", "Miss exponent in number.", 3),
        (b"[1e+]", "Miss exponent in number.", 4),
        (b"[ 1e309]", "Number too big to be stored in double.", 2),
        (b"[-1e400]", "Number too big to be stored in double.", 1),
        (b"[0e309]", "Number too big to be stored in double.", 1),
        (b"[1" + b"0" * 309 + b"]", "Number too big to be stored in double.", 1),
        (b'["a', "Missing a closing quotation mark in string.", 3),
        (b'["a\0b"]', "Missing a closing quotation mark in string.", 3),
        (b'["a\nb"]', "Invalid escape character in string.", 3),
        (b'["a\\x"]', "Invalid escape character in string.", 3),
        (b'["a\\', "Invalid escape character in string.", 3),
        (b'["\\u12g4"]', "Incorrect hex digit after \\u escape in string.", 2),
        (b'["\\u12"]', "Incorrect hex digit after \\u escape in string.", 2),
        (b'["\\ud800\\u12"]', "Incorrect hex digit after \\u escape in string.", 2),
        (b'["\\ud800"]', "The surrogate pair in string is invalid.", 2),
        (b'["\\ud800\\ud800"]', "The surrogate pair in string is invalid.", 2),
    ],
)
def test_errors_name_the_byte_where_they_are(body: bytes, reason: str, offset: int) -> None:
    with pytest.raises(ServingError) as caught:
        parse(body)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert caught.value.message == f"JSON Parse error: {reason} at offset: {offset}"


def test_an_empty_body_has_a_text_of_its_own() -> None:
    with pytest.raises(ServingError) as caught:
        parse(b"")
    assert caught.value.message == "JSON Parse error: The document is empty"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"-0", 0),
        (b"9223372036854775808", 2**63),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", 2.0**64),
        (b"-9223372036854775808", -(2**63)),
        (b"-9223372036854775809", -(2.0**63)),
        (b"1e2", 100.0),
        (b"3.0", 3.0),
        (b"1e-400", 0.0),
        (b"1.7976931348623157e309", math.inf),
        (b"1" + b"0" * 308, 1e308),
        (b"0.1e309", 1e308),
        (b"Inf", math.inf),
        (b"-Infinity", -math.inf),
    ],
)
def test_numbers_keep_their_class(text: bytes, value: float) -> None:
    alone = parse(text)
    assert (type(alone), alone) == (type(value), value)
    # Arrays of nothing but numbers are read at once: the answer is the same.
    for array in (b"[%b]" % text, b"[ 1,%b ,2.5]" % text, b'[%b,""]' % text):
        items = parse(array)
        assert isinstance(items, list)
        assert (type(value), value) in [(type(item), item) for item in items]


def test_signs_of_zero_and_nan() -> None:
    values = parse(b"[-0.0, NaN, -NaN]")
    assert isinstance(values, list)
    for value in (*values[1:], parse(b"NaN"), parse(b"-NaN")):
        assert isinstance(value, float)
        assert math.isnan(value)
        assert math.copysign(1, value) == 1.0
    assert isinstance(values[0], float)
    assert math.copysign(1, values[0]) == -1.0


def test_what_follows_the_first_value_is_ignored() -> None:
    assert parse(b"[1] junk") == [1]
    assert parse(b"[1]\0") == [1]


def test_a_byte_order_mark_is_skipped_and_counted() -> None:
    assert parse(b"\xef\xbb\xbf [1]") == [1]
    with pytest.raises(ServingError, match=r"at offset: 4$"):
        parse(b"\xef\xbb\xbf[")


def test_repeated_names_are_kept_and_the_first_is_found() -> None:
    document = parse(b'{"a":1,"b":2,"a":3}')
    assert isinstance(document, Object)
    assert document.members == [(b"a", 1), (b"b", 2), (b"a", 3)]
    assert document.find(b"a") == 1
    assert document.find(b"c") is MISSING


def test_string_bytes_are_kept() -> None:
    assert parse(b'"\xff\x7f\\u0000\\/\\u00e9\\ud83d\\ude00"') == (
        b"\xff\x7f\0/\xc3\xa9\xf0\x9f\x98\x80"
    )
    assert parse(b'"\\udc00"') == b"\xed\xb0\x80"  # a low surrogate alone passes


@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[1,{"a":', b"}]")]
)
def test_depth_is_bounded_by_memory_alone(opening: bytes, closing: bytes) -> None:
    depth = 100_000
    parse(opening * depth + b"1" + closing * depth)
    with pytest.raises(ServingError, match=f"at offset: {len(opening) * depth}$"):
        parse(opening * depth + b"}")
