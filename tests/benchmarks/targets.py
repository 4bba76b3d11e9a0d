"""What is to be reached, each as a ratio in one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contenders import BARE, FAST_LANE, GREEDY, ORDINARY_LANE, PEERS, STANDALONE
from responsiveness import IDLE, KERNEL, LARGE_BODY, saturated
from throughput import NAIVE
from works import WORKS

if TYPE_CHECKING:
    from results import Results

_TITLES = {work.name: work.title for work in WORKS}

THROUGHPUT = (
    ("half_plus_three", STANDALONE, {1: 1.6, 8: 4, 32: 5}),
    ("thousand_values", STANDALONE, {1: 0.8, 8: 1.3, 32: 1.5}),
    ("status", STANDALONE, {1: 1.6, 8: 3, 32: 4}),
    ("half_plus_three", FAST_LANE, {1: 0.5, 8: 0.7, 32: 0.8}),
    ("half_plus_three", ORDINARY_LANE, {1: 0.3, 8: 0.35, 32: 0.35}),
    ("mlp", STANDALONE, {32: 1.3}),
    ("mlp", GREEDY, {32: 2.5}),
)
"""Requests per second as a multiple of bare Tornado's, by the number of connections."""

LARGE = ("million_flat", "million_column")
LARGE_SPEED_UP = 10.0
PEER_SPEED_UP = 3.0
PEER_CONNECTIONS = 8
"""The best peer is to be beaten at this many connections and more."""

MEMORY = {(STANDALONE, "pool"): 2.0, (FAST_LANE, "pool"): 2.0, (FAST_LANE, "Jupyter server"): 0.3}
SLOWER = 3.0
STALL_MS = 100.0


@dataclass(frozen=True)
class Target:
    """One line of the table; ``reached`` is None where the run did not measure it."""

    what: str
    against: str
    wanted: float
    reached: float | None
    at_most: bool = False
    unit: str = "×"

    @property
    def met(self) -> bool | None:
        """Whether it was reached, where it was measured."""
        if self.reached is None:
            return None
        return self.reached <= self.wanted if self.at_most else self.reached >= self.wanted


def targets(results: Results) -> list[Target]:
    """All of them, with what this run reached."""
    return [
        *_throughput(results),
        *_large(results),
        *_peers(results),
        *_memory(results),
        *_responsiveness(results),
    ]


def _connections(number: int) -> str:
    return "1 connection" if number == 1 else f"{number} connections"


def _throughput(results: Results) -> Iterator[Target]:
    for work, contender, wanted in THROUGHPUT:
        for connections, ratio in wanted.items():
            what = f"{_TITLES[work]}; {contender}; {_connections(connections)}"
            reached = results.speed_up(work, contender, BARE, connections)
            yield Target(what, BARE, ratio, reached)


def _large(results: Results) -> Iterator[Target]:
    for work in LARGE:
        what = f"{_TITLES[work]}; {STANDALONE}; round trip"
        yield Target(what, NAIVE, LARGE_SPEED_UP, results.faster(work, STANDALONE, NAIVE))


def _peers(results: Results) -> Iterator[Target]:
    """For each work the worst of the ratios to the best peer."""
    for work in (work for work in WORKS if not work.is_large):
        ratios = [
            ratio
            for load in results.loads
            if (load.work, load.contender) == (work.name, STANDALONE)
            and load.connections >= PEER_CONNECTIONS
            for peer in PEERS
            if (ratio := results.speed_up(work.name, STANDALONE, peer, load.connections))
        ]
        what = f"{work.title}; {STANDALONE}; {PEER_CONNECTIONS} and more connections"
        yield Target(what, "best Python peer", PEER_SPEED_UP, min(ratios, default=None))


def _memory(results: Results) -> Iterator[Target]:
    for (contender, process), wanted in MEMORY.items():
        found = [
            memory.ratio
            for memory in results.memory
            if (memory.contender, memory.process) == (contender, process)
        ]
        what = f"memory added by a body of 100 MB; {contender}; {process}"
        yield Target(what, "the body", wanted, max(found, default=None), at_most=True)


def _responsiveness(results: Results) -> Iterator[Target]:
    idle = results.latency(KERNEL, IDLE)
    for condition in (saturated(FAST_LANE), saturated(ORDINARY_LANE), LARGE_BODY):
        busy = results.latency(KERNEL, condition)
        slower = busy.p50_ms / idle.p50_ms if busy and idle else None
        yield Target(f"{KERNEL}, p50; {condition}", IDLE, SLOWER, slower, at_most=True)
        longest = busy.longest_ms if busy else None
        yield Target(f"{KERNEL}, longest; {condition}", "", STALL_MS, longest, True, " ms")
