"""JSON as RapidJSON 1.1.0 reads it: TensorFlow Serving's grammar, values and error texts.

This is the general reader, right for every body and the only one that words errors; the fast
readers (:mod:`.fast_json`) hand over to it whatever they cannot prove to mean the same. It differs
from Python's ``json`` in what it keeps (repeated names, bytes that are no UTF-8, the difference of
``1`` and ``1.0``) and in what it takes (``Inf``, a byte order mark, anything after the first
value). It is no recursion, so that the depth of a body is bounded by memory alone.

One deviation: numbers are rounded correctly, and subnormal ones kept.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final, NoReturn, TypeAlias, Union

from ..errors import invalid_argument


class Missing(Enum):
    """The type of :data:`MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Object:
    """A JSON object: its members in order, repeated names kept."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[bytes, Value]]) -> None:
        self.members = members

    def find(self, name: bytes) -> Value | Missing:
        """The value of the first member of that name."""
        for key, value in self.members:
            if key == name:
                return value
        return MISSING


Value: TypeAlias = Union[bool, int, float, bytes, "list[Value]", Object, None]

_SKIP = re.compile(rb"[ \t\n\r]*")
# As RapidJSON does, the bytes of the mark are skipped one by one, each only if it is there.
_BYTE_ORDER_MARK = re.compile(rb"\xef?\xbb?\xbf?")
_PLAIN_STRING = re.compile(rb'"([^"\\\x00-\x1f]*)"')
_PLAIN_CHARACTERS = re.compile(rb'[^"\\\x00-\x1f]*')
_HEX4 = re.compile(rb"[0-9A-Fa-f]{4}")
_NUMBER = re.compile(
    rb"(-?(?:0|[1-9][0-9]*))(\.(?P<fraction>[0-9]*))?"
    rb"([eE][+-]?(?P<exponent>[0-9]*))?"
)
_NUMBERS = re.compile(
    rb"\[(?:[ \t\n\r]*+NUMBER[ \t\n\r]*+,)*+[ \t\n\r]*+NUMBER[ \t\n\r]*+\]".replace(
        b"NUMBER",
        rb"-?(?:(?:0|[1-9][0-9]{0,17}+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]{1,2}+)?+"
        rb"|NaN|Inf(?:inity)?+)",
    )
)
_NOT_INTEGER = re.compile(rb"[.eENI]")
_ESCAPES = {
    ord('"'): b'"',
    ord("\\"): b"\\",
    ord("/"): b"/",
    ord("b"): b"\b",
    ord("f"): b"\f",
    ord("n"): b"\n",
    ord("r"): b"\r",
    ord("t"): b"\t",
}
_LITERALS: dict[int, tuple[bytes, bool | None]] = {
    ord("n"): (b"null", None),
    ord("t"): (b"true", True),
    ord("f"): (b"false", False),
}


def parse(body: bytes) -> Value:
    """Read the first value of a body; what follows it is ignored.

    Raises:
        ServingError: INVALID_ARGUMENT ``JSON Parse error: <reason> at offset: <byte offset>``.
    """
    if not body:
        raise invalid_argument("JSON Parse error: The document is empty")
    with collector_paused():
        return _Reader(body).document()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cyclic garbage collector off while a great many containers are made.

    Its passes over a growing tree of lists cost more than the tree.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _fail(reason: str, offset: int) -> NoReturn:
    raise invalid_argument(f"JSON Parse error: {reason} at offset: {offset}")


class _Reader:
    """One pass over a body. A ``_read_*`` method returns what it read and the offset after it."""

    def __init__(self, body: bytes) -> None:
        # The end reads as NUL, so that no test for it is needed; a NUL in the body ends it too.
        self._body = body + b"\0"
        self._opened: list[list[Value] | Object] = []
        self._names: list[bytes] = []
        self._root: Value = None

    def document(self) -> Value:
        body = self._body
        start = _BYTE_ORDER_MARK.match(body)
        at = self._skip(start.end() if start else 0)
        if body[at] == 0:
            _fail("The document is empty.", at)
        while at >= 0:
            first = body[at]
            if first == 0x5B:
                at = self._open_array(at)
            elif first == 0x7B:
                at = self._open_object(at)
            else:
                value, at = self._read_scalar(at)
                at = self._complete(value, at)
        return self._root

    def _open_array(self, at: int) -> int:
        """Start an array; returns the offset of its first value, or goes on after it."""
        if numbers := _NUMBERS.match(self._body, at):
            return self._complete(_numbers(numbers[0]), numbers.end())
        array: list[Value] = []
        at = self._skip(at + 1)
        if self._body[at] == 0x5D:
            return self._complete(array, at + 1)
        self._opened.append(array)
        return at

    def _open_object(self, at: int) -> int:
        value = Object([])
        at = self._skip(at + 1)
        if self._body[at] == 0x7D:
            return self._complete(value, at + 1)
        self._opened.append(value)
        return self._read_name(at)

    def _complete(self, value: Value, at: int) -> int:
        """Hand a value to its container, closing those that end after it.

        Returns the offset of the next value, or -1 after the document.
        """
        while self._opened:
            container = self._opened[-1]
            at = self._skip(at)
            following = self._body[at]
            if isinstance(container, list):
                container.append(value)
                if following == 0x2C:
                    return self._skip(at + 1)
                if following != 0x5D:
                    _fail("Missing a comma or ']' after an array element.", at)
            else:
                container.members.append((self._names.pop(), value))
                if following == 0x2C:
                    return self._read_name(self._skip(at + 1))
                if following != 0x7D:
                    _fail("Missing a comma or '}' after an object member.", at)
            value = self._opened.pop()
            at += 1
        self._root = value
        return -1

    def _skip(self, at: int) -> int:
        match = _SKIP.match(self._body, at)
        return match.end() if match else at

    def _read_name(self, at: int) -> int:
        """Read a member's name and colon; returns the offset of its value."""
        if self._body[at] != 0x22:
            _fail("Missing a name for object member.", at)
        name, at = self._read_string(at)
        at = self._skip(at)
        if self._body[at] != 0x3A:
            _fail("Missing a colon after a name of object member.", at)
        self._names.append(name)
        return self._skip(at + 1)

    def _read_scalar(self, at: int) -> tuple[Value, int]:
        first = self._body[at]
        if first == 0x22:
            return self._read_string(at)
        if literal := _LITERALS.get(first):
            word, value = literal
            return value, self._expect(word, at)
        return self._read_number(at)

    def _expect(self, word: bytes, at: int) -> int:
        """Read a word to its end; an error is reported where it goes wrong."""
        for expected in word:
            if self._body[at] != expected:
                _fail("Invalid value.", at)
            at += 1
        return at

    def _read_string(self, at: int) -> tuple[bytes, int]:
        if match := _PLAIN_STRING.match(self._body, at):
            return match[1], match.end()
        body = self._body
        chunks = []
        at += 1
        while True:
            if run := _PLAIN_CHARACTERS.match(body, at):
                chunks.append(run[0])
                at = run.end()
            first = body[at]
            if first == 0x22:
                return b"".join(chunks), at + 1
            if first == 0:
                _fail("Missing a closing quotation mark in string.", at)
            if first < 0x20:
                _fail("Invalid escape character in string.", at)
            chunk, at = self._read_escape(at)
            chunks.append(chunk)

    def _read_escape(self, start: int) -> tuple[bytes, int]:
        letter = self._body[start + 1]
        if plain := _ESCAPES.get(letter):
            return plain, start + 2
        if letter != ord("u"):
            _fail("Invalid escape character in string.", start)
        code, at = self._read_hex(start + 2, start)
        if 0xD800 <= code <= 0xDBFF:
            if self._body[at : at + 2] != b"\\u":
                _fail("The surrogate pair in string is invalid.", start)
            low, at = self._read_hex(at + 2, start)
            if not 0xDC00 <= low <= 0xDFFF:
                _fail("The surrogate pair in string is invalid.", start)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        # A low surrogate that stands alone is let through, and encoded as if it were a character.
        return chr(code).encode("utf-8", "surrogatepass"), at

    def _read_hex(self, at: int, start: int) -> tuple[int, int]:
        if match := _HEX4.match(self._body, at):
            return int(match[0], 16), match.end()
        _fail("Incorrect hex digit after \\u escape in string.", start)

    def _read_number(self, at: int) -> tuple[int | float, int]:
        match = _NUMBER.match(self._body, at)
        if match is None:
            return self._read_token(at)
        if match["fraction"] == b"":
            _fail("Miss fraction part in number.", match.end("fraction"))
        if match["exponent"] == b"":
            _fail("Miss exponent in number.", match.end())
        if match.end(1) == match.end() and len(match[1]) <= 20:
            integer = int(match[1])
            if -(2**63) <= integer < 2**64:
                return integer, match.end()
        number = float(match[0])
        if _too_big(match, number):
            _fail("Number too big to be stored in double.", at)
        return number, match.end()

    def _read_token(self, at: int) -> tuple[float, int]:
        """Read ``NaN``, ``Inf`` or ``Infinity`` with or without a minus."""
        negative = self._body[at] == 0x2D
        at += negative
        if self._body[at] == ord("N"):
            return float("nan"), self._expect(b"NaN", at)
        at = self._expect(b"Inf", at)
        if self._body[at] == ord("i"):
            at = self._expect(b"inity", at)
        return float("-inf" if negative else "inf"), at


def _numbers(text: bytes) -> list[Value]:
    """The numbers of an array of nothing else; ``text`` is proved well formed and in range."""
    parts = text[1:-1].split(b",")
    if not _NOT_INTEGER.search(text):
        return list(map(int, parts))
    if b"-N" in text:
        parts = text[1:-1].replace(b"-NaN", b"NaN").split(b",")  # the sign of a NaN is dropped
    return [
        float(part) if b"." in part or _NOT_INTEGER.search(part) else int(part) for part in parts
    ]


def _too_big(match: re.Match[bytes], number: float) -> bool:
    """Whether RapidJSON refuses the number: its exponent decides, or its integer part alone.

    So a number whose digits carry it beyond the range is infinite rather than refused.
    """
    whole = match[1].lstrip(b"-")
    fraction = match["fraction"] or b""
    exponent = match[4] or b""
    if number in (float("inf"), float("-inf")) and len(whole) > 308:
        running = float(whole[:308])
        for digit in whole[308:]:
            if running >= 1.7976931348623157e307:
                return True
            running = running * 10 + (digit - 0x30)
    if len(exponent) < 4 or exponent[1] == ord("-"):
        return False
    power = int(exponent[1:].lstrip(b"+0")[:9] or b"0")
    return power > 308 + _digits_counted(whole, fraction)


def _digits_counted(whole: bytes, fraction: bytes) -> int:
    """How many digits of the fraction RapidJSON takes into the significand."""
    if len(whole) > 20 or int(whole) >= 2**64:
        return 0
    significand, significant, counted = int(whole), len(whole) - 1, 0
    for digit in fraction:
        if significand < 2**53:
            significand = significand * 10 + digit - 0x30
        elif significant >= 17:
            break
        significant += significand > 0
        counted += 1
    return counted
