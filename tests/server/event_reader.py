"""A reader of the event stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from jupyter_door import AUTH, Server, write_request

EVENTS = "/tfserve/api/events"


@dataclass
class Event:
    id: str
    kind: str
    data: Any


class Reader:
    """One reader of the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.headers: dict[str, str] = {}
        self._text = ""

    async def begin(self) -> int:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        for line in head[1:-2]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        return int(head[0].split()[1])

    async def block(self) -> str | None:
        """The next lines up to an empty one; None at the end of the stream."""
        async with asyncio.timeout(20):
            while "\n\n" not in self._text:
                size = int(await self._reader.readline(), 16)
                if size == 0:
                    return None
                self._text += (await self._reader.readexactly(size)).decode()
                await self._reader.readexactly(2)
        block, _, self._text = self._text.partition("\n\n")
        return block

    async def event(self, *kinds: str) -> Event:
        """The next event, or the next of these kinds."""
        while block := await self.block():
            if not block.startswith(":"):
                fields = dict(line.split(": ", 1) for line in block.splitlines())
                event = Event(fields["id"], fields["event"], json.loads(fields["data"]))
                assert event.id.endswith(f"-{event.data['seq']}")
                if not kinds or event.kind in kinds:
                    return event
        raise EOFError


@asynccontextmanager
async def reading(server: Server, headers: Mapping[str, str] = AUTH) -> AsyncIterator[Reader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        await write_request(writer, server.port, "GET", EVENTS, None, headers)
        stream = Reader(reader, writer)
        assert await stream.begin() == 200
        yield stream
    finally:
        writer.close()
