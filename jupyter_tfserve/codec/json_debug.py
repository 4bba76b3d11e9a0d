"""How TensorFlow Serving shows a JSON value in its error texts.

It is RapidJSON's pretty writer (4 spaces, arrays on one line) on a buffer that takes no new token
once 256 bytes are written, so the text may break off anywhere between tokens.
"""

from __future__ import annotations

import math

from ..errors import json_string
from .json_value import Object, Value

_LIMIT = 256


def shown(value: Value) -> str:
    """The text of a value in an error; bytes that are no UTF-8 are surrogate escapes."""
    return text_of(debug(value))


def text_of(data: bytes) -> str:
    """Bytes of a payload as they stand in an error text."""
    return data.decode("utf-8", "surrogateescape")


def debug(value: Value) -> bytes:
    """Render a value; NaN and infinities cannot be, and break the text off where they stand."""
    out = bytearray()
    _write(out, value, b"", 0)
    return bytes(out)


def quote(data: bytes) -> bytes:
    """A JSON string of these very bytes: only quotes, backslashes and controls are escaped."""
    return json_string(text_of(data)).encode("utf-8", "surrogateescape")


def _write(out: bytearray, value: Value, prefix: bytes, depth: int) -> bool:
    """Write one value; False where the text breaks off.

    Each level writes a byte, so the limit bounds the recursion too.
    """
    if len(out) >= _LIMIT:
        return False
    out += prefix
    if isinstance(value, list):
        return _write_array(out, value, depth + 1)
    if isinstance(value, Object):
        return _write_object(out, value, depth + 1)
    if value is None:
        out += b"null"
    elif isinstance(value, bool):
        out += b"true" if value else b"false"
    elif isinstance(value, int):
        out += b"%d" % value
    elif isinstance(value, bytes):
        out += quote(value)
    elif math.isfinite(value):
        out += _double(value).encode()
    else:
        return False
    return True


def _write_array(out: bytearray, array: list[Value], depth: int) -> bool:
    out += b"["
    prefix = b""
    for item in array:
        if not _write(out, item, prefix, depth):
            return False
        prefix = b", "
    return _close(out, b"]")


def _write_object(out: bytearray, value: Object, depth: int) -> bool:
    out += b"{"
    indent = b"\n" + b"    " * depth
    prefix = indent
    for name, member in value.members:
        if not (_write(out, name, prefix, depth) and _write(out, member, b": ", depth)):
            return False
        prefix = b"," + indent
    return _close(out, indent[:-4] + b"}" if value.members else b"}")


def _close(out: bytearray, bracket: bytes) -> bool:
    if len(out) >= _LIMIT:
        return False
    out += bracket
    return True


def _double(number: float) -> str:
    """The shortest digits that read back, plain up to 21 integer digits, with ``.0`` if whole."""
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    mantissa, _, power = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    scale = int(power or 0) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    scale += len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    point = len(digits) + scale
    if scale >= 0 and point <= 21:
        text = f"{digits}{'0' * scale}.0"
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        text = f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1}"
    return f"-{text}" if number < 0 else text
