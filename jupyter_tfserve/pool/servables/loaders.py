"""How servables come to be loaded: from a version's path, or from this process's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.loader import Loader
from .executors import load_saved_model
from .kinds import Kind, find_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Servable


class PathLoader(Loader["Servable"]):
    """Loads one version from the file system, whatever kind of model it is.

    Args:
        path: the version's directory, or its only file.
        tags: of the graph to load from a SavedModel.
        prefer_tflite: whether a ``model.tflite`` is taken before any other kind.
        interpreters: how many calls of a TFLite model may run at a time; 0 is one for each CPU.
    """

    def __init__(
        self,
        path: str,
        *,
        tags: Sequence[str] = ("serve",),
        prefer_tflite: bool = False,
        interpreters: int = 0,
    ) -> None:
        self._path = path
        self._tags = tags
        self._prefer_tflite = prefer_tflite
        self._interpreters = interpreters
        self._servable: Servable | None = None

    def load(self) -> Servable:
        """Restore the model; see :meth:`Loader.load`."""
        self._servable = servable = self._load()
        servable.path = self._path
        return servable

    def unload(self) -> None:
        """Close the model."""
        if self._servable is not None:
            self._servable.close()
            self._servable = None

    def _load(self) -> Servable:
        kind, file = find_model(self._path, prefer_tflite=self._prefer_tflite)
        match kind:
            case Kind.SAVED_MODEL:
                return load_saved_model(file, self._tags)
            case Kind.KERAS:
                from .keras_file import exported

                with exported(file) as folder:
                    return load_saved_model(folder, ("serve",))
            case Kind.TFLITE:
                from .tflite import TFLiteServable

                return TFLiteServable(file, self._interpreters)


class LiveLoader(Loader["Servable"]):
    """Hands out a servable that was made beforehand: a model that is in memory already."""

    def __init__(self, servable: Servable) -> None:
        self._servable: Servable | None = servable

    def load(self) -> Servable:
        """Return it; see :meth:`Loader.load`."""
        assert self._servable is not None
        return self._servable

    def unload(self) -> None:
        """Close it."""
        if self._servable is not None:
            self._servable.close()
            self._servable = None
