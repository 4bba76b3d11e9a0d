"""The queues of one version, and how their batches are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from .queue import BatchQueue
from .records import BatchRecord
from .tensors import cut, even_out, join
from .ticket import Done, Ticket
from .version import Mode

if TYPE_CHECKING:
    from ..model_run import ModelRun
    from ..servables.base import Servable
    from .parameters import BatchingParameters
    from .tensors import Arrays
    from .threads import BatchThreads
    from .ticket import Piece
    from .version import Aliases

_MAX_PADDED_RANK = 6
"""TensorFlow Serving pads tensors of ranks 1 to 6."""


class VersionQueues:
    """One queue for each signature and set of outputs, made when they are first asked for.

    Where TensorFlow Serving fails a whole batch for rows of different shapes, or for one caller's
    bad row, here such runs are run apart: one caller never fails another.
    """

    def __init__(
        self,
        servable: Servable,
        parameters: BatchingParameters,
        threads: BatchThreads,
    ) -> None:
        self._servable = servable
        self._parameters = parameters
        self._threads = threads
        self._queues: dict[tuple[str, Aliases], SignatureQueue] = {}

    def submit(self, run: ModelRun, key: Hashable, done: Done) -> Callable[[], bool]:
        """Let a run wait for company; ``key`` is the run's own.

        ``done`` is called in a batch thread, unless the run is withdrawn before.

        Returns:
            A function that withdraws it, and returns False where its batch has begun.

        Raises:
            ServingError: where the run is too large or the queue is full; ``done`` is not called.
        """
        which = run.signature.key, run.aliases
        queue = self._queues.get(which)
        if queue is None:  # two threads may be here: the first to set wins
            queue = self._queues.setdefault(which, self._new_queue(*which))
        ticket = Ticket(run, self._kind(run, key), done)
        self._threads.submit(queue, ticket)
        return partial(self._threads.withdraw, ticket)

    def _new_queue(self, signature: str, aliases: Aliases) -> SignatureQueue:
        return SignatureQueue(self._servable, signature, aliases, self._parameters)

    def _kind(self, run: ModelRun, key: Hashable) -> Hashable:
        if not self._parameters.pad_variable_length_inputs:
            return key
        ranks = tuple((len(tensor.shape), tensor.dtype.num) for tensor in run.inputs.values())
        return ranks if max(ranks)[0] <= _MAX_PADDED_RANK else key


class SignatureQueue(BatchQueue):
    """Runs of one signature for the same outputs."""

    def __init__(
        self,
        servable: Servable,
        signature: str,
        aliases: Aliases,
        parameters: BatchingParameters,
    ) -> None:
        super().__init__(parameters)
        self._servable = servable
        self._signature = signature
        self._aliases = aliases
        self._parameters = parameters

    def execute(self, pieces: Sequence[Piece], waits: Sequence[float]) -> None:
        """Run a batch to the end of each of its runs; those of another kind run apart.

        Args:
            pieces: what :meth:`take` gave.
            waits: how long each has waited, in seconds.
        """
        kinds: dict[Hashable, list[Piece]] = {}
        for piece in pieces:
            if not piece.ticket.ended:  # another piece of the same run may have failed
                kinds.setdefault(piece.ticket.kind, []).append(piece)
        for group in kinds.values():
            rows = sum(piece.rows for piece in group)
            record = BatchRecord(Mode.QUEUE, rows, self._parameters.padded(rows), waits)
            self._servable.batching.observe(record)
            waits = ()
            self._run(group)

    def _run(self, pieces: Sequence[Piece]) -> None:
        began = time.perf_counter()
        try:
            outputs = self._run_merged(pieces)
        except Exception as error:  # noqa: BLE001 - the caller is told
            if len(pieces) == 1:
                pieces[0].ticket.fail(error)
                return
            for piece in pieces:
                if not piece.ticket.ended:
                    self._run([piece])
            return
        if outputs is None:
            for piece in pieces:
                piece.ticket.run_apart()
            return
        seconds = time.perf_counter() - began
        for piece, part in zip(pieces, outputs, strict=True):
            piece.ticket.deliver(piece.index, part, seconds)

    def _run_merged(self, pieces: Sequence[Piece]) -> Sequence[Arrays] | None:
        """The outputs of each piece; None where they cannot be told apart for sure."""
        parts: Sequence[Arrays] = [piece.inputs for piece in pieces]
        if self._parameters.pad_variable_length_inputs and len(parts) > 1:
            parts = even_out(parts)
        sizes = [piece.rows for piece in pieces]
        rows = self._parameters.padded(sum(sizes))
        outputs = self._servable.call(self._signature, join(parts, rows), self._aliases)
        sure = self._servable.batching.has_a_row_for_each(
            self._signature, self._aliases, outputs, rows
        )
        if sure:
            return cut(cast("Arrays", outputs), sizes)
        # What a whole run alone was answered is its answer, rows or not.
        alone = sizes == [rows] and rows == pieces[0].ticket.rows
        return [cast("Arrays", outputs)] if alone else None
