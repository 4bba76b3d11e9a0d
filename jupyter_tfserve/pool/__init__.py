"""The pool: a kernel process that holds servables and answers request bytes with response bytes.

:func:`start` is all that a kernel needs to run; the server calls it in a kernel of its own, the
magic in the user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pool import Pool

_running: Pool | None = None


def start(options: str) -> None:
    """Start this process's pool and return once it listens and is announced.

    A process has one pool; a second call leaves the first as it is.

    Args:
        options: JSON of :class:`.options.PoolOptions`.

    Raises:
        ImportError: where TensorFlow is missing in this environment.
    """
    global _running  # noqa: PLW0603  (one pool a process, as one process owns the device)
    if _running is None:
        from .options import PoolOptions
        from .pool import Pool

        pool = Pool(PoolOptions.from_json(options))
        pool.start()
        _running = pool
