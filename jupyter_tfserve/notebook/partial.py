"""Many rows to a model in pieces: what is done by then is never lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .errors import ResourceExhaustedError, TFServeError
from .progress import Progress

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import pandas as pd

    from .casting import Array

CHUNK_BYTES = 8 << 20
"""Size of a piece's body, roughly: enough for a server to be busy, small beside a frame."""
_SAMPLE_ROWS = 256
_TOO_LARGE = 413


class RowCall(Protocol):
    """Something that is done row by row; positions are those of the caller's frame."""

    rows: int

    def check(self, start: int, stop: int) -> None:
        """Raise what these rows would be refused for before they are sent."""

    def size(self, start: int, stop: int) -> int:
        """The bytes of the body for these rows."""

    def call(self, start: int, stop: int) -> dict[str, Array]:
        """Send these rows; returns arrays with a row for each."""

    def assemble(self, pieces: list[dict[str, Array]], rows: int) -> Any:
        """What the caller gets for the first rows."""


class Run:
    """One call in pieces, from where it stands to the end."""

    def __init__(
        self,
        work: RowCall,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        progress: bool = True,
        stop: threading.Event | None = None,
    ) -> None:
        self._work = work
        self._progress = progress
        self._stop = stop
        self._chunk_bytes = chunk_bytes
        self._chunk = max(work.rows, 1)
        # Each with the position after its rows: an interrupt finds a piece either here or not.
        self._pieces: list[tuple[int, dict[str, Array]]] = []

    @property
    def _done(self) -> int:
        return self._pieces[-1][0] if self._pieces else 0

    def prepare(self) -> None:
        """Choose the size of a piece; where there are several, check all before one is sent.

        Raises:
            InvalidArgumentError: naming the first row that does not fit.
        """
        work = self._work
        sample = min(work.rows, _SAMPLE_ROWS)
        if sample < work.rows:
            per_row = max(work.size(0, sample) / sample, 1)
            self._chunk = max(1, min(work.rows, int(self._chunk_bytes / per_row)))
        if self._chunk < work.rows:
            for start in range(0, work.rows, self._chunk):
                work.check(start, min(start + self._chunk, work.rows))

    def finish(self) -> Any:
        """Do what is left.

        Raises:
            TFServeError: with :attr:`~.errors.TFServeError.partial`, where a piece fails.
            KeyboardInterrupt: the same, where the cell is interrupted.
        """
        rows = self._work.rows
        several = self._chunk < rows
        with Progress(rows, self._done, shown=self._progress and several) as progress:
            while self._done < rows:
                start, stop = self._done, min(self._done + self._chunk, rows)
                try:
                    self._step(start, stop, progress)
                except (TFServeError, KeyboardInterrupt) as error:
                    if several or self._done:
                        self._tell(error, range(self._done, max(stop, self._done)))
                    raise
        return self._assembled()

    def _step(self, start: int, stop: int, progress: Progress) -> None:
        """One piece, unless it was too large and has to be tried smaller."""
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        try:
            piece = self._work.call(start, stop)
        except ResourceExhaustedError as error:
            if error.status != _TOO_LARGE or stop - start == 1:
                raise
            self._chunk = max(1, (stop - start) // 2)
        else:
            self._pieces.append((stop, piece))
            progress.add(stop - start)

    def _tell(self, error: BaseException, rows: range) -> None:
        partial = PartialResult(rows, self._assembled, self.finish)
        error.partial = partial  # type: ignore[attr-defined]
        error.add_note(
            f"Rows {rows.start} to {rows.stop - 1} of {self._work.rows} were under way. What was "
            "done before is in the error's partial.frame, partial.resume() goes on from there; "
            "in a notebook: import sys; sys.last_value.partial"
        )

    def _assembled(self) -> Any:
        return self._work.assemble([piece for _, piece in self._pieces], self._done)


class PartialResult:
    """What a call in pieces had done when it ended early.

    Attributes:
        rows: The positions of the rows that failed or were under way, in the caller's frame. After
            ``missing="drop"``, in what was left of it.
    """

    def __init__(self, rows: range, frame: Callable[[], Any], resume: Callable[[], Any]) -> None:
        self.rows = rows
        self._frame = frame
        self._resume = resume

    @property
    def frame(self) -> pd.DataFrame:
        """The answer for all rows before them."""
        return self._frame()

    def resume(self) -> pd.DataFrame:
        """Go on with them; returns the whole answer.

        Raises:
            TFServeError: where it ends early again, with what was done by then.
        """
        return self._resume()

    def __repr__(self) -> str:
        return f"<PartialResult: rows before {self.rows.start} are done>"
