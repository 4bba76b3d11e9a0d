"""What a run has found: kept as JSON, and all that the tables, the targets and the plots know."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any


@dataclass
class Load:
    """A work on a contender at a number of connections; one entry in each list for each round."""

    work: str
    contender: str
    connections: int
    requests_per_s: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    failed: int = 0


@dataclass
class RoundTrip:
    """Milliseconds of one large request on a contender, one for each round."""

    work: str
    contender: str
    ms: list[float] = field(default_factory=list)


@dataclass
class Memory:
    """What a process had more, at the peak of one large request, than before it."""

    contender: str
    process: str
    body_bytes: int
    answer_bytes: int
    added_bytes: int

    @property
    def ratio(self) -> float:
        """In bodies."""
        return self.added_bytes / self.body_bytes


@dataclass
class Latency:
    """How long something of the notebook's took under a condition, in milliseconds."""

    probe: str
    condition: str
    count: int
    p50_ms: float
    p99_ms: float
    longest_ms: float


@dataclass
class Results:
    """All of one run.

    ``profiles`` are texts by their name; ``skipped`` says of each thing that was asked for and not
    done, why.
    """

    run: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, Any]
    loads: list[Load] = field(default_factory=list)
    round_trips: list[RoundTrip] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    profiles: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def load(self, work: str, contender: str, connections: int) -> Load | None:
        """What was measured of these, if anything was."""
        wanted = (work, contender, connections)
        found = (x for x in self.loads if (x.work, x.contender, x.connections) == wanted)
        return next(found, None)

    def speed_up(self, work: str, contender: str, other: str, connections: int) -> float | None:
        """How many times the requests of another a contender did: the median over the rounds.

        A ratio for each round, because what else the machine did then slowed both of them.
        """
        one = self.load(work, contender, connections)
        two = self.load(work, other, connections)
        if one is None or two is None:
            return None
        pairs = zip(one.requests_per_s, two.requests_per_s, strict=True)
        ratios = [a / b for a, b in pairs if b]
        return median(ratios) if ratios else None

    def round_trip(self, work: str, contender: str) -> RoundTrip | None:
        """What was measured of these, if anything was."""
        found = (x for x in self.round_trips if (x.work, x.contender) == (work, contender))
        return next(found, None)

    def faster(self, work: str, contender: str, other: str) -> float | None:
        """How many times faster than another a contender was: the median over the rounds."""
        one, two = self.round_trip(work, contender), self.round_trip(work, other)
        if one is None or two is None:
            return None
        # One that was too slow to be repeated has fewer rounds.
        return median(b / a for a, b in zip(one.ms, two.ms, strict=False))

    def latency(self, probe: str, condition: str) -> Latency | None:
        """What was measured of these, if anything was."""
        found = (x for x in self.latencies if (x.probe, x.condition) == (probe, condition))
        return next(found, None)

    def save(self, path: Path) -> None:
        """Write all of it."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """What an earlier run saved."""
        saved = json.loads(path.read_text())
        for name, kind in (
            ("loads", Load),
            ("round_trips", RoundTrip),
            ("memory", Memory),
            ("latencies", Latency),
        ):
            saved[name] = [kind(**fields) for fields in saved[name]]
        return cls(**saved)
