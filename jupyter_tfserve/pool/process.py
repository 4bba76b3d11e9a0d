"""What the operating system tells of this process."""

from __future__ import annotations

import os
from pathlib import Path


def rss_bytes() -> int | None:
    """Resident memory of this process; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGESIZE")
