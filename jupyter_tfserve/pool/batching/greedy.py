"""Greedy batching: whatever waits for the same model is run as one.

Nothing waits for company: a lone run starts at once, and what arrives while it lasts is the next
batch. So one caller loses nothing, and many gain.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ...errors import ServingError
from ..model_run import MAX_MERGED_ROWS, ModelRun

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from ..call import Call

Outcome = Exception | None
"""What a run failed with."""


def run_merged(runs: Sequence[ModelRun]) -> list[Outcome]:
    """Run several of one key as one; where that fails, each alone, so that none fails another."""
    if len(runs) > 1:
        try:
            runs[0].run_with(runs[1:])
        except ServingError:
            pass
        else:
            return [None] * len(runs)
    return [_outcome(run) for run in runs]


def _outcome(run: ModelRun) -> Outcome:
    try:
        run.run_and_look()
    except Exception as error:  # noqa: BLE001 - the caller is told
        return error
    return None


def by_key(calls: Sequence[Call]) -> tuple[Sequence[Call], list[list[Call]]]:
    """The calls that run alone, and groups of those that run as one; failed ones are in neither."""
    if len(calls) == 1:
        return calls, []
    alone = []
    groups: dict[Hashable, list[Call]] = {}
    for call in calls:
        if call.response is not None:
            continue
        key = call.run.key()
        if key is None:
            alone.append(call)
        else:
            groups.setdefault(key, []).append(call)
    return alone, [part for group in groups.values() for part in _parts(group)]


def _parts(group: list[Call]) -> list[list[Call]]:
    """Cut a group where its rows become too many."""
    parts: list[list[Call]] = []
    rows = MAX_MERGED_ROWS
    for call in group:
        rows += call.run.rows
        if rows > MAX_MERGED_ROWS:
            parts.append([])
            rows = call.run.rows
        parts[-1].append(call)
    return parts


class Merger:
    """Merges the runs of worker threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, list[tuple[ModelRun, Callable[[Outcome, float], None]]]] = {}

    def submit(self, key: Hashable, run: ModelRun, done: Callable[[Outcome, float], None]) -> None:
        """Run it, now or with the next batch of its key.

        ``done`` is called in some worker's thread with what the run failed with, if it did, and
        with the seconds of computing that it took. The calling thread may be held for a while to
        run other callers' batches.
        """
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is not None:
                waiting.append((run, done))
                return
            self._waiting[key] = []
        batch = [(run, done)]
        while batch:
            started = time.thread_time()
            outcomes = run_merged([run for run, _ in batch])
            seconds = (time.thread_time() - started) / len(batch)
            for (_, tell), outcome in zip(batch, outcomes, strict=True):
                tell(outcome, seconds)
            with self._lock:
                batch = self._next(key)

    def _next(self, key: Hashable) -> list[tuple[ModelRun, Callable[[Outcome, float], None]]]:
        waiting = self._waiting[key]
        if not waiting:
            del self._waiting[key]
            return []
        rows = count = 0
        for run, _ in waiting:
            rows += run.rows
            if count and rows > MAX_MERGED_ROWS:
                break
            count += 1
        self._waiting[key] = waiting[count:]
        return waiting[:count]
