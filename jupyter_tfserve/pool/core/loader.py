"""What the core knows of a model: something that can be loaded and unloaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from ...config import ModelConfig
from ...servable import ServableId

T = TypeVar("T")


class Loader(ABC, Generic[T]):
    """Brings one version into memory and out again; each loader is used once.

    The manager calls both methods in a thread of that version's own, never at the same time. Both
    may block: other versions go on meanwhile. Making a loader must be cheap.
    """

    @abstractmethod
    def load(self) -> T:
        """Load, initialise and warm up; what is returned answers requests from many threads.

        Called again on the same loader where a failed load is retried.

        Raises:
            ServingError: becomes the version's status as it is; any other exception becomes
                UNKNOWN with its text.
        """

    @abstractmethod
    def unload(self) -> None:
        """Free what :meth:`load` returned; called once, after the last handle was released."""


LoaderFactory: TypeAlias = Callable[[ModelConfig, ServableId, str], Loader[T]]
"""Makes the loader of a version from its model's configuration, its id and its directory."""
