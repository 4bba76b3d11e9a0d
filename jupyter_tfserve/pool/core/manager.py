"""Brings what is loaded in line with what is aspired."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from ...errors import Code, ServingError
from ...state import EventBus, ManagerState, ServableState
from .policy import Phase, Step, TransitionPolicy, preserve_availability
from .roster import Roster

if TYPE_CHECKING:
    from .harness import AspiredVersion, Harness, ServableHandle

T = TypeVar("T")
_Task = Callable[[], None]

log = logging.getLogger(__name__)


class AspiredVersionsManager(Generic[T]):
    """Loads what sources aspire, unloads what they no longer do, hands out handles.

    One manager thread decides; it sleeps until something changes and never blocks on a model. Each
    load and unload runs in a thread of its own, so that a slow model holds up no other. States are
    published from those threads, no lock held: AVAILABLE after handles can be had, UNLOADING before
    they no longer can, in order for each version.

    Args:
        bus: Where states are published.
        policy: Which action comes next for a model.
        num_load_threads: How many versions may load at a time.
        max_num_load_retries: How often a failed load is repeated before the version is given up.
        load_retry_interval_micros: Time between two attempts; the state stays LOADING.
    """

    def __init__(
        self,
        bus: EventBus,
        *,
        policy: TransitionPolicy = preserve_availability,
        num_load_threads: int = 4,
        max_num_load_retries: int = 0,
        load_retry_interval_micros: int = 60_000_000,
    ) -> None:
        self._bus = bus
        self._policy = policy
        self._num_load_threads = num_load_threads
        self._max_num_load_retries = max_num_load_retries
        self._retry_interval = load_retry_interval_micros / 1e6
        self._changed = threading.Condition(threading.Lock())
        self._roster: Roster[T] = Roster()
        self._num_loading = 0
        self._closing = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="tfserve-manager", daemon=True)
        self._thread.start()

    def acquire(self, name: str, version: int | None = None) -> ServableHandle[T]:
        """A handle on a version, or on the highest one available; from any thread, never blocks.

        Raises:
            ServingError: NOT_FOUND where it is not available, whether unknown, loading or gone.
        """
        while True:
            versions = self._roster.serving.get(name)
            harness = versions.get(version) if versions is not None else None
            if harness is None:
                wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
                raise ServingError(Code.NOT_FOUND, f"Servable not found for request: {wanted}")
            handle = harness.acquire()
            if handle is not None:
                return handle
            # Withdrawn since the look-up: the table has been replaced by now.

    def set_aspired(self, name: str, versions: Iterable[AspiredVersion[T]]) -> None:
        """Replace all that is aspired for ``name``: what is left out will be unloaded.

        Called by sources, from any thread, as often as they like. Blocks only for the fingerprints
        of failed versions. A failed version is tried again once its fingerprint has changed.
        """
        aspired = {version.version: version for version in versions}
        mended = self._mended(name, aspired)
        with self._changed:
            if self._closing:
                return
            for harness in mended:
                harness.cancelled = True
            if self._roster.aspire(name, aspired) or mended:
                self._changed.notify_all()

    def outcome(self, name: str) -> ServableState | None:
        """What has come of a model's aspired versions, if no event will tell: all are through.

        A version that is aspired anew before its unload has begun never leaves.
        """
        roster = self._roster
        with self._changed:
            harnesses = roster.harnesses.get(name, {})
            stay = [h for h in harnesses.values() if roster.is_aspired(h) and not h.cancelled]
            for harness in stay:
                if harness.phase is Phase.READY:
                    return _state(harness, ManagerState.AVAILABLE, None)
            failed = [harness for harness in stay if harness.phase is Phase.ERROR]
            if failed and len(failed) == len(roster.aspired.get(name, {})):
                return _state(failed[0], ManagerState.END, failed[0].error)
        return None

    def close(self, timeout: float = 30.0) -> None:
        """Unload everything and end the manager thread.

        Waits for running handles and loads for at most ``timeout`` seconds; what is not done by
        then is abandoned, and published as ended.
        """
        roster = self._roster
        with self._changed:
            self._closing = True
            for name in list(roster.aspired):
                roster.aspire(name, {})
            self._changed.notify_all()
            self._changed.wait_for(lambda: not roster.harnesses, timeout)
            self._stopped = True
            abandoned = list(roster)
            for harness in abandoned:
                harness.abandoned = True
            roster.serving = {}
            self._changed.notify_all()
        self._thread.join(timeout)
        for harness in abandoned:
            log.warning("%s was still %s at the end", harness.id, harness.phase.name.lower())
            self._bus.publish(_state(harness, ManagerState.END, _cancelled()))

    # In the manager thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while (task := self._wait_for_task()) is not None:
            task()

    def _wait_for_task(self) -> _Task | None:
        with self._changed:
            while not self._stopped:
                task = self._next_task()
                if task is not None:
                    return task
                self._changed.wait(self._seconds_to_retry())
            return None

    def _next_task(self) -> _Task | None:
        """The one thing to do next, its bookkeeping done; the rest waits for the next round."""
        lapsed = self._roster.take_lapsed()
        if lapsed is not None:
            self._changed.notify_all()  # close() waits for the last one to go
            return partial(self._lapse, lapsed)
        added = self._roster.add_aspired()
        if added is not None:
            return partial(self._publish, added, ManagerState.START)
        loads = []
        for name, harnesses in self._roster.harnesses.items():
            action = self._policy(self._roster.snapshots(name))
            if action is not None:
                harness = harnesses[action.version]
                if action.step is Step.UNLOAD:
                    harness.phase = Phase.UNLOADING
                    return partial(self._in_thread, self._unload, harness)
                loads.append(harness)
        now = time.monotonic()
        loads += [h for h in self._roster if h.retry_at is not None and h.retry_at <= now]
        if loads and self._num_loading < self._num_load_threads:
            self._num_loading += 1
            loads[0].phase = Phase.LOADING
            loads[0].retry_at = None
            return partial(self._in_thread, self._load, loads[0])
        return None

    def _seconds_to_retry(self) -> float | None:
        if self._num_loading >= self._num_load_threads:
            return None
        due = [harness.retry_at for harness in self._roster if harness.retry_at is not None]
        return max(min(due) - time.monotonic(), 0.0) if due else None

    def _lapse(self, harness: Harness[T]) -> None:
        if harness.phase is not Phase.ERROR:  # a failed one has been published as ended
            self._publish(harness, ManagerState.END, harness.error or _cancelled())

    # In a version's own thread --------------------------------------------------------------------

    def _in_thread(self, work: Callable[[Harness[T]], None], harness: Harness[T]) -> None:
        name = f"tfserve-{harness.phase.name.lower()}-{harness.id.name}-{harness.id.version}"
        threading.Thread(target=work, args=(harness,), name=name, daemon=True).start()

    def _load(self, harness: Harness[T]) -> None:
        if not harness.attempts:
            log.info("Loading servable: %s", harness.id)
            self._publish(harness, ManagerState.LOADING)
        try:
            harness.load()
        except BaseException as error:  # noqa: BLE001 - a model's code may raise anything
            self._load_failed(harness, error)
            return
        with self._changed:
            cancelled = harness.cancelled
            if not cancelled:
                self._roster.set_serving(harness, serving=True)
        if cancelled:
            self._free(harness)
            self._publish(harness, ManagerState.END, _cancelled())
        else:
            log.info("Loaded servable: %s", harness.id)
            self._publish(harness, ManagerState.AVAILABLE)
        with self._changed:
            self._num_loading -= 1
            if cancelled:
                self._roster.remove(harness)
            else:
                harness.phase = Phase.READY
            self._changed.notify_all()

    def _load_failed(self, harness: Harness[T], error: BaseException) -> None:
        log.warning("Loading servable: %s failed", harness.id, exc_info=error)
        harness.error = _as_serving_error(error)
        with self._changed:
            if harness.attempts <= self._max_num_load_retries and not harness.cancelled:
                harness.retry_at = time.monotonic() + self._retry_interval
                self._num_loading -= 1
                self._changed.notify_all()
                return
        self._publish(harness, ManagerState.END, harness.error)
        with self._changed:
            self._num_loading -= 1
            harness.phase = Phase.ERROR
            harness.loader = None
            self._changed.notify_all()

    def _unload(self, harness: Harness[T]) -> None:
        self._publish(harness, ManagerState.UNLOADING)
        with self._changed:
            self._roster.set_serving(harness, serving=False)
        harness.drain()
        self._free(harness)
        log.info("Unloaded servable: %s", harness.id)
        self._publish(harness, ManagerState.END)
        with self._changed:
            self._roster.remove(harness)
            self._changed.notify_all()

    def _free(self, harness: Harness[T]) -> None:
        try:
            harness.unload()
        except BaseException:
            log.exception("Unloading servable: %s failed; what it held may leak", harness.id)

    # Elsewhere ------------------------------------------------------------------------------------

    def _mended(self, name: str, aspired: Mapping[int, AspiredVersion[T]]) -> list[Harness[T]]:
        """The failed versions whose files have changed since; blocks on the file system."""
        with self._changed:
            failed = [
                (harness, aspired[version])
                for version, harness in self._roster.harnesses.get(name, {}).items()
                if harness.phase is Phase.ERROR and version in aspired
            ]
        return [harness for harness, now in failed if now.fingerprint() != harness.fingerprint]

    def _publish(
        self, harness: Harness[T], state: ManagerState, error: ServingError | None = None
    ) -> None:
        if harness.abandoned:
            return
        try:
            self._bus.publish(_state(harness, state, error))
        except Exception:
            log.exception("A subscriber failed at %s of %s", state.name, harness.id)


def _cancelled() -> ServingError:
    return ServingError(Code.CANCELLED, "Loading of servable cancelled")


def _as_serving_error(error: BaseException) -> ServingError:
    # A new one: the traceback of the old would keep the frames of the load alive.
    if isinstance(error, ServingError):
        return ServingError(error.code, error.message)
    return ServingError(Code.UNKNOWN, f"{type(error).__name__}: {error}")


def _state(harness: Harness[T], state: ManagerState, error: ServingError | None) -> ServableState:
    code, message = (error.code, error.message) if error is not None else (Code.OK, "")
    return ServableState(harness.id, state, code, message, time.time())
