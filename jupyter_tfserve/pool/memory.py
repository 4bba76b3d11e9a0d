"""Giving back to the system what a large call has used."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

LARGE = 16 << 20
"""The least body after which it is worth it, in bytes."""


def _find_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


_trim = _find_trim()


def give_back() -> None:
    """Return the allocator's free pages, where it is glibc's; elsewhere nothing.

    glibc keeps what was freed, up to tens of megabytes for each thread that ever called.
    """
    if _trim is not None:
        _trim(0)
