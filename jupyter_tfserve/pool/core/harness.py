"""One version in the manager's care, and the handles that keep it loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from .policy import Phase

if TYPE_CHECKING:
    from ...errors import ServingError
    from ...servable import ServableId
    from .loader import Loader

T = TypeVar("T")


def _unchanging() -> Hashable:
    return None


@dataclass(frozen=True, slots=True)
class AspiredVersion(Generic[T]):
    """A version that a source wants served, and how to load it.

    Attributes:
        version: Its number.
        make_loader: Called when the version is first loaded, in its load thread.
        origin: Where it comes from. The same number from elsewhere is another servable: the one
            that is loaded makes way for it.
        fingerprint: What the load reads, boiled down. A failed version is tried again when this
            changes. May block on the file system.
    """

    version: int
    make_loader: Callable[[], Loader[T]]
    origin: Hashable = None
    fingerprint: Callable[[], Hashable] = field(default=_unchanging)


class Harness(Generic[T]):
    """One version's life: its phase for the manager, its servable and handles for requests.

    The manager's lock guards all but the handles. Those are kept without one, since every request
    passes here: a set's ``add`` and ``discard`` are atomic, and whoever takes a handle looks at
    ``_closed`` after adding it, while :meth:`drain` looks at the set after closing. One of the two
    always sees the other.
    """

    __slots__ = (
        "_closed",
        "_handles",
        "_released",
        "abandoned",
        "aspired",
        "attempts",
        "cancelled",
        "error",
        "fingerprint",
        "id",
        "loader",
        "phase",
        "retry_at",
        "servable",
        "serving",
    )

    def __init__(self, servable_id: ServableId, aspired: AspiredVersion[T]) -> None:
        self.id = servable_id
        self.aspired = aspired
        self.phase = Phase.NEW
        self.loader: Loader[T] | None = None
        self.servable: T | None = None
        self.serving = False
        self.cancelled = False
        self.abandoned = False
        self.attempts = 0
        self.retry_at: float | None = None
        self.error: ServingError | None = None
        self.fingerprint: Hashable = None
        self._handles: set[ServableHandle[T]] = set()
        self._closed = False
        self._released = threading.Condition(threading.Lock())

    def load(self) -> None:
        """Make the loader on the first attempt, and load; blocks."""
        self.attempts += 1
        self.fingerprint = self.aspired.fingerprint()
        if self.loader is None:
            self.loader = self.aspired.make_loader()
        self.servable = self.loader.load()

    def unload(self) -> None:
        """Let go of the servable and free it; blocks."""
        self.servable = None
        loader, self.loader = self.loader, None
        if loader is not None:
            loader.unload()

    def acquire(self) -> ServableHandle[T] | None:
        """A handle, or None once the version is on its way out."""
        handle: ServableHandle[T] = ServableHandle(self)
        self._handles.add(handle)
        if self._closed:
            handle.release()
            return None
        return handle

    def release(self, handle: ServableHandle[T]) -> None:
        """Take a handle back; called by the handle, once."""
        self._handles.discard(handle)
        if self._closed:
            with self._released:
                self._released.notify_all()

    def drain(self) -> None:
        """Hand out no more handles and wait until the last one is released."""
        self._closed = True
        with self._released:
            while self._handles:
                self._released.wait()


class ServableHandle(Generic[T]):
    """Keeps one version loaded while a request runs; a context manager, used by one thread.

    Attributes:
        id: The version that was resolved.
        servable: What its loader returned; gone once the handle is released.
    """

    __slots__ = ("_harness", "id", "servable")

    servable: T

    def __init__(self, harness: Harness[T]) -> None:
        self._harness: Harness[T] | None = harness
        self.id = harness.id
        # None only where the harness is closed, and then the handle never leaves it.
        self.servable = harness.servable  # type: ignore[assignment]

    def release(self) -> None:
        """Allow the version to be unloaded; a second call does nothing."""
        harness = self._harness
        if harness is not None:
            self._harness = None
            del self.servable
            harness.release(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()
