"""What the server knows of one pool: its client, and the states of its servables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import Code, ServingError
from ..state import EventBus, ManagerState, ServableState, ServableStateMonitor
from .pool_client import PoolClient

if TYPE_CHECKING:
    from ..announcement import PoolInfo
    from ..servable import ModelSpec
    from .admission import Limits

_ASK_TIMEOUT_S = 5.0
_CALL_TIMEOUT_S = 10.0


class PoolMirror:
    """One pool as the server sees it, over all its restarts.

    Fed by the pool's events. When a managed pool is lost its models stay in the mirror, in START,
    until the next process tells of them. A notebook pool does not come back: its models stay in
    END. In both cases :meth:`client_for` explains.

    Attributes:
        pool_id: The same over restarts.
        kind: ``managed`` or ``notebook``.
        monitor: The last known states.
        labels: Of published models, by the model's name; the configuration has those of others.
        ended: Whether it was a notebook's and has gone for good.
        bus: Tells every state after the monitor has taken it in.
        on_labels: Called with the name of a published model whose labels have changed.
    """

    def __init__(
        self, pool_id: str, kind: str, limits: Limits | None = None, name: str = ""
    ) -> None:
        self.pool_id = pool_id
        self.kind = kind
        self.info: PoolInfo | None = None
        self.ended = False
        self.monitor = ServableStateMonitor()
        self.labels: dict[str, Mapping[str, int]] = {}
        self.bus = EventBus()
        self.on_labels: Callable[[str], None] = lambda _name: None
        self._limits = limits
        self._name = name
        self._client: PoolClient | None = None
        self._stale: set[str] = set()
        self._awaited: dict[str, set[int]] = {}  # what was available when the pool was lost

    @property
    def name(self) -> str:
        """What users call it: the notebook's name, where it is one's."""
        return self._name or (self.info.name if self.info is not None else "") or self.kind

    @property
    def client(self) -> PoolClient | None:
        """The connection, while there is one."""
        client = self._client
        return client if client is not None and not client.closed.done() else None

    async def ask(self, method: str) -> Mapping[str, Any]:
        """What the pool tells by a call without parameters.

        Empty where it tells nothing: it is lost, too busy to answer soon, or of an older release.
        """
        if self.client is None:
            return {}
        try:
            told: dict[str, Any] = await self.client.call(method, timeout_s=_ASK_TIMEOUT_S)
        except ServingError:
            return {}
        return told

    async def attach(self, info: PoolInfo) -> PoolClient:
        """Connect to the pool's process, and mirror it from now on.

        Raises:
            ServingError: UNAVAILABLE where it does not answer.
        """
        early: list[dict[str, Any]] = []  # told between the snapshot and its reading
        client = PoolClient(info, early.append, self._limits)
        await client.connect()
        try:
            snapshot = await client.call("subscribe", timeout_s=_CALL_TIMEOUT_S)
        except BaseException:
            client.close()
            raise
        self.info, self._client = info, client
        client.closed.add_done_callback(lambda _: self._lost(client))
        self.labels = snapshot.get("labels", {})  # an older pool has none
        for state in snapshot["states"]:
            self._update(ServableState.from_dict(state))
        for event in early:
            self._event(event)
        client.on_event = self._event
        return client

    def detach(self) -> None:
        """Let go of the pool's process."""
        if self._client is not None:
            self._client.close()

    def client_for(self, spec: ModelSpec) -> PoolClient:
        """The way to a model of this pool.

        Raises:
            ServingError: UNAVAILABLE where the pool is gone, or has been restarted and does not yet
                have again what it had; NOT_FOUND where it will not come back.
        """
        if self.ended:
            text = f"Model {spec.name} is not served any more: {self._epitaph}"
            raise ServingError(Code.NOT_FOUND, text)
        client = self.client
        if client is None:
            raise ServingError(Code.UNAVAILABLE, "The model pool is gone")
        awaited = self._awaited.get(spec.name)
        if awaited is not None and (spec.version is None or spec.version in awaited):
            text = f"The model pool has been restarted and is loading model {spec.name} again"
            raise ServingError(Code.UNAVAILABLE, text)
        return client

    def is_live(self, name: str) -> bool:
        """Whether the pool has a version of the model that has not ended."""
        return any(s.state is not ManagerState.END for s in self.monitor.versions(name))

    def is_available(self, name: str) -> bool:
        """Whether a version of the model answers."""
        return any(s.state is ManagerState.AVAILABLE for s in self.monitor.versions(name))

    def is_coming(self, name: str) -> bool:
        """Whether a version of the model is on its way."""
        return any(s.state < ManagerState.AVAILABLE for s in self.monitor.versions(name))

    def awaits(self, name: str) -> bool:
        """Whether a model that the pool is to serve has not come to an outcome yet."""
        states = {s.state for s in self.monitor.versions(name)}
        return ManagerState.AVAILABLE not in states and states != {ManagerState.END}

    def forget(self) -> None:
        """The pool will not come back: drop its states, and tell nobody."""
        self.monitor.clear()
        self.labels = {}
        self._stale.clear()
        self._awaited.clear()

    def _event(self, event: dict[str, Any]) -> None:
        if event.get("event") == "state":
            self._update(ServableState.from_dict(event["state"]))
        elif event.get("event") == "labels":
            self.labels[event["name"]] = event["labels"]
            self.on_labels(event["name"])

    def _update(self, state: ServableState) -> None:
        name = state.id.name
        if name in self._stale:
            self._stale.discard(name)
            self._replace([s for s in self.monitor.states() if s.id.name != name])
        self.monitor.update(state)
        if name in self._awaited and state.state >= ManagerState.AVAILABLE:
            # A version that the new process does not know by now will not come.
            coming = {
                s.id.version
                for s in self.monitor.versions(name)
                if s.state < ManagerState.AVAILABLE
            }
            self._awaited[name] &= coming
            if not self._awaited[name]:
                del self._awaited[name]
        self.bus.publish(state)

    @property
    def _epitaph(self) -> str:
        return f"the kernel that published it ({self.name}) has ended"

    def _end(self) -> None:
        self.ended = True
        self.labels = {}
        now = time.time()
        for state in self.monitor.states():
            if state.state is not ManagerState.END:
                ended = replace(
                    state,
                    state=ManagerState.END,
                    code=Code.UNAVAILABLE,
                    message=f"{self._epitaph[0].upper()}{self._epitaph[1:]}",
                    since=now,
                )
                self.monitor.update(ended)
                self.bus.publish(ended)

    def _lost(self, client: PoolClient) -> None:
        if client is not self._client:
            return
        self._client = None
        if self.kind == "notebook":
            self._end()
            return
        states = self.monitor.states()
        self._stale = {state.id.name for state in states}
        for state in states:
            if state.state is ManagerState.AVAILABLE:
                self._awaited.setdefault(state.id.name, set()).add(state.id.version)
        now = time.time()
        self._replace(
            [
                s
                if s.state is ManagerState.END
                else replace(s, state=ManagerState.START, since=now)
                for s in states
            ]
        )
        for state in self.monitor.states():
            self.bus.publish(state)

    def _replace(self, states: list[ServableState]) -> None:
        self.monitor.clear()
        for state in states:
            self.monitor.update(state)
