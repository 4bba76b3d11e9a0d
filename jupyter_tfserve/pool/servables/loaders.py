"""Which kind of servable a version's directory holds, and how it is loaded."""

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
