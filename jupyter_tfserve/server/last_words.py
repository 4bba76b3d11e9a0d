"""What a pool's process writes to its standard error: for the log, and for its epitaph."""

from __future__ import annotations

import asyncio
from typing import IO

from traitlets.log import get_logger

_KEPT = 4096
"""How much of the end is remembered, in bytes."""
_SHOWN = 300


class LastWords(asyncio.Protocol):
    """Reads the error stream of a process as it comes.

    TensorFlow is talkative there, so the log shows it at the level DEBUG only; but where a process
    dies, what it said last is mostly the reason.
    """

    def __init__(self) -> None:
        self._tail = bytearray()
        self._line = bytearray()
        self._transport: asyncio.BaseTransport | None = None

    async def listen(self, stream: IO[bytes]) -> None:
        """Take the stream over."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, stream)

    def close(self) -> None:
        """Listen no more."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Asyncio: the process has written something."""
        self._tail += data
        del self._tail[:-_KEPT]
        *lines, rest = (bytes(self._line) + data).split(b"\n")
        self._line = bytearray(rest[-_KEPT:])
        for line in lines:
            get_logger().debug("Model pool: %s", line.decode("utf-8", "replace"))

    def __str__(self) -> str:
        """The last line that says something, shortened."""
        lines = self._tail.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_SHOWN]
