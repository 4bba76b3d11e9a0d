"""Puts batching between a loader and the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.loader import Loader

if TYPE_CHECKING:
    from ..servables.base import Servable
    from .service import Batching


class BatchedLoader(Loader["Servable"]):
    """Loads as another loader does; the version is batched as its model's options say."""

    def __init__(self, batching: Batching, name: str, path: str, loader: Loader[Servable]) -> None:
        self._batching = batching
        self._name = name
        self._path = path
        self._loader = loader
        self._servable: Servable | None = None

    def load(self) -> Servable:
        """Load, and find out what can be batched; see :meth:`Loader.load`."""
        parameters = self._batching.version_parameters(self._path)  # if they are wrong, at once
        self._servable = servable = self._loader.load()
        self._batching.attach(self._name, servable, parameters)
        return servable

    def unload(self) -> None:
        """Unload it; no batch of it is waiting any more."""
        servable, self._servable = self._servable, None
        if servable is not None:
            self._batching.detach(servable)
        self._loader.unload()
