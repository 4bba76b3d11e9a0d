"""One caller's run in a queue, from its arrival to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    from ..model_run import ModelRun
    from .tensors import Array, Arrays

Done = Callable[[Exception | None], None]
"""Told in some thread what a run failed with, or None where it has its outputs."""

_lock = threading.Lock()
"""Guards what little is shared by the batches of a split run."""


class Ticket:
    """A run that waits. Ends once: with outputs, with an error, or withdrawn.

    Attributes:
        run: Of the caller, with the inputs.
        kind: What runs have in common that may share a batch.
        rows: The size of the inputs' first dimension.
        since: When it came, in seconds of the queue's clock.
    """

    __slots__ = (
        "_done",
        "_ended",
        "_missing",
        "_parts",
        "_seconds",
        "_taken",
        "kind",
        "rows",
        "run",
        "since",
    )

    def __init__(self, run: ModelRun, kind: Hashable, done: Done) -> None:
        self.run = run
        self.kind = kind
        self.rows = run.rows
        self.since = 0.0
        self._done = done
        self._taken = False
        self._ended = False
        self._parts: list[Arrays] = []
        self._missing = 0
        self._seconds = 0.0

    # Guarded by the owner of the queue

    def split(self, sizes: Sequence[int]) -> list[Piece]:
        """Cut the run into pieces of so many rows, which are run apart and joined again."""
        self._parts = [{}] * len(sizes)
        self._missing = len(sizes)
        return [
            Piece(self, index, end - size, size)
            for index, (size, end) in enumerate(zip(sizes, accumulate(sizes), strict=True))
        ]

    def take(self) -> bool:
        """A batch with it is about to run; False where it was withdrawn before."""
        if self._ended and not self._taken:
            return False
        self._taken = True
        return True

    def withdraw(self) -> bool:
        """Take it back, so that it is never told an end; False where a batch has begun."""
        if self._taken:
            return False
        self._ended = True
        return True

    # In the threads of batches

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do for it."""
        return self._ended

    def deliver(self, index: int, outputs: Arrays, seconds: float) -> None:
        """Take what came out of one piece, run in so many seconds; ends the run with the last."""
        if len(self._parts) == 1:
            parts = [outputs]
        else:
            with _lock:
                self._parts[index] = outputs
                self._missing -= 1
                self._seconds = seconds = self._seconds + seconds
                if self._missing:
                    return
            parts = self._parts
        try:
            joined = _joined(parts)
        except ValueError:  # padded with different companies, they have become different
            self.run_apart()
            return
        if self._end():
            self.run.finish(joined, seconds)
            self._done(None)

    def fail(self, error: Exception) -> None:
        """End with an error."""
        if self._end():
            self._done(error)

    def run_apart(self) -> None:
        """Run the whole by itself, as if it had never been in a queue."""
        if not self._end():
            return
        error: Exception | None = None
        try:
            self.run.run_and_look()
        except Exception as failure:  # noqa: BLE001 - the caller is told
            error = failure
        self._done(error)

    def _end(self) -> bool:
        """Whether it was for the caller of this to end it."""
        with _lock:
            first, self._ended = not self._ended, True
        return first


@dataclass(frozen=True, slots=True)
class Piece:
    """So many rows of a run, from ``start`` on; the ``index``-th of its pieces."""

    ticket: Ticket
    index: int
    start: int
    rows: int

    @property
    def inputs(self) -> Arrays:
        """Its rows of the inputs."""
        inputs = cast("Mapping[str, Array]", self.ticket.run.inputs)
        if self.rows == self.ticket.rows:
            return inputs
        return {name: array[self.start : self.start + self.rows] for name, array in inputs.items()}


def _joined(parts: Sequence[Arrays]) -> Arrays:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
