"""What the event stream tells: numbered changes to what is served and by which pools."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MAX_KEPT = 1000
"""Changes kept for readers that come back or are slow; beyond it they start anew."""

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One change, or a snapshot of all.

    Attributes:
        seq: counts changes from 1; a snapshot has the number of the last change that it holds.
        kind: ``snapshot``, ``model``, ``pool`` or ``rates``.
        data: JSON values. A model or pool that is gone has ``"removed": true``.
    """

    seq: int
    kind: str
    data: Value


class EventHub:
    """The present state, and the last changes that led to it. Everything comes in one loop.

    Whoever knows of a possible change says so; only what really differs becomes an event.

    Args:
        models: describes a model by its name, None for one that is not there.
        names: the names of all models.
        pools: describes all pools by their ids.

    Attributes:
        epoch: Tells the numbers of this hub from those of an earlier server's.
    """

    def __init__(
        self,
        models: Callable[[str], Value | None],
        names: Callable[[], Iterable[str]],
        pools: Callable[[], Mapping[str, Value]],
    ) -> None:
        self.epoch = secrets.token_hex(4)
        self._describe = models
        self._names = names
        self._describe_pools = pools
        self._models: dict[str, Value] = {}
        self._pools: dict[str, Value] = {}
        self._rates: dict[tuple[str, int], Value] = {}
        self._seq = 0
        self._kept: deque[Event] = deque(maxlen=_MAX_KEPT)
        self._waiter: asyncio.Future[None] | None = None
        self.closed = False
        self.refresh()

    # What may have changed

    def refresh(self) -> None:
        """Everything may have."""
        self.refresh_pools()
        for name in sorted({*self._models, *self._names()}):
            self.refresh_model(name)

    def refresh_model(self, name: str) -> None:
        """A model may have, in its versions, labels, policy or owner."""
        self._update("model", "name", self._models, name, self._describe(name))

    def refresh_pools(self) -> None:
        """A pool may have come, gone, or changed what it does."""
        pools = self._describe_pools()
        for pool_id in {**self._pools, **pools}:
            self._update("pool", "id", self._pools, pool_id, pools.get(pool_id))

    def set_rates(self, rates: Mapping[tuple[str, int], Value]) -> None:
        """The traffic of versions, by name and number; those that are left out have none."""
        changed = [value for key, value in rates.items() if self._rates.get(key) != value]
        self._rates = dict(rates)
        if changed:
            self._tell("rates", {"versions": changed})

    def close(self) -> None:
        """The server ends: so does every reader."""
        self.closed = True
        self._wake()

    # What readers ask

    def snapshot(self) -> Event:
        """Everything as it stands."""
        data = {
            "models": [self._models[name] for name in sorted(self._models)],
            "pools": [*self._pools.values()],
            "rates": [*self._rates.values()],
        }
        return Event(self._seq, "snapshot", data)

    def since(self, seq: int) -> list[Event] | None:
        """The changes after the one of that number; None where they are not all known any more."""
        missed = self._seq - seq
        if not 0 <= missed <= len(self._kept):
            return None
        return [*itertools.islice(self._kept, len(self._kept) - missed, None)]

    def changed(self) -> asyncio.Future[None]:
        """Done with the next change, or the end; to be waited for, and not to be cancelled."""
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _update(
        self, kind: str, key_name: str, known: dict[str, Value], key: str, value: Value | None
    ) -> None:
        if value == known.get(key):
            return
        if value is None:
            del known[key]
            self._tell(kind, {key_name: key, "removed": True})
        else:
            known[key] = value
            self._tell(kind, value)

    def _tell(self, kind: str, data: Value) -> None:
        self._seq += 1
        self._kept.append(Event(self._seq, kind, data))
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.set_result(None)
