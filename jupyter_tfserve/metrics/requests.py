"""TensorFlow Serving's metrics of REST requests: how many, how long, how long in the model.

Source of names, labels and bounds: ``servables/tensorflow/util.cc``.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import Code
from .families import Family, Histogram, Kind

PREFIX = ":tensorflow:serving:"
LATENCY_BOUNDS = tuple(10 * 1.8**i for i in range(33))
"""Of every latency in microseconds."""
OTHER = "(other)"
"""The model that requests for unknown names count for once there were too many such names."""

_MAX_UNKNOWN = 100
_MAX_LENGTH = 256
_RUNTIME = "TF1"


class _Latencies(dict[str, Histogram]):
    """Histograms by API, made when they are first needed."""

    def __missing__(self, api: str) -> Histogram:
        histogram = self[api] = Histogram(LATENCY_BOUNDS, inclusive=False)
        return histogram


class _Model:
    """What is counted for one name: requests by code, latencies by API."""

    __slots__ = ("counts", "request", "runtime")

    def __init__(self) -> None:
        self.counts = [0] * len(Code)
        self.request = _Latencies()
        self.runtime = _Latencies()


class RequestMetrics:
    """Counts the requests that one process answers.

    Fed by one thread, and read by any. Names come from callers: those of models that nobody serves
    are told apart only as long as they are few and short.

    Args:
        is_served: whether a name is a model's.
    """

    def __init__(self, is_served: Callable[[str], bool]) -> None:
        self._is_served = is_served
        self._models: dict[str, _Model] = {}
        self._unknown = 0

    def record(
        self, name: str, api: str, code: Code, seconds: float, runtime_s: float | None = None
    ) -> None:
        """Count an answered request; the hot path.

        Args:
            name: the model's, empty where the request line was none of the API.
            api: ``predict``, ``classify`` or ``regress``; empty for all else.
            code: what it ended with.
            seconds: how long it took, told for successes.
            runtime_s: how long its model ran, where it came to that.
        """
        model = self._models.get(name)
        if model is None:
            model = self._admit(name)
        model.counts[code] += 1
        if code == 0:
            model.request[api].observe(seconds * 1e6)
        if runtime_s is not None:
            model.runtime[api].observe(runtime_s * 1e6)

    def families(self) -> list[Family]:
        """What has been counted so far."""
        count = Family(f"{PREFIX}request_count", Kind.COUNTER, ("model_name", "status"))
        request = _latency("request", "entrypoint")
        runtime = _latency("runtime", "runtime")
        for name, model in list(self._models.items()):
            for code, number in zip(Code, tuple(model.counts), strict=True):
                if number:
                    count.cells[name, code.name] = number
            for api, histogram in list(model.request.items()):
                request.cells[name, api, "REST"] = histogram.read()
            for api, histogram in list(model.runtime.items()):
                runtime.cells[name, api.capitalize(), _RUNTIME] = histogram.read()
        return [count, request, runtime]

    def _admit(self, name: str) -> _Model:
        if name and not self._is_served(name):
            if self._unknown >= _MAX_UNKNOWN or len(name) > _MAX_LENGTH:
                return self._models.setdefault(OTHER, _Model())
            self._unknown += 1
        model = self._models[name] = _Model()
        return model


def _latency(what: str, label: str) -> Family:
    return Family(
        f"{PREFIX}{what}_latency",
        Kind.HISTOGRAM,
        ("model_name", "API", label),
        bounds=LATENCY_BOUNDS,
    )
