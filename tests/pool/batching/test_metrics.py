"""Batches are counted under TensorFlow Serving's names."""

from __future__ import annotations

from jupyter_tfserve.metrics import Distribution, Family
from jupyter_tfserve.pool.batching.metrics import BatchMetrics
from jupyter_tfserve.pool.batching.records import BatchRecord
from jupyter_tfserve.pool.batching.version import Mode

SESSION = ":tensorflow:serving:batching_session:"


def told(metrics: BatchMetrics) -> dict[str, Family]:
    return {family.name: family for family in metrics.families("threads")}


def test_without_batches_nothing_is_told() -> None:
    assert told(BatchMetrics("p")) == {}


def test_queues_are_told_under_tensorflow_servings_names() -> None:
    metrics = BatchMetrics("p")
    metrics.record(BatchRecord(Mode.QUEUE, 3, 4, [0.00005, 0.001]))
    metrics.record(BatchRecord(Mode.QUEUE, 2, 2, [0.00005]))
    families = told(metrics)
    assert families.keys() == {
        f"{SESSION}{name}"
        for name in (
            "queuing_latency",
            "wrapped_run_count",
            "input_batch_size",
            "processed_batch_size",
            "padding_size",
        )
    }
    latency = families[f"{SESSION}queuing_latency"]
    assert latency.labels == ("thread_pool_name",)
    assert (latency.bounds[0], latency.bounds[1], len(latency.bounds)) == (100, 120, 52)
    cell = latency.cells[("threads",)]
    assert isinstance(cell, Distribution)
    assert (cell.buckets[0], sum(cell.buckets), cell.total) == (2, 3, 1100)
    assert families[f"{SESSION}wrapped_run_count"].cells == {(): 2}
    sizes = families[f"{SESSION}input_batch_size"]
    assert sizes.bounds == tuple(2**n for n in range(14))
    assert sizes.cells[()] == Distribution((0, 0, 2, *[0] * 12), 5)  # bounds are exclusive
    assert families[f"{SESSION}processed_batch_size"].cells[()].total == 6
    padding = families[f"{SESSION}padding_size"]
    assert padding.labels == ("execution_batch_size",)
    assert {key: cell.total for key, cell in padding.cells.items()} == {("4",): 1, ("2",): 0}


def test_greedy_batches_are_told_by_their_sizes() -> None:
    metrics = BatchMetrics("p")
    metrics.record(BatchRecord(Mode.GREEDY, 8, 8))
    (family,) = told(metrics).values()
    assert family.name == "jupyter_tfserve_greedy_batch_size"
    assert family.cells == {("p",): Distribution((0, 0, 0, 1, *[0] * 11), 8)}
