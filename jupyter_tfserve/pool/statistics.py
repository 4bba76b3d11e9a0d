"""How many calls, and how long they took: TensorFlow Serving's metrics, and those of versions.

Nothing here takes a lock, as every request passes. What is to be counted of a request is gathered
in whatever thread it runs, and counted by the loop's thread when the answer goes out.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import Code
from ..metrics import Histogram, RequestMetrics
from ..routes import Api
from .call import Refusal

if TYPE_CHECKING:
    from ..routes import Route
    from ..servable import ServableId
    from ..wire import Response

_RECENT = 1000
"""Calls of a version that its percentiles are taken of."""
_OK = Code.OK
_API = {Api.PREDICT: "predict", Api.CLASSIFY: "classify", Api.REGRESS: "regress"}
"""The labels of APIs; telling about a model has none."""
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the latencies of versions."""


class VersionStatistics:
    """Answered calls of one version since it was loaded; latencies are those of successes.

    ``running`` holds the calls under way. It is a set because several threads change it, and
    adding to one is atomic where counting up is not.
    """

    __slots__ = ("errors", "latency", "recent", "requests", "running")

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.running: set[Tally] = set()
        self.latency = Histogram(SECONDS, inclusive=True)
        self.recent: deque[float] = deque(maxlen=_RECENT)

    def answered(self, code: Code, seconds: float) -> None:
        """A call has ended; called in the loop's thread."""
        self.requests += 1
        if code == 0:
            self.latency.observe(seconds)
            self.recent.append(seconds)
        else:
            self.errors += 1

    def describe(self) -> dict[str, Any]:
        """The counts, and percentiles of the last calls in milliseconds; None without calls."""
        recent = sorted(self.recent.copy())
        return {
            "requests": self.requests,
            "errors": self.errors,
            "in_flight": len(self.running),
            "p50_ms": _percentile(recent, 0.50),
            "p99_ms": _percentile(recent, 0.99),
        }


class Tally:
    """What is to be counted of one request, from its arrival to its answer.

    Attributes:
        route: What it asks for, once that is known.
        runtime_s: How long its model ran, once it has, in seconds.
    """

    __slots__ = ("_began", "_respond", "_statistics", "_version", "route", "runtime_s")

    def __init__(self, statistics: Statistics, respond: Callable[[Response], None]) -> None:
        """The request has arrived; its answer has to go by :meth:`respond`."""
        self._statistics = statistics
        self._respond = respond
        self._began = time.perf_counter()
        self.runtime_s: float | None = None
        self._version: VersionStatistics | None = None
        self.route: Route | None = None

    # In whatever thread the call runs

    def begin(self, servable: ServableId) -> None:
        """The version that answers is known, and held until :meth:`end`."""
        self._version = version = self._statistics.version(servable)
        version.running.add(self)

    def end(self) -> None:
        """The version is let go."""
        if self._version is not None:
            self._version.running.discard(self)

    # In the loop's thread

    def respond(self, response: Response) -> None:
        """Count the request and answer it."""
        self._count(response.code if isinstance(response, Refusal) else _OK)
        self._respond(response)

    def cancellable(self, give_up: Callable[[], None] | None) -> Callable[[], None] | None:
        """What gives the request up, made to count it then."""
        if give_up is None:
            return None

        def cancel() -> None:
            give_up()
            self._count(Code.CANCELLED)

        return cancel

    def _count(self, code: Code) -> None:
        seconds = time.perf_counter() - self._began
        route, version = self.route, self._version
        name, api = "", ""
        if route is not None:
            name, api = route.spec.name, _API.get(route.api, "")
        self._statistics.requests.record(name, api, code, seconds, self.runtime_s)
        if version is not None:
            version.answered(code, seconds)


class Statistics:
    """The counts of one pool; its loop's thread counts, others may read.

    Args:
        is_served: whether a name is that of a model here.
    """

    def __init__(self, is_served: Callable[[str], bool]) -> None:
        self.requests = RequestMetrics(is_served)
        self._versions: dict[str, dict[int, VersionStatistics]] = {}

    def version(self, servable: ServableId) -> VersionStatistics:
        """The counts of a version that is loaded."""
        versions = self._versions.get(servable.name)
        found = versions.get(servable.version) if versions is not None else None
        if found is None:  # two threads may be here: the first to set wins
            versions = self._versions.setdefault(servable.name, {})
            found = versions.setdefault(servable.version, VersionStatistics())
        return found

    def describe(self, servable: ServableId) -> dict[str, Any]:
        """The counts of a version for people; zeros for one that was never called."""
        versions = self._versions.get(servable.name, {})
        return versions.get(servable.version, _NEVER_CALLED).describe()

    def versions(self) -> list[tuple[str, int, VersionStatistics]]:
        """Every version that was called, with its counts."""
        return [
            (name, version, counts)
            for name, versions in list(self._versions.items())
            for version, counts in list(versions.items())
        ]

    def forget(self, servable: ServableId) -> None:
        """Drop the counts of a version that has ended."""
        self._versions.get(servable.name, {}).pop(servable.version, None)


_NEVER_CALLED = VersionStatistics()


def _percentile(ascending: list[float], share: float) -> float | None:
    """The smallest value that ``share`` of all do not exceed, in milliseconds."""
    if not ascending:
        return None
    return round(ascending[math.ceil(len(ascending) * share) - 1] * 1000, 3)
