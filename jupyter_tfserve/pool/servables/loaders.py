"""How servables come to be loaded: from a version's directory, or from this process's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.loader import Loader
from .saved_model import SavedModelServable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Servable


class SavedModelLoader(Loader["Servable"]):
    """Loads one version of a SavedModel."""

    def __init__(self, path: str, tags: Sequence[str]) -> None:
        self._path = path
        self._tags = tags
        self._servable: Servable | None = None

    def load(self) -> Servable:
        """Restore the model; see :meth:`Loader.load`."""
        self._servable = SavedModelServable(self._path, self._tags)
        return self._servable

    def unload(self) -> None:
        """Close the model."""
        if self._servable is not None:
            self._servable.close()
            self._servable = None


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
