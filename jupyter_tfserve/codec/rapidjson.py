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

from ..errors import invalid_argument
from .json_value import Object, Value
from .rapidjson_numbers import expect, parse_error, read_number, read_numbers

_SKIP = re.compile(rb"[ \t\n\r]*")
# As RapidJSON does, the bytes of the mark are skipped one by one, each only if it is there.
_BYTE_ORDER_MARK = re.compile(rb"\xef?\xbb?\xbf?")
_PLAIN_STRING = re.compile(rb'"([^"\\\x00-\x1f]*)"')
_PLAIN_CHARACTERS = re.compile(rb'[^"\\\x00-\x1f]*')
_HEX4 = re.compile(rb"[0-9A-Fa-f]{4}")
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
            raise parse_error("The document is empty.", at)
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
        if numbers := read_numbers(self._body, at):
            return self._complete(*numbers)
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
                    raise parse_error("Missing a comma or ']' after an array element.", at)
            else:
                container.members.append((self._names.pop(), value))
                if following == 0x2C:
                    return self._read_name(self._skip(at + 1))
                if following != 0x7D:
                    raise parse_error("Missing a comma or '}' after an object member.", at)
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
            raise parse_error("Missing a name for object member.", at)
        name, at = self._read_string(at)
        at = self._skip(at)
        if self._body[at] != 0x3A:
            raise parse_error("Missing a colon after a name of object member.", at)
        self._names.append(name)
        return self._skip(at + 1)

    def _read_scalar(self, at: int) -> tuple[Value, int]:
        first = self._body[at]
        if first == 0x22:
            return self._read_string(at)
        if literal := _LITERALS.get(first):
            word, value = literal
            return value, expect(self._body, word, at)
        return read_number(self._body, at)

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
                raise parse_error("Missing a closing quotation mark in string.", at)
            if first < 0x20:
                raise parse_error("Invalid escape character in string.", at)
            chunk, at = self._read_escape(at)
            chunks.append(chunk)

    def _read_escape(self, start: int) -> tuple[bytes, int]:
        letter = self._body[start + 1]
        if plain := _ESCAPES.get(letter):
            return plain, start + 2
        if letter != ord("u"):
            raise parse_error("Invalid escape character in string.", start)
        code, at = self._read_hex(start + 2, start)
        if 0xD800 <= code <= 0xDBFF:
            if self._body[at : at + 2] != b"\\u":
                raise parse_error("The surrogate pair in string is invalid.", start)
            low, at = self._read_hex(at + 2, start)
            if not 0xDC00 <= low <= 0xDFFF:
                raise parse_error("The surrogate pair in string is invalid.", start)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        # A low surrogate that stands alone is let through, and encoded as if it were a character.
        return chr(code).encode("utf-8", "surrogatepass"), at

    def _read_hex(self, at: int, start: int) -> tuple[int, int]:
        if match := _HEX4.match(self._body, at):
            return int(match[0], 16), match.end()
        raise parse_error("Incorrect hex digit after \\u escape in string.", start)
