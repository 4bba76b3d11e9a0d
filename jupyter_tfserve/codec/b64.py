"""Base64 as TensorFlow Serving reads and writes it (``absl::Base64Unescape``)."""

from __future__ import annotations

import binascii
import re

import pybase64

# Padding is absent or complete, and either character serves; leftover bits need not be zero.
_LENIENT = re.compile(
    rb"(?:[A-Za-z0-9+/]{4})*+(?:(?P<two>[A-Za-z0-9+/]{2})(?:[=.]{2})?|"
    rb"(?P<three>[A-Za-z0-9+/]{3})[=.]?)?"
)
_SPACE = b" \t\n\v\f\r"


def decode(text: bytes | str) -> bytes:
    """Decode the standard alphabet; white space is skipped and padding may be left out.

    Raises:
        ValueError: the text is no such base64.
    """
    try:
        return pybase64.b64decode(text, validate=True)
    except ValueError:
        pass
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    match = _LENIENT.fullmatch(raw.translate(None, _SPACE))
    if match is None:
        raise ValueError("not base64")
    padding = b"==" if match["two"] else b"=" if match["three"] else b""
    return binascii.a2b_base64(match[0].rstrip(b"=.") + padding)


def encode(data: bytes) -> bytes:
    """Encode in the standard alphabet, with padding."""
    return pybase64.b64encode(data)
