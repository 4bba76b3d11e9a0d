"""Heads that were parsed before: clients repeat themselves, byte for byte."""

from __future__ import annotations

from typing import NamedTuple

from .limits import KIB
from .message import Request

_MAX_HEADS = 1024
_MAX_SIZE = 2 * KIB


class Known(NamedTuple):
    """What a head says: the request without its body, and the body's length."""

    request: Request
    length: int


class HeadMemory:
    """What the heads seen lately mean; parsing one again would only tell the same.

    Shared by the connections of a server. When it is full it forgets everything, which costs less
    than to keep order.
    """

    __slots__ = ("_heads", "recall")

    def __init__(self) -> None:
        self._heads: dict[bytes, Known] = {}
        self.recall = self._heads.get

    def remember(self, head: bytes, request: Request, length: int) -> None:
        """Keep what ``head``, from the first byte to the empty line, was parsed to."""
        if len(head) <= _MAX_SIZE:
            if len(self._heads) >= _MAX_HEADS:
                self._heads.clear()
            blank = Request(
                request.method, request.target, request.headers, http_version=request.http_version
            )
            self._heads[head] = Known(blank, length)
