"""The lifecycle as one object: configuration in, servable handles out."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from ...config import ModelConfig, ModelServerConfig
from ...errors import Code, ServingError, invalid_argument
from ...servable import ModelSpec, ServableId
from ...state import EventBus, ServableState, ServableStateMonitor
from .directory import fingerprint
from .harness import AspiredVersion, ServableHandle
from .labels import LabelTable, check_available, check_labels, resolve_label
from .manager import AspiredVersionsManager
from .policy import preserve_availability, preserve_resources
from .source import FileSystemSource
from .waiting import FirstOutcomes

if TYPE_CHECKING:
    from .loader import Loader, LoaderFactory

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CoreOptions:
    """How the core behaves; names are TensorFlow Serving's flags where it has one.

    Attributes:
        file_system_poll_wait_seconds: Time between polls; 0 polls once for each configuration, a
            negative number only on :meth:`ServerCore.poll_now`.
        max_num_load_retries: Attempts after the first failed load.
        load_retry_interval_micros: Time between two attempts.
        num_load_threads: Versions that may load at a time; 0 stands for one for each CPU.
        allow_version_labels_for_unavailable_models: Whether a label that is not in use may be
            assigned to a version that is not available.
        resource_preserving: Unload the old version before the new one loads.
        max_ended: How many ended versions of a model stay listed.
    """

    file_system_poll_wait_seconds: float = 1.0
    max_num_load_retries: int = 0
    load_retry_interval_micros: int = 60_000_000
    num_load_threads: int = 0
    allow_version_labels_for_unavailable_models: bool = False
    resource_preserving: bool = False
    max_ended: int = 20


class ServerCore(Generic[T]):
    """Serves what a configuration lists; may be used from any thread, and as a context manager.

    Args:
        loader_factory: Makes the loader of a version; called in that version's load thread.
        options: See :class:`CoreOptions`.
        on_config: Told of each configuration as it comes into force, before its models load.

    Attributes:
        bus: Every change of a version's state; subscribers must return at once.
        monitor: The last state of every version.
    """

    def __init__(
        self,
        loader_factory: LoaderFactory[T],
        options: CoreOptions | None = None,
        on_config: Callable[[ModelServerConfig], None] = lambda _config: None,
    ) -> None:
        options = options or CoreOptions()
        self._options = options
        self._loader_factory = loader_factory
        self._on_config = on_config
        self.bus = EventBus()
        self.monitor = ServableStateMonitor(options.max_ended)
        self.bus.subscribe(self.monitor.update)
        policy = preserve_resources if options.resource_preserving else preserve_availability
        self._manager: AspiredVersionsManager[T] = AspiredVersionsManager(
            self.bus,
            policy=policy,
            num_load_threads=options.num_load_threads or os.cpu_count() or 1,
            max_num_load_retries=options.max_num_load_retries,
            load_retry_interval_micros=options.load_retry_interval_micros,
        )
        self._source = FileSystemSource(self._aspire_paths)
        # Guards the configuration and what follows from it; never held while models load.
        self._lock = threading.Lock()
        self._config: ModelServerConfig | None = None
        self._labels: LabelTable | None = None  # of configured and of other models
        self._own_labels: LabelTable = {}  # of the others alone
        self._waiting: tuple[FirstOutcomes, ...] = ()
        self._closed = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="tfserve-poll", daemon=True)
        if options.file_system_poll_wait_seconds > 0:
            self._poller.start()

    def __enter__(self) -> ServerCore[T]:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def handle(self, spec: ModelSpec) -> ServableHandle[T]:
        """A handle on the version that a request names; to be released when the request is done.

        Raises:
            ServingError: INVALID_ARGUMENT without a name or for an unknown label, NOT_FOUND for a
                version that is not available.
        """
        if not spec.name:
            raise invalid_argument("ModelSpec has no name specified.")
        if spec.label is None:
            return self._manager.acquire(spec.name, spec.version)
        return self._manager.acquire(spec.name, resolve_label(self._labels, spec.name, spec.label))

    def status(self, spec: ModelSpec) -> list[ServableState]:
        """The states that a status request shows, highest version first.

        Raises:
            ServingError: NOT_FOUND for a model or version never seen.
        """
        return self.monitor.status(spec)

    def reload_config(
        self, config: ModelServerConfig, *, wait: bool | float = True, replay: bool = False
    ) -> None:
        """Replace the whole configuration: models that are not listed any more are unloaded.

        A configuration that is refused leaves everything as it was. One that is accepted stays in
        force, even if models then fail to load. Reloads do not wait for each other's models.

        Args:
            config: All models to serve.
            wait: True waits until every new model has one version available or failed, or turns
                out to have none to load; a number waits that many seconds at most.
            replay: The configuration was in force in an earlier process: its labels may point at
                versions that are yet to be loaded.

        Raises:
            ServingError: INVALID_ARGUMENT or FAILED_PRECONDITION for a refusal; UNKNOWN naming the
                new models that failed; DEADLINE_EXCEEDED; UNAVAILABLE once closed.
        """
        with ExitStack() as stack:
            with self._lock:
                self._check_open()
                kind = "servable" if self._config is None else "model"
                old = {model.name: model for model in self.config().models}
                _check_platforms(config, old)
                config.validate()
                labels = check_labels(
                    config,
                    self._labels or {},
                    self.monitor,
                    allow_unavailable=replay
                    or self._options.allow_version_labels_for_unavailable_models,
                )
                for model in config.models:
                    self._own_labels = _without(self._own_labels, model.name)
                self._labels = {**self._own_labels, **labels}
                self._config = config
                self._on_config(config)
                new = [model.name for model in config.models if model.name not in old]
                outcomes = stack.enter_context(self._following(new if wait else ()))
                self._source.set_models(config.models)
            if self._options.file_system_poll_wait_seconds >= 0:
                self._source.poll()
            for name in new:
                reason = self._source.starved(name)
                if reason is not None:
                    outcomes.give_up(name, reason)
                if (state := self._manager.outcome(name)) is not None:
                    outcomes.take(state)
            outcomes.wait(None if wait is True else float(wait), kind)

    def config(self) -> ModelServerConfig:
        """The configuration in force; empty before the first."""
        return self._config or ModelServerConfig()

    def labels(self, name: str) -> Mapping[str, int]:
        """The labels of a model and the versions they stand for."""
        return (self._labels or {}).get(name, {})

    def problem(self, name: str) -> str | None:
        """What kept versions of a configured model from being found at the last poll, in words."""
        return self._source.problem(name)

    def problems(self) -> dict[str, str]:
        """All such problems, by the model's name."""
        return self._source.problems()

    def look(self, model: ModelConfig) -> str | None:
        """Why a model would have no version to serve, were it configured so; None where it has."""
        return self._source.look(model)

    def poll_now(self) -> None:
        """Look for versions without waiting for the next poll; blocks on the file system only."""
        self._source.poll()

    def aspire(self, name: str, versions: Iterable[tuple[int, Loader[T]]]) -> None:
        """Replace the versions of a model that is in no configuration, such as a published one.

        A configuration that lists the name later takes it over.

        Args:
            name: The model's name.
            versions: All that is to be served under it, none to withdraw it. A version that is
                there already keeps its loader; new content needs a new number.

        Raises:
            ServingError: ALREADY_EXISTS where the configuration owns the name; UNAVAILABLE once
                closed.
        """
        with self._lock:
            self._check_own(name)
            aspired = [AspiredVersion(n, partial(_itself, loader)) for n, loader in versions]
            if not aspired:
                self._set_own_labels(name, {})
            self._labels = self._labels or {}
            self._manager.set_aspired(name, aspired)

    def set_labels(self, name: str, labels: Mapping[str, int]) -> None:
        """Replace the labels of a model that is in no configuration.

        Raises:
            ServingError: FAILED_PRECONDITION for a version that is not available; ALREADY_EXISTS
                and UNAVAILABLE as :meth:`aspire` does.
        """
        with self._lock:
            self._check_own(name)
            for version in labels.values():
                check_available(name, version, self.monitor)
            self._set_own_labels(name, labels)

    def close(self, timeout: float = 30.0) -> None:
        """Unload everything and end all threads, within about ``timeout`` seconds."""
        with self._lock:
            self._closed.set()
            self._source.set_models(())
        self._manager.close(timeout)
        if self._poller.is_alive():
            self._poller.join(timeout)

    def _set_own_labels(self, name: str, labels: Mapping[str, int]) -> None:
        added = {name: dict(labels)} if labels else {}
        self._own_labels = {**_without(self._own_labels, name), **added}
        self._labels = {**_without(self._labels or {}, name), **added}

    def _check_own(self, name: str) -> None:
        self._check_open()
        for model in self.config().models:
            if model.name == name:
                raise ServingError(
                    Code.ALREADY_EXISTS,
                    f"Model {name} is already configured, with base path {model.base_path}",
                )

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ServingError(Code.UNAVAILABLE, "The server core is closed")

    @contextmanager
    def _following(self, names: Iterable[str]) -> Iterator[FirstOutcomes]:
        with FirstOutcomes(self.bus, names) as outcomes:
            self._waiting = (*self._waiting, outcomes)
            try:
                yield outcomes
            finally:
                with self._lock:
                    self._waiting = tuple(w for w in self._waiting if w is not outcomes)

    def _aspire_paths(self, model: ModelConfig, paths: Mapping[int, str]) -> None:
        """Turn the paths that the source found into loaders, in the polling thread."""
        if not paths:
            reason = self._source.starved(model.name) or f"Model {model.name} was removed"
            for outcomes in self._waiting:
                outcomes.give_up(model.name, reason)
        self._manager.set_aspired(
            model.name, [self._aspired(model, *item) for item in paths.items()]
        )

    def _aspired(self, model: ModelConfig, version: int, path: str) -> AspiredVersion[T]:
        return AspiredVersion(
            version,
            partial(self._loader_factory, model, ServableId(model.name, version), path),
            origin=model.base_path,
            fingerprint=partial(fingerprint, path),
        )

    def _poll(self) -> None:
        while not self._closed.wait(self._options.file_system_poll_wait_seconds):
            try:
                self._source.poll()
            except Exception:
                log.exception("A poll of the file system failed; the next one tries again")


def _itself(loader: Loader[T]) -> Loader[T]:
    return loader


def _without(labels: LabelTable, name: str) -> LabelTable:
    return {key: value for key, value in labels.items() if key != name}


def _check_platforms(config: ModelServerConfig, old: Mapping[str, ModelConfig]) -> None:
    for model in config.models:
        before = old.get(model.name)
        if before is not None and model.platform and model.platform != before.platform:
            raise invalid_argument(
                "Illegal to change a model's platform. "
                f"For model {model.name} platform was {before.platform} and new platform "
                f"requested is {model.platform}"
            )
