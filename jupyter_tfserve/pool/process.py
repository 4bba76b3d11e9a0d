"""This process's memory: how much there is, and what can be given back."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any


def rss_bytes() -> int | None:
    """Resident memory of this process; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGESIZE")


def release_memory() -> None:
    """Free what only cycles hold, and give free memory back to the system; takes milliseconds.

    glibc keeps what was freed, in an arena for each few threads: without this, a process that
    swaps versions grows to several times what they need.
    """
    gc.collect()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
