"""All that a pool has to tell of itself in numbers.

Both doors tell all of it: whoever scrapes TensorFlow Serving passes over names that are unknown to
him, as there are many. Whether a pool is up, and how often it was restarted, only the Jupyter
server can say; of a standalone one the scraper knows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import ServingError
from ..metrics import Family, Kind
from ..servable import ModelSpec
from ..state import ManagerState
from .memory import rss_bytes
from .statistics import SECONDS

if TYPE_CHECKING:
    from ..servable import ServableId
    from .core.server_core import ServerCore
    from .scheduler import Scheduler
    from .servables.base import Footprint, Servable
    from .statistics import Statistics

_OWN = "jupyter_tfserve_"
_VERSION = ("pool", "model", "version")


class PoolMetrics:
    """Reads the numbers of one pool; may be called in any thread.

    Args:
        pool_id: labels what is the pool's own.
        core: whose versions are told.
        scheduler: whose queue is told.
        statistics: of the calls.
        device_memory: tells the bytes in use on a device, such as ``GPU:0``.
    """

    def __init__(
        self,
        pool_id: str,
        core: ServerCore[Servable],
        scheduler: Scheduler,
        statistics: Statistics,
        device_memory: Callable[[str], int],
    ) -> None:
        self._pool_id = pool_id
        self._core = core
        self._scheduler = scheduler
        self._statistics = statistics
        self._device_memory = device_memory
        self._sources: list[Callable[[], Iterable[Family]]] = [
            statistics.requests.families,
            self._calls,
            self._memory,
        ]

    def register(self, source: Callable[[], Iterable[Family]]) -> None:
        """Ask ``source`` as well, in the thread of whoever asks for the metrics."""
        self._sources.append(source)

    def families(self) -> list[Family]:
        """Everything, as it stands."""
        return [family for source in self._sources for family in source()]

    def _calls(self) -> list[Family]:
        requests = _counter("version_requests", "Answered calls of a version", _VERSION)
        errors = _counter("version_errors", "Calls of a version that it refused", _VERSION)
        in_flight = _gauge("version_in_flight", "Calls of a version under way", _VERSION)
        latency = Family(
            f"{_OWN}version_latency_seconds",
            Kind.HISTOGRAM,
            _VERSION,
            "From a call's arrival in the pool to its answer, of successes",
            SECONDS,
        )
        for name, version, counts in self._statistics.versions():
            values = (self._pool_id, name, str(version))
            requests.cells[values] = counts.requests
            errors.cells[values] = counts.errors
            in_flight.cells[values] = len(counts.running)
            latency.cells[values] = counts.latency.read()
        handed = _gauge("in_flight", "Calls handed to a worker and not finished")
        handed.cells[(self._pool_id,)] = self._scheduler.in_flight
        queue = _gauge("queue_depth", "Calls that wait for a worker")
        queue.cells[(self._pool_id,)] = self._scheduler.queue_depth
        return [requests, errors, in_flight, latency, handed, queue]

    def _memory(self) -> list[Family]:
        resident = _gauge("resident_memory_bytes", "Memory of the pool's process")
        if (rss := rss_bytes()) is not None:
            resident.cells[(self._pool_id,)] = rss
        version = _gauge(
            "version_memory_bytes", "Estimated size of a version", (*_VERSION, "device")
        )
        device = _gauge(
            "device_memory_bytes", "Memory of a device in use by the pool", ("pool", "device")
        )
        for servable, footprint in self._footprints():
            values = (self._pool_id, servable.name, str(servable.version))
            version.cells[*values, "host"] = footprint.host_bytes
            if footprint.device.startswith("GPU"):
                version.cells[*values, footprint.device] = footprint.device_bytes
                size = self._device_memory(footprint.device)
                device.cells[self._pool_id, footprint.device] = size
        return [resident, version, device]

    def _footprints(self) -> Iterator[tuple[ServableId, Footprint]]:
        for state in self._core.monitor.states():
            if state.state is not ManagerState.AVAILABLE:
                continue
            try:
                with self._core.handle(ModelSpec(state.id.name, state.id.version)) as handle:
                    yield state.id, handle.servable.footprint
            except ServingError:  # it has been unloaded since
                continue


def _counter(name: str, text: str, labels: tuple[str, ...]) -> Family:
    return Family(f"{_OWN}{name}", Kind.COUNTER, labels, text)


def _gauge(name: str, text: str, labels: tuple[str, ...] = ("pool",)) -> Family:
    return Family(f"{_OWN}{name}", Kind.GAUGE, labels, text)
