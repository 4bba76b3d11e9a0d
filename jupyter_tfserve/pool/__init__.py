"""The pool: a kernel process that holds servables and answers request bytes with response bytes.

:func:`start` is all that a kernel needs to run; the server calls it in a kernel of its own, the
magic in the user's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pool import Pool

_running: Pool | None = None


def running() -> Pool | None:
    """This process's pool, if it has one that has not ended."""
    return _running if _running is not None and not _running.ended else None


def start(options: str) -> None:
    """Start this process's pool and return once it listens and is announced.

    A process has one pool; a second call leaves the first as it is, unless that has ended.

    Args:
        options: JSON of :class:`.options.PoolOptions`.

    Raises:
        ImportError: where TensorFlow is missing in this environment.
        ServingError: FAILED_PRECONDITION where TensorFlow does not see the device that it is for.
    """
    global _running  # noqa: PLW0603  (one pool a process, as one process owns the device)
    if running() is None:
        from .options import PoolOptions

        parsed = PoolOptions.from_json(options)
        if parsed.kind == "managed":
            # Before TensorFlow is imported: its start-up is chatty. A user's kernel stays as it is.
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
            # What is run without a session is to take no more of a GPU than it needs, either.
            os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
        from .pool import Pool

        pool = Pool(parsed)
        pool.start()
        _running = pool
