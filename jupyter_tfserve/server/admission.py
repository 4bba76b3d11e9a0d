"""How much a pool is asked at a time: the in-flight limits of a pool and of each model."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Code, ServingError


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests in flight that a pool, and one model, may have."""

    in_flight: int = 1024
    in_flight_per_model: int = 256


class Admission:
    """Counts requests in and out; used in one thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._models: dict[str, int] = {}
        self.in_flight = 0

    def enter(self, model: str) -> None:
        """Let a request in; each is matched by one :meth:`leave`.

        Raises:
            ServingError: RESOURCE_EXHAUSTED at the limit of the model or of the pool.
        """
        count = self._models.get(model, 0)
        if count >= self._limits.in_flight_per_model:
            raise ServingError(
                Code.RESOURCE_EXHAUSTED,
                f"Model {model} has {count} requests in flight, which is its limit",
            )
        if self.in_flight >= self._limits.in_flight:
            raise ServingError(
                Code.RESOURCE_EXHAUSTED,
                f"The model pool has {self.in_flight} requests in flight, which is its limit",
            )
        self.in_flight += 1
        self._models[model] = count + 1

    def leave(self, model: str) -> None:
        """A request is over."""
        self.in_flight -= 1
        count = self._models[model] - 1
        if count:
            self._models[model] = count
        else:
            del self._models[model]
