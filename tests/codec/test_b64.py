"""Base64 by absl's rules: lenient in white space and padding, strict in the alphabet."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.codec import b64


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b"", b""),
        (b"aGVsbG8=", b"hello"),
        (b"aGVsbG8", b"hello"),
        (b"aGVsbG8.", b"hello"),
        (b"aGk=", b"hi"),
        (b"aQ==", b"i"),
        (b"aQ=.", b"i"),
        (b"aQ = =", b"i"),
        (b" a\tQ\n=\v=\f\r", b"i"),
        (b"aR==", b"i"),  # leftover bits
        (b"+/8=", b"\xfb\xff"),
        ("+/8=", b"\xfb\xff"),
    ],
)
def test_accepted(text: bytes | str, data: bytes) -> None:
    assert b64.decode(text) == data


@pytest.mark.parametrize(
    "text",
    [
        *(b"_-8=", b"a", b"aGVsb", b"aQ=", b"aQ===", b"aGVsbG8==", b"aGVs=", b"=", b"a=Q="),
        *(b"aQ==aQ==", b"aQ==x", b"!", b"aGVs\x00", "é", "aé==", "\N{CYRILLIC SMALL LETTER A}Q=="),
    ],
)
def test_refused(text: bytes | str) -> None:
    with pytest.raises(ValueError, match="not base64"):
        b64.decode(text)


@given(st.binary(max_size=200))
def test_round_trip(data: bytes) -> None:
    assert b64.encode(data) == base64.b64encode(data)
    assert b64.decode(b64.encode(data)) == data
    assert b64.decode(b64.encode(data).rstrip(b"=")) == data


def absl(text: bytes) -> bytes | None:
    """The rule, written down once more and slowly."""
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text = bytes(byte for byte in text if byte not in b" \t\n\v\f\r")
    end = min((at for at, byte in enumerate(text) if byte in b"=."), default=len(text))
    digits, padding = text[:end], text[end:]
    if any(byte not in b"=." for byte in padding) or any(d not in alphabet for d in digits):
        return None
    missing = -len(digits) % 4
    if missing == 3 or (padding and len(padding) != missing):
        return None
    bits = "".join(f"{alphabet.index(digit):06b}" for digit in digits)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) // 8 * 8, 8))


@given(st.text("aB9+/==.. \n-", max_size=14).map(str.encode))
def test_any_text_is_read_as_the_rule_says(text: bytes) -> None:
    try:
        data = b64.decode(text)
    except ValueError:
        data = None
    assert data == absl(text)
