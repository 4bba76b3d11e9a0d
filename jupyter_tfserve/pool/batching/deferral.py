"""Calls whose runs wait in a queue, and end in the thread that runs their batch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..call import conclude

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ...wire import Response
    from ..call import Call
    from ..model_run import ModelRun
    from .queues import VersionQueues


def queue_of(run: ModelRun) -> tuple[VersionQueues, Hashable] | None:
    """Where a run is to wait, and as what; None where it is to be run without company."""
    queues = run.queues
    if queues is None:
        return None
    key = run.key()
    return None if key is None else (queues, key)


def wait_in(
    queue: tuple[VersionQueues, Hashable], call: Call, tell: Callable[[Response], None]
) -> None:
    """Let the run of a call wait; it is then answered and closed, and ``tell`` called, elsewhere.

    The call's ``withdraw`` is set.

    Raises:
        ServingError: where the queue refuses the run; the call is left as it was.
    """
    queues, key = queue
    call.withdraw = queues.submit(call.run, key, partial(_end, call, tell))


def _end(call: Call, tell: Callable[[Response], None], error: Exception | None) -> None:
    tell(conclude(call, error))
