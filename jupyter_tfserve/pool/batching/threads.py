"""The threads that run batches, shared by the queues of all models."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .queues import SignatureQueue
    from .ticket import Piece, Ticket

log = logging.getLogger(__name__)


class BatchThreads:
    """Takes batches from queues, one queue after the other, as soon as they are due.

    All queues are guarded by one lock, which is held for microseconds.
    """

    def __init__(self, count: int, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Start ``count`` threads called ``name``; ``clock`` tells seconds."""
        self._clock = clock
        self._changed = threading.Condition(threading.Lock())
        # The queues in which something waits, in the order of their turns.
        self._waiting: dict[SignatureQueue, None] = {}
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, queue: SignatureQueue, ticket: Ticket) -> None:
        """Put a run into a queue.

        Raises:
            ServingError: as :meth:`.BatchQueue.add`.
        """
        with self._changed:
            ticket.since = self._clock()
            queue.add(ticket, ticket.since)
            self._waiting.setdefault(queue)
            self._changed.notify()

    def withdraw(self, ticket: Ticket) -> bool:
        """Take a run back; False where its batch has begun."""
        with self._changed:
            return ticket.withdraw()

    def close(self, timeout: float = 5.0) -> None:
        """Run what waits without waiting for more, and end; blocks for at most ``timeout`` s."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            queue, pieces, waits = batch
            try:
                queue.execute(pieces, waits)
            except Exception:
                log.exception("A batch failed in an unforeseen way")

    def _next(self) -> tuple[SignatureQueue, Sequence[Piece], Sequence[float]] | None:
        """The batch to run next; waits for one, and returns None at the end."""
        with self._changed:
            while True:
                now = self._clock()
                for queue in list(self._waiting):
                    pieces = queue.take(now, hurry=self._closing)
                    due = queue.due
                    if pieces or due is None:
                        del self._waiting[queue]
                    if pieces:
                        if due is not None:
                            self._waiting[queue] = None  # its next turn comes after the others'
                        if self._waiting:
                            self._changed.notify()  # this thread will not look again for a while
                        return queue, pieces, [now - piece.ticket.since for piece in pieces]
                if self._closing:
                    return None
                self._changed.wait(self._seconds(now))

    def _seconds(self, now: float) -> float | None:
        """How long nothing is due; None where nothing waits."""
        times = [due for queue in self._waiting if (due := queue.due) is not None]
        return max(min(times) - now, 0.0) if times else None
