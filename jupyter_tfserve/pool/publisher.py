"""Models of this process's memory, served beside or instead of those on disk."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..errors import Code, ServingError, invalid_argument
from ..state import ManagerState
from .core.waiting import FirstOutcomes
from .servables.loaders import LiveLoader

if TYPE_CHECKING:
    from ..state import ServableState
    from .batching.service import Batching
    from .core.server_core import ServerCore
    from .servables.base import Servable

_TIMEOUT_S = 30.0
_MAX_VERSION = 2**63 - 1


class Publisher:
    """Counts versions up and hands live models to the core; may be used from any thread."""

    def __init__(self, core: ServerCore[Servable], batching: Batching) -> None:
        self._core = core
        self._batching = batching
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def publish(
        self, name: str, servable: Servable, version: int | None = None, *, greedy: bool = False
    ) -> int:
        """Serve a model; an older version of it goes once this one is available.

        Args:
            name: the model's.
            servable: what answers; closed when the version is unloaded.
            version: its number; None for the one after the highest so far.
            greedy: whether calls that happen to wait are run as one batch.

        Returns:
            The version's number, once it is AVAILABLE in this pool.

        Raises:
            ServingError: ALREADY_EXISTS for a number that was used before.
        """
        with self._lock:
            known = {state.id.version for state in self._core.monitor.versions(name)}
            if version is None:
                version = max(known, default=0) + 1
            if not 0 <= version <= _MAX_VERSION:
                raise invalid_argument(f"A version is a whole number from 0 on; got {version}")
            if version in known:
                text = f"Version {version} of model {name} was published before; the next is "
                raise ServingError(Code.ALREADY_EXISTS, text + str(max(known) + 1))
            if greedy:
                self._batching.publish(name, servable)
            with FirstOutcomes(self._core.bus, [name]) as outcomes:
                self._core.aspire(name, [(version, LiveLoader(servable))])
                self._names.add(name)
                outcomes.wait(_TIMEOUT_S, "model")
            return version

    def unpublish(self, name: str) -> None:
        """Withdraw a model, and wait until the calls under way are answered.

        Raises:
            ServingError: NOT_FOUND where it is not published here; DEADLINE_EXCEEDED where its
                calls do not end.
        """
        with self._lock:
            if name not in self._names:
                raise ServingError(Code.NOT_FOUND, f"Model {name} is not published here")
            ended = threading.Event()

            def on_state(_state: ServableState) -> None:
                if all(s.state is ManagerState.END for s in self._core.monitor.versions(name)):
                    ended.set()

            unsubscribe = self._core.bus.subscribe(on_state)
            try:
                self._names.discard(name)
                self._core.aspire(name, ())
                if not ended.wait(_TIMEOUT_S):
                    text = f"Model {name} is withdrawn, but calls of it have not ended yet"
                    raise ServingError(Code.DEADLINE_EXCEEDED, text)
            finally:
                unsubscribe()
