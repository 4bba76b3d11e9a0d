"""This process's memory: how much there is, and what can be given back to the system."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

LARGE = 16 << 20
"""The least body, in bytes, after which it is worth it to give memory back."""


def rss_bytes() -> int | None:
    """Resident memory of this process; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGESIZE")


def give_back() -> None:
    """Return the allocator's free pages, where it is glibc's; elsewhere nothing.

    glibc keeps what was freed, in an arena for each few threads and up to tens of megabytes for
    each thread that ever called: without this, a process that swaps versions grows to several
    times what they need.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def collect_and_give_back() -> None:
    """Free what only cycles hold as well; takes milliseconds."""
    gc.collect()
    give_back()


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
