"""Heads of answers: status line and header fields, mostly from a cache."""

from __future__ import annotations

import re
from email.utils import formatdate
from typing import TYPE_CHECKING

from .pages import reason

if TYPE_CHECKING:
    from .message import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_BREAK = re.compile(r"[\r\n\0]")


def encode_headers(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Header lines of an application.

    Raises:
        ValueError: One holds a line break or a character beyond Latin-1.
    """
    for name, value in headers:
        if _BREAK.search(name) or _BREAK.search(value):
            raise ValueError(f"A header must not break its line: {name!r}: {value!r}")
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")


class Heads:
    """Makes heads; the date in them is that of the last :meth:`tick`."""

    __slots__ = ("_date", "_prefixes")

    def __init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        """Read the clock; call about once a second."""
        self._date = formatdate(usegmt=True)
        self._prefixes: dict[tuple[int, str | None], bytes] = {}

    def encode(self, response: Response, length: int, connection: bytes) -> bytes:
        """The head of ``response`` with a body of ``length`` bytes.

        ``connection`` is the value of that header, empty for none.
        """
        key = (response.status, response.content_type)
        prefix = self._prefixes.get(key)
        if prefix is None:
            prefix = self._prefixes[key] = self._prefix(*key)
        if response.headers:
            prefix += encode_headers(response.headers)
        if connection:
            return b"%bContent-Length: %d\r\nConnection: %b\r\n\r\n" % (prefix, length, connection)
        return b"%bContent-Length: %d\r\n\r\n" % (prefix, length)

    def _prefix(self, status: int, content_type: str | None) -> bytes:
        lines = [f"HTTP/1.1 {status} {reason(status)}", f"Date: {self._date}"]
        if content_type is not None:
            lines.append(f"Content-Type: {content_type}")
        return ("\r\n".join(lines) + "\r\n").encode("latin-1")
