"""NaN and infinities in large numeric bodies, for readers that know only JSON.

Each token is replaced by a number that hardly occurs, and where that number then stands in the
array, the token's value goes. It is sound because it is counted: a number as often in the array as
its token was in the text came from the tokens alone. A token with anything attached (``NaN5``,
``--NaN``) becomes another number, so that the counts differ.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Counts: TypeAlias = tuple[tuple[float, float, int], ...]
"""For each token found: the number that stands for it, its value, and how often it was found."""

# The exponent comes last, so that a digit after it makes another number of it.
_STAND_INS = (
    ((b"-NaN", b"NaN"), b"4.8127364591827364e-287", float("nan")),
    ((b"-Infinity", b"-Inf"), b"5.9182736451827364e-287", float("-inf")),
    ((b"Infinity", b"Inf"), b"6.1827364519283746e-287", float("inf")),
)


def substitute(body: bytes | bytearray) -> tuple[bytes, Counts] | None:
    """The body with its tokens replaced, or None where it has none, or they may be text.

    They are not text between the first bracket and the last if no quote is there.
    """
    start, end = body.find(b"["), body.rfind(b"]") + 1
    numbers = bytes(body[start:end])
    if start < 0 or b'"' in numbers or not (b"N" in numbers or b"I" in numbers):
        return None
    counts = []
    for tokens, number, value in _STAND_INS:
        found = 0
        for token in tokens:
            occurrences = numbers.count(token)
            if occurrences:
                found += occurrences
                numbers = numbers.replace(token, number)
        if found:
            counts.append((float(number), value, found))
    return b"".join((body[:start], numbers, body[end:])), tuple(counts)


def restore(array: np.ndarray[Any, Any], counts: Counts) -> np.ndarray[Any, Any] | None:
    """Put the tokens' values into an array of doubles; None where the counts differ."""
    restored = array.copy()
    for number, value, count in counts:
        places = array == number
        if np.count_nonzero(places) != count:
            return None
        restored[places] = value
    return restored
