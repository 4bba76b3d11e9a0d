"""How far a long call has come: a bar where tqdm is installed, a line of text where not."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

_DELAY_S = 0.5
"""What is done by then shows nothing."""
_EVERY_S = 0.5


class Progress:
    """Rows done, of a total; used as a context manager, and silent unless ``shown``."""

    def __init__(self, total: int, done: int = 0, *, shown: bool = True) -> None:
        self._total = total
        self._done = done
        self._shown = shown
        self._next = time.monotonic() + _DELAY_S
        self._bar: Any = None
        self._has_line = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._has_line:
            sys.stderr.write("\n")

    def add(self, rows: int) -> None:
        """So many more are done."""
        self._done += rows
        if self._bar is not None:
            self._bar.update(rows)
        elif self._shown and time.monotonic() >= self._next:
            self._show()

    def _show(self) -> None:
        tqdm = None if self._has_line else _tqdm()
        if tqdm is not None:
            self._bar = tqdm(total=self._total, initial=self._done, unit="row", unit_scale=True)
            return
        self._next = time.monotonic() + _EVERY_S
        self._has_line = True
        share = 100 * self._done // max(self._total, 1)
        sys.stderr.write(f"\r{self._done} of {self._total} rows, {share} %")
        sys.stderr.flush()


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
