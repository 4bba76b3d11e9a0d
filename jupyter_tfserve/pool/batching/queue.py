"""One queue of runs that wait to become batches, by TensorFlow Serving's rules.

The rules are those of its shared batch scheduler (``batching_util/shared_batch_scheduler.h``).
Nothing here knows threads or models: whoever owns a queue guards it and tells the time.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ...errors import Code, ServingError, invalid_argument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .parameters import BatchingParameters
    from .ticket import Piece, Ticket


class _Batch:
    __slots__ = ("opened", "pieces", "rows")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.rows = 0
        self.opened = 0.0


class BatchQueue:
    """Batches in the order of their arrival, the last one open for more. Times are in seconds."""

    def __init__(self, parameters: BatchingParameters) -> None:
        self._parameters = parameters
        self._timeout_s = parameters.batch_timeout_micros / 1e6
        self._batches = deque([_Batch()])

    def add(self, ticket: Ticket, now: float) -> None:
        """Put a run into the open batch, or into another one that it opens.

        Raises:
            ServingError: INVALID_ARGUMENT for a run that is too large, UNAVAILABLE where the queue
                is full. Nothing waits then.
        """
        self._check(ticket.rows)
        for piece in self._pieces(ticket):
            batch = self._batches[-1]
            if batch.rows + piece.rows > self._parameters.execution_size:
                batch = _Batch()
                self._batches.append(batch)
            if not batch.pieces:
                batch.opened = now
            batch.pieces.append(piece)
            batch.rows += piece.rows

    def take(self, now: float, *, hurry: bool = False) -> list[Piece]:
        """The next batch if it is time for it, or nothing; withdrawn runs are left out.

        ``hurry`` does not wait for an open batch to fill.
        """
        while self._is_due(now, hurry=hurry):
            batch = self._batches.popleft()
            if not self._batches:
                self._batches.append(_Batch())
            pieces = [piece for piece in batch.pieces if piece.ticket.take()]
            if pieces:
                return pieces
        return []

    @property
    def due(self) -> float | None:
        """When the next batch may be taken; None where nothing waits."""
        if len(self._batches) > 1:
            return self._batches[0].opened
        batch = self._batches[0]
        if not batch.pieces:
            return None
        full = batch.rows >= self._parameters.execution_size
        return batch.opened + (0.0 if full else self._timeout_s)

    def _is_due(self, now: float, *, hurry: bool) -> bool:
        due = self.due
        return due is not None and (hurry or now >= due)

    def _check(self, rows: int) -> None:
        parameters, waiting = self._parameters, len(self._batches)
        if rows > parameters.max_batch_size:
            raise invalid_argument(
                f"Task size {rows} is larger than maximum input batch size "
                f"{parameters.max_batch_size}"
            )
        full = "The batch scheduling queue to which this task was submitted is full; "
        size, most, length = self._batches[-1].rows, parameters.execution_size, self._length
        if parameters.enable_large_batch_splitting:
            capacity = (length - waiting) * most + most - size
            if rows > capacity:
                raise ServingError(
                    Code.UNAVAILABLE,
                    f"{full}task size is {rows} but scheduling capacity is only {capacity} "
                    f"(num_enqueued_batches={waiting}, max_enqueued_batches={length}, "
                    f"open_batch_size={size}, max_execution_batch_size={most})",
                )
        elif size + rows > most and waiting >= length:
            raise ServingError(
                Code.UNAVAILABLE,
                f"{full}currently {waiting} batches enqueued and max_enqueued_batches is {length}",
            )

    @property
    def _length(self) -> int:
        return self._parameters.queue_length

    def _pieces(self, ticket: Ticket) -> Iterator[Piece]:
        """The run as a whole, or cut to fill the open batch and then others."""
        sizes = [ticket.rows]
        if self._parameters.enable_large_batch_splitting:
            most, left = self._parameters.execution_size, ticket.rows
            room = most - self._batches[-1].rows
            sizes = []
            while left:
                sizes.append(min(room or most, left))
                left -= sizes[-1]
                room = most
        yield from ticket.split(sizes)
