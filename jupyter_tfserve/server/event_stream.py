"""The event stream of the management API: server-sent events."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tornado import web
from tornado.iostream import StreamClosedError

from .api_handlers import ManagementHandler
from .base_handler import authorized

if TYPE_CHECKING:
    from .event_hub import Event, EventHub
    from .pool_manager import PoolManager
    from .rates import RateWatch

ALIVE_S = 15.0
"""A stream without news says so after this, in seconds."""


class EventsHandler(ManagementHandler):
    """One reader of the stream.

    All that is kept for it is the number of the last event that it was sent. One that is too slow
    for what the hub keeps gets a snapshot, as does one that comes back too late.
    """

    def initialize(  # type: ignore[override]
        self, *, manager: PoolManager, hub: EventHub, rates: RateWatch
    ) -> None:
        """Tornado: what the route table says."""
        super().initialize(manager=manager)
        self._hub = hub
        self._rates = rates
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_connection_close(self) -> None:
        """The reader is gone."""
        super().on_connection_close()
        if not self._gone.done():
            self._gone.set_result(None)

    @web.authenticated
    @authorized("read")
    async def get(self) -> None:
        """Tell what is served, then every change, until the reader or the server goes."""
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")  # nginx would hold events back
        with self._rates.watched():
            try:
                await self._tell()
            except StreamClosedError:
                return
        self.finish(set_content_type="text/event-stream")

    async def _tell(self) -> None:
        seq = self._last_seen()
        while not self._hub.closed and not self._gone.done():
            events = None if seq is None else self._hub.since(seq)
            if events is None:
                events = [self._hub.snapshot()]
            if events:
                seq = events[-1].seq
                self.write("".join(map(self._text, events)))
            elif await self._quiet():
                self.write(": alive\n\n")
            else:
                continue
            await self.flush()  # no faster than the reader takes it

    async def _quiet(self) -> bool:
        """Wait for news; tells whether there was none for long."""
        news = {self._hub.changed(), self._gone}
        done, _ = await asyncio.wait(news, timeout=ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
        return not done

    def _last_seen(self) -> int | None:
        """The last event that a reader who comes back has seen, if it was one of this server."""
        epoch, _, seq = self.request.headers.get("Last-Event-ID", "").partition("-")
        known = epoch == self._hub.epoch and seq.isdecimal() and len(seq) < 20
        return int(seq) if known else None

    def _text(self, event: Event) -> str:
        data = json.dumps({"seq": event.seq, **event.data})
        return f"id: {self._hub.epoch}-{event.seq}\nevent: {event.kind}\ndata: {data}\n\n"
