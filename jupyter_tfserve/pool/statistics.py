"""Counts of calls for each version: what the management API tells about traffic."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..servable import ServableId


@dataclass(slots=True)
class Counts:
    """Calls of one version since it was loaded."""

    requests: int = 0
    errors: int = 0
    in_flight: int = 0


class Statistics:
    """Counts for every version, safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[ServableId, Counts] = {}

    def begin(self, servable: ServableId) -> None:
        """Count a call that begins."""
        with self._lock:
            counts = self._counts.get(servable)
            if counts is None:
                counts = self._counts[servable] = Counts()
            counts.requests += 1
            counts.in_flight += 1

    def end(self, servable: ServableId, *, failed: bool) -> None:
        """Count the end of a call that has begun."""
        with self._lock:
            counts = self._counts.setdefault(servable, Counts())
            counts.in_flight -= 1
            counts.errors += failed

    def of(self, servable: ServableId) -> Counts:
        """The counts of a version; zeros for one that was never called."""
        with self._lock:
            counts = self._counts.get(servable, Counts())
            return Counts(counts.requests, counts.errors, counts.in_flight)

    def forget(self, servable: ServableId) -> None:
        """Drop the counts of a version that has ended."""
        with self._lock:
            self._counts.pop(servable, None)
