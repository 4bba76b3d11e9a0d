"""Models of this process's memory, served beside or instead of those on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import Code, ServingError, invalid_argument
from ..state import ManagerState
from .core.labels import unavailable_version
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
    """Counts versions up and hands live models to the core; may be used from any thread.

    Of each model the version that was published last is served, and every one that has a label.

    Attributes:
        on_labels: Called with a model's name and its labels once these have changed.
    """

    def __init__(self, core: ServerCore[Servable], batching: Batching) -> None:
        self.on_labels: Callable[[str, Mapping[str, int]], None] = lambda _name, _labels: None
        self._core = core
        self._batching = batching
        self._models: dict[str, _Model] = {}
        self._lock = threading.Lock()

    def publish(
        self,
        name: str,
        servable: Servable,
        version: int | None = None,
        labels: Mapping[str, int | None] | None = None,
        *,
        greedy: bool = False,
    ) -> int:
        """Serve a model; an older version without a label goes once this one is available.

        Args:
            name: the model's.
            servable: what answers; closed when the version is unloaded.
            version: its number; None for the one after the highest so far.
            labels: the versions that labels stand for from then on, None for this one. Other labels
                stay as they are.
            greedy: whether calls that happen to wait are run as one batch.

        Returns:
            The version's number, once it is AVAILABLE in this pool.

        Raises:
            ServingError: ALREADY_EXISTS for a number that was used before; FAILED_PRECONDITION for
                a label of a version that is not there. What is served is then as it was.
        """
        with self._lock:
            version = self._number(name, version)
            before = self._models.get(name)
            model = _Model(version, {version: LiveLoader(servable)})
            if before is not None:
                model.labels |= before.labels
                # Labels that move leave their versions only once they have moved.
                model.loaders |= before.labelled()
            for label, wanted in (labels or {}).items():
                model.labels[label] = version if wanted is None else wanted
                loaders = model.loaders if before is None else model.loaders | before.loaders
                model.loaders[model.labels[label]] = _there(name, model.labels[label], loaders)
            if greedy:
                self._batching.publish(name, servable)
            with FirstOutcomes(self._core.bus, [name]) as outcomes:
                self._core.aspire(name, model.loaders.items())
                self._models[name] = model
                outcomes.wait(_TIMEOUT_S, "model")
            if labels:
                self._apply_labels(name, model)
            return version

    def label(self, name: str, label: str, version: int | None) -> Mapping[str, int]:
        """Let a label stand for a version, or remove it with None; returns all labels.

        Raises:
            ServingError: NOT_FOUND for a model that is not published here, or a label to remove
                that it does not have; FAILED_PRECONDITION for a version that is not there.
        """
        with self._lock:
            model = self._get(name)
            if version is not None:
                _there(name, version, model.loaders)
                model.labels[label] = version
            elif model.labels.pop(label, None) is None:
                raise ServingError(Code.NOT_FOUND, f"Model {name} has no label {label}")
            self._apply_labels(name, model)
            return dict(model.labels)

    def labels(self) -> dict[str, Mapping[str, int]]:
        """The labels of all models that have some, by the model's name."""
        with self._lock:
            models = self._models.items()
            return {name: dict(model.labels) for name, model in models if model.labels}

    def unpublish(self, name: str) -> None:
        """Withdraw a model, and wait until the calls under way are answered.

        Raises:
            ServingError: NOT_FOUND where it is not published here; DEADLINE_EXCEEDED where its
                calls do not end.
        """
        with self._lock:
            self._get(name)
            ended = threading.Event()

            def on_state(_state: ServableState) -> None:
                if all(s.state is ManagerState.END for s in self._core.monitor.versions(name)):
                    ended.set()

            unsubscribe = self._core.bus.subscribe(on_state)
            try:
                del self._models[name]
                self._core.aspire(name, ())
                self.on_labels(name, {})
                if not ended.wait(_TIMEOUT_S):
                    text = f"Model {name} is withdrawn, but calls of it have not ended yet"
                    raise ServingError(Code.DEADLINE_EXCEEDED, text)
            finally:
                unsubscribe()

    def _number(self, name: str, version: int | None) -> int:
        known = {state.id.version for state in self._core.monitor.versions(name)}
        if version is None:
            version = max(known, default=0) + 1
        if not 0 <= version <= _MAX_VERSION:
            raise invalid_argument(f"A version is a whole number from 0 on; got {version}")
        if version in known:
            text = f"Version {version} of model {name} was published before; the next is "
            raise ServingError(Code.ALREADY_EXISTS, text + str(max(known) + 1))
        return version

    def _get(self, name: str) -> _Model:
        if name not in self._models:
            raise ServingError(Code.NOT_FOUND, f"Model {name} is not published here")
        return self._models[name]

    def _apply_labels(self, name: str, model: _Model) -> None:
        """Put the labels in force, then let versions go that have lost theirs."""
        self._core.set_labels(name, model.labels)
        model.loaders = {model.latest: model.loaders[model.latest], **model.labelled()}
        self._core.aspire(name, model.loaders.items())
        self.on_labels(name, dict(model.labels))


@dataclass(slots=True)
class _Model:
    """What is served under a name: the latest version, those with labels, and their loaders."""

    latest: int
    loaders: dict[int, LiveLoader]
    labels: dict[str, int] = field(default_factory=dict)

    def labelled(self) -> dict[int, LiveLoader]:
        """The loaders of the versions that have a label."""
        return {version: self.loaders[version] for version in self.labels.values()}


def _there(name: str, version: int, loaders: Mapping[int, LiveLoader]) -> LiveLoader:
    if version not in loaders:
        raise unavailable_version(name, version)
    return loaders[version]
