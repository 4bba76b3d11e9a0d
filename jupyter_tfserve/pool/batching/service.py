"""A pool's batching: which versions are batched, and how."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .loader import BatchedLoader
from .parameters import BatchingParameters
from .parameters_text import load_parameters, load_version_parameters
from .queues import VersionQueues
from .records import Observer, ignore
from .threads import BatchThreads
from .version import Mode, VersionBatching

if TYPE_CHECKING:
    from ...config import ModelServerConfig
    from ..core.loader import Loader
    from ..servables.base import Servable
    from .options import BatchingOptions


class Batching:
    """Decides for each version when it is loaded, and again when its model's options change.

    Attributes:
        parameters: TensorFlow Serving's, where they are in use; else None.
    """

    def __init__(self, options: BatchingOptions, observe: Observer = ignore) -> None:
        """Read the parameters and start the threads, where they are asked for.

        Args:
            options: what is asked for.
            observe: told of each batch that was run.

        Raises:
            ServingError: what is wrong with the parameters file.
        """
        self._observe = observe
        self._per_version = options.enable_per_model_batching_parameters
        self._default = Mode.OFF
        self._threads: BatchThreads | None = None
        self.parameters: BatchingParameters | None = None
        if options.enable_batching:
            self._default = Mode.QUEUE
            parameters = BatchingParameters(thread_pool_name="model_server_batch_threads")
            if options.batching_parameters_file:
                parameters = load_parameters(options.batching_parameters_file)
            parameters.check_threads()
            self.parameters = parameters
            self._threads = BatchThreads(parameters.num_batch_threads, parameters.thread_pool_name)
        elif options.enable_greedy_batching:
            self._default = Mode.GREEDY
        # Guards what follows: which models are batched how, and the versions that are loaded.
        self._lock = threading.Lock()
        self._modes: dict[str, Mode] = {}
        self._loaded: dict[Servable, tuple[str, BatchingParameters | None]] = {}

    @property
    def has_queues(self) -> bool:
        """Whether runs may wait in queues."""
        return self._threads is not None

    @property
    def thread_pool_name(self) -> str:
        """What metrics call the threads of batches."""
        return self.parameters.thread_pool_name if self.parameters is not None else ""

    def configure(self, config: ModelServerConfig) -> None:
        """A configuration is in force: what it says of batching holds for loaded versions too."""
        with self._lock:
            self._modes = {
                model.name: Mode(model.batching) for model in config.models if model.batching
            }
            for servable, (name, parameters) in self._loaded.items():
                self._switch(servable, name, parameters)

    def loader(self, name: str, path: str, loader: Loader[Servable]) -> Loader[Servable]:
        """A loader that batches what ``loader`` brings: a version in the directory ``path``."""
        return BatchedLoader(self, name, path, loader)

    def version_parameters(self, path: str) -> BatchingParameters | None:
        """What the queues of the version in ``path`` are to be made by; None where it has none.

        Raises:
            ServingError: why they cannot be made so.
        """
        if self.parameters is None:
            return None
        parameters: BatchingParameters | None = self.parameters
        if self._per_version:
            parameters = load_version_parameters(path)
        if parameters is not None:
            parameters.check_queue()
        return parameters

    def attach(self, name: str, servable: Servable, parameters: BatchingParameters | None) -> None:
        """A version of the model ``name`` has been loaded, and is about to be called."""
        with self._lock:
            servable.batching = VersionBatching(name, self._observe)
            self._loaded[servable] = name, parameters
            self._switch(servable, name, parameters)

    def publish(self, name: str, servable: Servable) -> None:
        """Batch a model that is in no configuration greedily, from before it is first called."""
        servable.batching = VersionBatching(name, self._observe)
        servable.batching.switch(Mode.GREEDY, servable.why_not_batched())

    def detach(self, servable: Servable) -> None:
        """A version is not called any more."""
        with self._lock:
            self._loaded.pop(servable, None)
            servable.batching.stop()

    def close(self) -> None:
        """Run what waits, and end the threads."""
        if self._threads is not None:
            self._threads.close()

    def _switch(self, servable: Servable, name: str, parameters: BatchingParameters | None) -> None:
        mode = self._modes.get(name, self._default)
        if mode is Mode.QUEUE and parameters is None:
            mode = Mode.OFF
        if mode is servable.batching.mode:
            return
        if mode is Mode.OFF:
            servable.batching.stop()
            return
        queues = None
        if mode is Mode.QUEUE:
            assert parameters is not None
            assert self._threads is not None
            queues = VersionQueues(servable, parameters, self._threads)
        servable.batching.switch(mode, servable.why_not_batched(), queues)
