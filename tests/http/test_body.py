"""The buffer of a request body, while it grows."""

from __future__ import annotations

import pytest

from jupyter_tfserve.http.body import BodyBuffer
from jupyter_tfserve.http.limits import MIB

PIECE = bytes(range(251)) * 4000


@pytest.mark.parametrize("length", [10, MIB, 8 * MIB, 8 * MIB + 1, 20 * MIB, 33 * MIB, 40 * MIB])
def test_holds_what_was_received_and_little_more_before(length: int) -> None:
    whole = (PIECE * (length // len(PIECE) + 1))[:length]
    start = whole[: min(length // 2, 1000)]
    buffer = BodyBuffer(length, start)
    filled = len(start)
    complete = False
    while not complete:
        free = buffer.free()
        assert 0 < len(free) <= max(MIB, 4 * filled)
        count = min(len(free), len(PIECE))
        free[:count] = whole[filled : filled + count]
        filled += count
        complete = buffer.received(count)
    body = buffer.take()
    assert body == whole
    body.clear()  # nothing else holds on to it
