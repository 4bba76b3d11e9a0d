"""How much is measured, and telling how far it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Everything is measured ``rounds`` times, a load for ``seconds`` at a time."""

    rounds: int
    seconds: int
    connections: Sequence[int]


def say(text: str) -> None:
    """Tell the user what is being done."""
    print(text, file=sys.stderr, flush=True)
