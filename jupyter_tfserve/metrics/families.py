"""Metrics as values: what a process has counted, ready to be sent, added up and told."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What Prometheus calls the type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a histogram had seen at one moment.

    ``buckets`` counts the samples between two bounds, the last those beyond all; not cumulated.
    """

    buckets: tuple[int, ...]
    total: float


class Histogram:
    """Counts samples by size. Fed by one thread; read by any.

    Args:
        bounds: ascending; whether a sample that equals one lies below it depends on ``inclusive``:
            so Prometheus has it, while TensorFlow's bounds are exclusive.
        inclusive: see above.
    """

    __slots__ = ("_bounds", "_buckets", "_find", "_total")

    def __init__(self, bounds: tuple[float, ...], *, inclusive: bool) -> None:
        self._bounds = bounds
        self._find = bisect_left if inclusive else bisect_right
        self._buckets = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """Take a sample in."""
        self._buckets[self._find(self._bounds, value)] += 1
        self._total += value

    def read(self) -> Distribution:
        """What has been seen so far."""
        return Distribution(tuple(self._buckets), self._total)


@dataclass(slots=True)
class Family:
    """One metric with all its cells, by the values of its labels.

    ``bounds`` are a histogram's, whose cells are :class:`Distribution`; other cells are numbers.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str = ""
    bounds: tuple[float, ...] = ()
    cells: dict[tuple[str, ...], float | Distribution] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_dict` reads them back."""
        return {
            "name": self.name,
            "kind": self.kind,
            "labels": self.labels,
            "help": self.help,
            "bounds": self.bounds,
            "cells": [
                [values, [cell.buckets, cell.total] if isinstance(cell, Distribution) else cell]
                for values, cell in self.cells.items()
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Family:
        """Read what :meth:`to_dict` wrote."""
        cells = {
            tuple(values): Distribution(tuple(cell[0]), cell[1]) if isinstance(cell, list) else cell
            for values, cell in data["cells"]
        }
        labels, bounds = tuple(data["labels"]), tuple(data["bounds"])
        return cls(data["name"], Kind(data["kind"]), labels, data["help"], bounds, cells)


def merge(families: Iterable[Family]) -> list[Family]:
    """Add up what several processes have counted; a metric of another shape is left out."""
    merged: dict[str, Family] = {}
    for family in families:
        known = merged.get(family.name)
        if known is None:
            merged[family.name] = Family(
                family.name,
                family.kind,
                family.labels,
                family.help,
                family.bounds,
                dict(family.cells),
            )
        elif (known.kind, known.labels, known.bounds) == (
            family.kind,
            family.labels,
            family.bounds,
        ):  # a pool of another release may count otherwise
            for values, cell in family.cells.items():
                known.cells[values] = _sum(known.cells.get(values), cell)
    return list(merged.values())


def _sum(a: float | Distribution | None, b: float | Distribution) -> float | Distribution:
    if isinstance(a, Distribution) and isinstance(b, Distribution):
        buckets = tuple(x + y for x, y in zip(a.buckets, b.buckets, strict=True))
        return Distribution(buckets, a.total + b.total)
    if a is None or isinstance(a, Distribution) or isinstance(b, Distribution):
        return b
    return a + b
