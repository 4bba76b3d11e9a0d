"""Metrics as text for Prometheus: TensorFlow Serving's own names, then all others.

TensorFlow Serving writes its names in a way of its own (``util/prometheus_exporter.cc``): no help,
no ``_total``, numbers of six digits. ``prometheus_client`` cannot, and writes what is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from .families import Distribution, Family, Kind

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain"
_TENSORFLOW = ":tensorflow:"


def expose(families: Iterable[Family]) -> bytes:
    """All of them, in the order of their names; a name is given once."""
    ordered = sorted(families, key=lambda family: family.name)
    theirs = [family for family in ordered if family.name.startswith(_TENSORFLOW)]
    ours = [family for family in ordered if not family.name.startswith(_TENSORFLOW)]
    registry = CollectorRegistry()
    registry.register(_Collector(ours))
    lines = [line for family in theirs for line in _lines(family)]
    return "\n".join([*lines, ""]).encode() + generate_latest(registry)


def _lines(family: Family) -> Iterator[str]:
    """One metric as TensorFlow Serving writes it."""
    yield f"# TYPE {family.name} {family.kind}"
    bounds = [f'le="{bound}"' for bound in _bounds(family)]
    for values, cell in sorted(family.cells.items(), key=lambda item: item[0]):
        labels = ",".join(
            f'{name}="{_escape(value)}"' for name, value in zip(family.labels, values, strict=True)
        )
        if not isinstance(cell, Distribution):
            yield f"{family.name}{{{labels}}} {cell}"
            continue
        start = f"{family.name}_bucket{{{labels}," if labels else f"{family.name}_bucket{{"
        for bound, count in zip(bounds, accumulate(cell.buckets), strict=True):
            yield f"{start}{bound}}} {count}"
        yield f"{family.name}_sum{{{labels}}} {cell.total:g}"
        yield f"{family.name}_count{{{labels}}} {sum(cell.buckets)}"


def _bounds(family: Family) -> list[str]:
    return [*(f"{bound:g}" for bound in family.bounds), "+Inf"]


def _escape(value: str) -> str:
    # A line break, which TensorFlow Serving leaves in, would let a caller write lines of its own.
    return _utf8(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _utf8(value: str) -> str:
    """The text with bytes that are no UTF-8 spelt out: Prometheus takes nothing else."""
    return value.encode("utf-8", "backslashreplace").decode()


class _Collector(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return map(_metric, self._families)


def _metric(family: Family) -> Metric:
    if family.kind is Kind.HISTOGRAM:
        return _histogram(family)
    make = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    metric = make(family.name, family.help, labels=family.labels)
    for values, cell in sorted(family.cells.items(), key=lambda item: item[0]):
        assert not isinstance(cell, Distribution)
        metric.add_metric([*map(_utf8, values)], cell)
    return metric


def _histogram(family: Family) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    for values, cell in sorted(family.cells.items(), key=lambda item: item[0]):
        assert isinstance(cell, Distribution)
        buckets = [*zip(_bounds(family), accumulate(cell.buckets), strict=True)]
        metric.add_metric([*map(_utf8, values)], buckets, cell.total)
    return metric
