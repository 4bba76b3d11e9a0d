"""Waits for the first outcome of models that were just configured."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ...errors import Code, ServingError
from ...state import EventBus, ManagerState, ServableState

if TYPE_CHECKING:
    from ...servable import ServableId


class FirstOutcomes:
    """Follows new models until each has one version AVAILABLE or ended.

    Opened before the models are aspired, so that no event is missed. Of versions that were there
    before only those count that are said to stay, by :meth:`take`; others may be on their way out.
    A context manager.
    """

    def __init__(self, bus: EventBus, names: Iterable[str]) -> None:
        self._lock = threading.Condition()
        self._pending = set(names)
        self._started: set[ServableId] = set()
        self._failures: dict[str, str] = {}
        self._unsubscribe = bus.subscribe(self._on_state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._unsubscribe()

    def give_up(self, name: str, reason: str) -> None:
        """Count a model as failed that will not get a version for now."""
        error = ServingError(Code.NOT_FOUND, reason)
        with self._lock:
            self._settle(name, f"{{name: {name}}} due to error: {error}")

    def wait(self, timeout: float | None, kind: str) -> None:
        """Block until every model has its outcome, or for ``timeout`` seconds.

        Args:
            timeout: In seconds; None waits for ever.
            kind: What the error calls them, ``model`` or ``servable``.

        Raises:
            ServingError: UNKNOWN, listing each model whose first outcome was a failure;
                DEADLINE_EXCEEDED where some had none in time.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: not self._pending, timeout):
                names = ", ".join(sorted(self._pending))
                raise ServingError(
                    Code.DEADLINE_EXCEEDED,
                    f"{len(self._pending)} {kind}(s) did not become available in time: {names}",
                )
            if self._failures:
                listed = "".join(f"{{{text}}}, " for _, text in sorted(self._failures.items()))
                raise ServingError(
                    Code.UNKNOWN,
                    f"{len(self._failures)} {kind}(s) did not become available: {listed}}}",
                )

    def take(self, state: ServableState) -> None:
        """Count the state of a version that is there already, and stays."""
        with self._lock:
            self._settle_by(state)

    def _on_state(self, state: ServableState) -> None:
        with self._lock:
            if state.state is ManagerState.START:
                if state.id.name in self._pending:
                    self._started.add(state.id)
            elif state.id in self._started:
                self._settle_by(state)

    def _settle_by(self, state: ServableState) -> None:
        if state.state is ManagerState.AVAILABLE:
            self._settle(state.id.name, None)
        elif state.state is ManagerState.END:
            error = ServingError(state.code, state.message)
            self._settle(state.id.name, f"{state.id} due to error: {error}")

    def _settle(self, name: str, failure: str | None) -> None:
        if name not in self._pending:
            return
        self._pending.remove(name)
        if failure is not None:
            self._failures[name] = failure
        self._lock.notify_all()
