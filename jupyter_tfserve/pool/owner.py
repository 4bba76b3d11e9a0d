"""When the process that a pool belongs to has ended."""

from __future__ import annotations

import asyncio
import os

from ..announcement import is_alive

_POLL_S = 0.5
"""How often to look where the system cannot tell, in seconds."""


async def owner_ended(pid: int) -> None:
    """Return as soon as the process ``pid`` of this host has ended.

    The kernel that holds the pool also watches its parent, once a second, and then ends without
    clearing up; so this has to be told at once, where the system can (Linux).
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # not Linux, or a sandbox that does not allow it
        while is_alive(pid):  # noqa: ASYNC110  (nothing tells)
            await asyncio.sleep(_POLL_S)
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
