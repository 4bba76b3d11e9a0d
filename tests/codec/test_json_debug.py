"""Values in error texts: RapidJSON's pretty writer, broken off after 256 bytes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.codec.json_debug import debug
from jupyter_tfserve.codec.rapidjson import parse


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{}", "{}"),
        (b"[ ]", "[]"),
        (b"[1,-2, true,false,null]", "[1, -2, true, false, null]"),
        (b'{"a":[1,{"b":[]}],"c":{}}', '{\n    "a": [1, {\n            "b": []\n        }],\n'
         '    "c": {}\n}'),
        (b'"a\\"\\\\\\/\\n\\u0001\\u007f\xff"', '"a\\"\\\\/\\n\\u0001\x7f\udcff"'),
        (b"[1.50,100.0,1e-7,1e21,123456789.125]", "[1.5, 100.0, 1e-7, 1e21, 123456789.125]"),
        (b"[1e20,-1.5e-7,1.5e30,0.000001,-0.0]",
         "[100000000000000000000.0, -1.5e-7, 1.5e30, 0.000001, -0.0]"),
        (b"[12.34,5e-324,1.7976931348623157e308]", "[12.34, 5e-324, 1.7976931348623157e308]"),
    ],
)  # fmt: skip
def test_layout(body: bytes, text: str) -> None:
    assert debug(parse(body)) == text.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("body", "text"),
    [(b"NaN", b""), (b"[1,NaN,2]", b"[1, "), (b'{"a":-Inf,"b":1}', b'{\n    "a": ')],
)
def test_what_has_no_json_ends_the_text(body: bytes, text: bytes) -> None:
    assert debug(parse(body)) == text


def test_no_token_starts_after_256_bytes() -> None:
    text = debug(list(range(200)))
    assert text.startswith(b"[0, 1, 2")
    assert not text.endswith(b"]")
    assert len(text.rpartition(b", ")[0]) < 256 <= len(text)
    # A token that starts in time is written whole, however long.
    assert debug([b"x" * 1000, 1]) == b'["' + b"x" * 1000 + b'"'


def test_any_depth_can_be_shown() -> None:
    body = b"[" * 5000 + b"]" * 5000
    assert debug(parse(body)) == b"[" * 256


@given(
    st.recursive(
        st.integers(-(2**63), 2**64 - 1)
        | st.booleans()
        | st.none()
        | st.text('aé\n"\\', max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2)
        ),
        max_leaves=4,
    )
)
def test_short_texts_read_back(document: Any) -> None:
    text = debug(parse(json.dumps(document, ensure_ascii=False).encode()))
    if len(text) < 256:
        assert json.loads(text) == document


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back_and_never_look_like_integers(number: float) -> None:
    text = debug(number).decode()
    assert float(text) == number
    assert math.copysign(1, float(text)) == math.copysign(1, number)
    assert "." in text or "e" in text
