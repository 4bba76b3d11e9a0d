"""What is told of each batch, for whoever counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .version import Mode


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch.

    Attributes:
        mode: How it came together.
        rows: What its callers brought.
        processed_rows: What was run: more, where it was padded to an allowed size.
        waits: How long each run, or piece of one, has waited in the queue, in seconds.
    """

    mode: Mode
    rows: int
    processed_rows: int
    waits: Sequence[float] = ()


Observer: TypeAlias = Callable[[BatchRecord], None]
"""Called in the thread that ran the batch; must be quick, and safe to call from several."""


def ignore(_record: BatchRecord) -> None:
    """Counts nothing."""
