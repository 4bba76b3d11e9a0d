"""TensorFlow Serving's metrics of warm-up (``servables/tensorflow/saved_model_warmup_util.cc``)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..errors import Code
from ..metrics import Family, Histogram, Kind
from ..metrics.requests import LATENCY_BOUNDS, PREFIX

if TYPE_CHECKING:
    from .warmup import Warmup

_LABELS = ("model_path", "status")


class WarmupMetrics:
    """Counts warm-ups by the version's path and by what they ended with; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latency: dict[tuple[str, ...], Histogram] = {}
        self._records: dict[tuple[str, ...], int] = {}

    def record(self, warmup: Warmup) -> None:
        """Count one."""
        code = warmup.error.code if warmup.error is not None else Code.OK
        cell = (warmup.path, code.name)
        with self._lock:
            latency = self._latency.setdefault(cell, Histogram(LATENCY_BOUNDS, inclusive=False))
            latency.observe(warmup.seconds * 1e6)
            self._records[cell] = self._records.get(cell, 0) + warmup.records

    def families(self) -> list[Family]:
        """What has been counted so far."""
        latency = Family(
            f"{PREFIX}model_warmup_latency", Kind.HISTOGRAM, _LABELS, bounds=LATENCY_BOUNDS
        )
        records = Family(f"{PREFIX}model_warmup_records_read", Kind.COUNTER, _LABELS)
        with self._lock:
            for cell, histogram in self._latency.items():
                latency.cells[cell] = histogram.read()
            records.cells.update(self._records)
        return [latency, records]
