"""Numbers as RapidJSON 1.1.0 reads them.

An integer literal within 64 bits, signed or unsigned, stays an integer; any other number is a
double, and rounded correctly here. ``NaN``, ``Inf`` and ``Infinity`` are numbers too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import ServingError, invalid_argument

if TYPE_CHECKING:
    from .json_value import Value

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


def parse_error(reason: str, offset: int) -> ServingError:
    """The refusal of a body that is no JSON; ``offset`` counts bytes."""
    return invalid_argument(f"JSON Parse error: {reason} at offset: {offset}")


def expect(body: bytes, word: bytes, at: int) -> int:
    """Read a word to its end; an error is reported where it goes wrong."""
    for expected in word:
        if body[at] != expected:
            raise parse_error("Invalid value.", at)
        at += 1
    return at


def read_number(body: bytes, at: int) -> tuple[int | float, int]:
    """Read one number of a body that ends in NUL; returns the offset after it too.

    Raises:
        ServingError: INVALID_ARGUMENT for what is no number, or too big a one.
    """
    match = _NUMBER.match(body, at)
    if match is None:
        return _read_token(body, at)
    if match["fraction"] == b"":
        raise parse_error("Miss fraction part in number.", match.end("fraction"))
    if match["exponent"] == b"":
        raise parse_error("Miss exponent in number.", match.end())
    if match.end(1) == match.end() and len(match[1]) <= 20:
        integer = int(match[1])
        if -(2**63) <= integer < 2**64:
            return integer, match.end()
    number = float(match[0])
    if _too_big(match, number):
        raise parse_error("Number too big to be stored in double.", at)
    return number, match.end()


def _read_token(body: bytes, at: int) -> tuple[float, int]:
    """Read ``NaN``, ``Inf`` or ``Infinity`` with or without a minus; a NaN has no sign."""
    negative = body[at] == 0x2D
    at += negative
    if body[at] == ord("N"):
        return float("nan"), expect(body, b"NaN", at)
    at = expect(body, b"Inf", at)
    if body[at] == ord("i"):
        at = expect(body, b"inity", at)
    return float("-inf" if negative else "inf"), at


def read_numbers(body: bytes, at: int) -> tuple[list[Value], int] | None:
    """Read at once an array of nothing but common numbers, the usual bulk of a body."""
    match = _NUMBERS.match(body, at)
    if match is None:
        return None
    text = match[0][1:-1]
    if b"-N" in text:
        text = text.replace(b"-NaN", b"NaN")
    parts = text.split(b",")
    if not _NOT_INTEGER.search(text):
        return list(map(int, parts)), match.end()
    return [
        float(part) if b"." in part or _NOT_INTEGER.search(part) else int(part) for part in parts
    ], match.end()


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
