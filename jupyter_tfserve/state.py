"""The states of servables: who announces them, who remembers them, how they are told.

The five states and their order are TensorFlow Serving's (``core/servable_state.h``). The pool
publishes them on an :class:`EventBus`; a :class:`ServableStateMonitor` remembers them, in the pool
and, fed by the pool's events, in the server.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .errors import Code, ServingError
from .servable import ModelSpec, ServableId

log = logging.getLogger(__name__)


class ManagerState(IntEnum):
    """The life of a version, by the numbers of ``GetModelStatusResponse``; it only goes forward."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(frozen=True, slots=True)
class ServableState:
    """One version's state; an error jumps to END with a code and text of its own.

    ``since`` is seconds since the epoch.
    """

    id: ServableId
    state: ManagerState
    code: Code = Code.OK
    message: str = ""
    since: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_dict` reads them back."""
        return {
            "name": self.id.name,
            "version": self.id.version,
            "state": self.state.name,
            "code": self.code.name,
            "message": self.message,
            "since": self.since,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ServableState:
        """Read what :meth:`to_dict` wrote."""
        return cls(
            ServableId(data["name"], data["version"]),
            ManagerState[data["state"]],
            Code[data["code"]],
            data["message"],
            data["since"],
        )


class EventBus:
    """Hands every published state to every subscriber, in order, in the publisher's thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._subscribers: list[Callable[[ServableState], None]] = []

    def subscribe(self, callback: Callable[[ServableState], None]) -> Callable[[], None]:
        """Call ``callback`` with every state from now on; returns the function that ends it."""
        with self._lock:
            self._subscribers.append(callback)

        def unsubscribe() -> None:
            with self._lock:
                if callback in self._subscribers:
                    self._subscribers.remove(callback)

        return unsubscribe

    def publish(self, state: ServableState) -> None:
        """Tell every subscriber; publishers in several threads take turns.

        A subscriber that fails is logged, and costs nobody else the event.
        """
        with self._lock:
            for callback in tuple(self._subscribers):
                try:
                    callback(state)
                except Exception:
                    log.exception("A subscriber failed to take in the state of %s", state.id)


class ServableStateMonitor:
    """Remembers the last state of every version seen, with a bounded tail of ended ones.

    TensorFlow Serving keeps ended versions for ever; here the newest ``max_ended`` of a model stay,
    and a failed version stays while it is the newest. Of the models that have nothing but ended
    versions, the ``max_ended_models`` that ended last stay.
    """

    def __init__(self, max_ended: int = 20, max_ended_models: int = 200) -> None:
        self._max_ended = max_ended
        self._max_ended_models = max_ended_models
        self._lock = threading.Lock()
        self._models: dict[str, dict[int, ServableState]] = {}

    def update(self, state: ServableState) -> None:
        """Take a state in; this is the subscriber of an :class:`EventBus`."""
        with self._lock:
            versions = self._models.setdefault(state.id.name, {})
            versions[state.id.version] = state
            if state.state is ManagerState.END:
                self._forget_oldest(versions)
                self._forget_oldest_models()

    def _forget_oldest(self, versions: dict[int, ServableState]) -> None:
        ended = [s for s in versions.values() if s.state is ManagerState.END]
        newest = max(versions)
        surplus = len(ended) - self._max_ended
        for state in sorted(ended, key=lambda s: (s.since, s.id.version))[: max(surplus, 0)]:
            if state.id.version != newest or state.code is Code.OK:
                del versions[state.id.version]

    def _forget_oldest_models(self) -> None:
        ended = [
            (max(state.since for state in versions.values()), name)
            for name, versions in self._models.items()
            if all(state.state is ManagerState.END for state in versions.values())
        ]
        surplus = len(ended) - self._max_ended_models
        for _, name in sorted(ended)[: max(surplus, 0)]:
            del self._models[name]

    def clear(self) -> None:
        """Forget everything; the server does so when a pool is gone."""
        with self._lock:
            self._models.clear()

    def names(self) -> list[str]:
        """The names of all models seen, sorted."""
        with self._lock:
            return sorted(name for name, versions in self._models.items() if versions)

    def versions(self, name: str) -> list[ServableState]:
        """All versions of a model that are remembered, highest first; empty for an unknown one."""
        with self._lock:
            return [s for _, s in sorted(self._models.get(name, {}).items(), reverse=True)]

    def states(self) -> list[ServableState]:
        """Every version of every model."""
        return [state for name in self.names() for state in self.versions(name)]

    def get(self, servable: ServableId) -> ServableState | None:
        """The state of one version, or None where it was never seen."""
        with self._lock:
            return self._models.get(servable.name, {}).get(servable.version)

    def status(self, spec: ModelSpec) -> list[ServableState]:
        """The states that a status request for ``spec`` shows; a label is ignored, as there.

        Raises:
            ServingError: NOT_FOUND for a model or version never seen.
        """
        if spec.version is not None:
            if state := self.get(ServableId(spec.name, spec.version)):
                return [state]
            text = f"Could not find version {spec.version} of model {spec.name}"
            raise ServingError(Code.NOT_FOUND, text)
        if versions := self.versions(spec.name):
            return versions
        text = f"Could not find any versions of model {spec.name}"
        raise ServingError(Code.NOT_FOUND, text)


_STATUS = """  {
   "version": "%d",
   "state": "%s",
   "status": {
    "error_code": "%s",
    "error_message": %s
   }
  }"""
_NO_STATUS = '{\n "model_version_status": []\n}\n'


def status_json(states: Iterable[ServableState]) -> bytes:
    """The body of a status answer, laid out as TensorFlow Serving's protobuf printer does."""
    versions = ",\n".join(
        _STATUS
        % (
            state.id.version,
            state.state.name,
            state.code.name,
            json.dumps(state.message, ensure_ascii=False),
        )
        for state in states
    )
    text = f'{{\n "model_version_status": [\n{versions}\n ]\n}}\n' if versions else _NO_STATUS
    return text.encode("utf-8", "surrogateescape")
