"""Which way of running a graph is faster: where it matters, both are tried on made-up input.

In the caller's thread, one operation after the other, a run has by far the least overhead, and that
is the best for nearly all models. But branches of a graph could run side by side, which shows in
models that are slow.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

import numpy as np

from ...codec.dtypes import Json, dtype_of
from ...errors import ServingError
from .saved_model import SavedModelServable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...servable import SignatureInfo
    from .base import Servable

log = logging.getLogger(__name__)

_LONG_S = 0.002
"""A run that takes less, in seconds, has no branches that are worth other threads."""
_GAIN = 0.75
"""Under load other callers use the other processors, so it takes a clear gain to change."""
_MAX_BYTES = 512 << 20
"""Larger models are not loaded twice for it."""
_RUNS = 3
_NUMERIC = (Json.NUMBER, Json.INTEGER, Json.BOOL)


def load_saved_model(path: str, tags: Sequence[str]) -> SavedModelServable:
    """Load a SavedModel to be run in the way that is faster.

    Raises:
        ServingError: with TensorFlow's reason.
    """
    alone = SavedModelServable(path, tags)
    footprint = alone.footprint
    if footprint.device != "CPU" or footprint.host_bytes > _MAX_BYTES or (os.cpu_count() or 1) < 2:
        return alone
    seconds = _seconds_of(alone)
    if seconds is None or seconds < _LONG_S:
        return alone
    side_by_side = SavedModelServable(path, tags, side_by_side=True)
    other = _seconds_of(side_by_side)
    if other is None or other > seconds * _GAIN:
        side_by_side.close()
        return alone
    log.info("Branches of %s run side by side: %.3g s, not %.3g s", path, other, seconds)
    alone.close()
    return side_by_side


def _seconds_of(servable: Servable) -> float | None:
    """How long a run takes on one made-up row, or None where that cannot be found out.

    Only signatures that keep no state are run. The one that takes longest counts.
    """
    found = [
        seconds
        for signature, row in _rows(servable)
        if (seconds := _time(servable, signature, row))
    ]
    return max(found, default=None)


def _rows(servable: Servable) -> Iterator[tuple[str, Mapping[str, np.ndarray]]]:
    for key, signature in servable.signatures.items():
        row = _made_up(signature)
        if row and signature.outputs and servable.why_not_repeatable(key) is None:
            yield key, row


def _made_up(signature: SignatureInfo) -> dict[str, np.ndarray] | None:
    """Zeros of the least shape that the signature takes; None where it does not say enough."""
    row = {}
    for alias, info in signature.inputs.items():
        dtype = dtype_of(info.dtype)
        if info.shape is None or dtype.json not in _NUMERIC:
            return None
        row[alias] = np.zeros([max(size, 1) for size in info.shape], dtype.numpy)
    return row


def _time(servable: Servable, signature: str, row: Mapping[str, np.ndarray]) -> float | None:
    """The shortest of a few runs, after one that prepares what is prepared once."""
    shortest: float | None = None
    try:
        servable.call(signature, row)
        for _ in range(_RUNS):
            start = time.perf_counter()
            servable.call(signature, row)
            seconds = time.perf_counter() - start
            shortest = seconds if shortest is None else min(shortest, seconds)
            if seconds < _LONG_S:
                break
    except ServingError:
        return None  # zeros are no input that it takes
    return shortest
