"""Long calls in threads of their own; runs that may be merged meet there."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from .batching.deferral import queue_of, wait_in
from .batching.greedy import Merger, Outcome
from .call import Call, conclude

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..wire import Response


class Workers:
    """As many threads as are asked for; 0 for as many as TensorFlow Serving's REST API has."""

    def __init__(self, num_threads: int = 0) -> None:
        number = num_threads if num_threads > 0 else 4 * (os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(number, "tfserve-worker")
        self._merger = Merger()

    @property
    def queue_depth(self) -> int:
        """Calls that wait for a thread."""
        return self._threads._work_queue.qsize()  # noqa: SLF001 - it is told nowhere else

    def submit(self, call: Call, tell: Callable[[Response], None]) -> Future[None]:
        """Run a call to its answer and tell its pace; ``tell`` is called in some thread.

        Cancelling the future keeps a call from being begun; ``tell`` is not called then.
        """
        return self._threads.submit(self._begin, call, tell)

    def _begin(self, call: Call, tell: Callable[[Response], None]) -> None:
        wall, computing = time.perf_counter(), time.thread_time()
        error: Exception | None = None
        try:
            run = call.run = call.read()
            queue = queue_of(run)
            if queue is not None:
                pace = call.pace
                wait_in(queue, call, tell)
                # Reading is all that this thread did, and all that the loop's would have to do.
                pace.ran_in_worker(time.perf_counter() - wall, time.thread_time() - computing)
                return
            key = run.key()
            if key is not None:
                end = partial(self._end, call, tell, time.thread_time() - computing)
                self._merger.submit(key, run, end)
                return
            run.run()
        except Exception as failed:  # noqa: BLE001 - whatever it is, the caller is told
            error = failed
        response = conclude(call, error)
        call.pace.ran_in_worker(time.perf_counter() - wall, time.thread_time() - computing)
        tell(response)

    @staticmethod
    def _end(
        call: Call, tell: Callable[[Response], None], read: float, outcome: Outcome, run: float
    ) -> None:
        """What is left to do after a merged run; ``read`` and ``run`` are seconds of computing."""
        computing = time.thread_time()
        response = conclude(call, outcome)
        seconds = read + run + time.thread_time() - computing
        call.pace.ran_in_worker(seconds, seconds)
        tell(response)

    def close(self) -> None:
        """Begin nothing more; calls that run are left to end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)
