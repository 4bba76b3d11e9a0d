"""Batches in numbers: TensorFlow Serving's metrics of its queues, and ours of greedy batching.

Source of names, labels and bounds: ``batching/batching_session.cc`` of TensorFlow Serving.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ...metrics import Family, Histogram, Kind
from ...metrics.requests import PREFIX
from .version import Mode

if TYPE_CHECKING:
    from .records import BatchRecord

_SESSION = f"{PREFIX}batching_session:"
_LATENCY_BOUNDS = tuple(100 * 1.2**i for i in range(52))
_SIZE_BOUNDS = tuple(float(2**i) for i in range(14))


class BatchMetrics:
    """Counts batches in whatever thread they were run; may be read in any."""

    def __init__(self, pool_id: str) -> None:
        """``pool_id`` labels what is the pool's own."""
        self._pool_id = pool_id
        self._lock = threading.Lock()
        self._runs = 0
        self._latency = Histogram(_LATENCY_BOUNDS, inclusive=False)
        self._input = Histogram(_SIZE_BOUNDS, inclusive=False)
        self._processed = Histogram(_SIZE_BOUNDS, inclusive=False)
        self._padding: dict[int, Histogram] = {}
        self._greedy: Histogram | None = None

    def record(self, batch: BatchRecord) -> None:
        """A batch was run."""
        with self._lock:
            if batch.mode is Mode.GREEDY:
                if self._greedy is None:
                    self._greedy = Histogram(_SIZE_BOUNDS, inclusive=True)
                self._greedy.observe(batch.rows)
                return
            self._runs += 1
            for wait in batch.waits:
                self._latency.observe(wait * 1e6)
            self._input.observe(batch.rows)
            self._processed.observe(batch.processed_rows)
            padding = self._padding.get(batch.processed_rows)
            if padding is None:
                padding = Histogram(_SIZE_BOUNDS, inclusive=False)
                self._padding[batch.processed_rows] = padding
            padding.observe(batch.processed_rows - batch.rows)

    def families(self, thread_pool_name: str) -> list[Family]:
        """What has been counted so far; nothing of what there was no batch of."""
        with self._lock:
            return [*self._of_queues(thread_pool_name), *self._of_greedy()]

    def _of_queues(self, thread_pool_name: str) -> list[Family]:
        if not self._runs:
            return []
        latency = Family(
            f"{_SESSION}queuing_latency",
            Kind.HISTOGRAM,
            ("thread_pool_name",),
            bounds=_LATENCY_BOUNDS,
            cells={(thread_pool_name,): self._latency.read()},
        )
        runs = Family(f"{_SESSION}wrapped_run_count", Kind.COUNTER, (), cells={(): self._runs})
        padding = _sizes(f"{_SESSION}padding_size", "execution_batch_size")
        for size, histogram in self._padding.items():
            padding.cells[(str(size),)] = histogram.read()
        batches = _sizes(f"{_SESSION}input_batch_size"), _sizes(f"{_SESSION}processed_batch_size")
        for family, histogram in zip(batches, (self._input, self._processed), strict=True):
            family.cells[()] = histogram.read()
        return [latency, runs, *batches, padding]

    def _of_greedy(self) -> list[Family]:
        if self._greedy is None:
            return []
        family = _sizes("jupyter_tfserve_greedy_batch_size", "pool", text="Rows of merged runs")
        family.cells[(self._pool_id,)] = self._greedy.read()
        return [family]


def _sizes(name: str, *labels: str, text: str = "") -> Family:
    return Family(name, Kind.HISTOGRAM, labels, text, _SIZE_BOUNDS)
