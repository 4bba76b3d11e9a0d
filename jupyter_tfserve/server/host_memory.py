"""The memory of this machine, or of the container that the server lives in."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_KIB = 1024


@dataclass(frozen=True, slots=True)
class HostMemory:
    """In bytes; what the system does not tell is None."""

    total_bytes: int | None = None
    free_bytes: int | None = None

    @property
    def used_bytes(self) -> int | None:
        """What is not free, where both are known."""
        if self.total_bytes is None or self.free_bytes is None:
            return None
        return self.total_bytes - self.free_bytes


def read(root: Path = Path("/")) -> HostMemory:
    """Memory that processes can still get counts as free, though caches hold it.

    A container's limit (cgroup v2, of the server's own group) counts as the machine's.
    """
    machine = _machine(root)
    limit = _group(root)
    if limit is None or machine.total_bytes is None or limit.total_bytes is None:
        return machine
    if limit.total_bytes >= machine.total_bytes:
        return machine
    free = [m.free_bytes for m in (machine, limit) if m.free_bytes is not None]
    return HostMemory(limit.total_bytes, max(0, min(free)) if free else None)


def _machine(root: Path) -> HostMemory:
    with contextlib.suppress(OSError, ValueError, KeyError):
        fields = _fields(root / "proc/meminfo")
        return HostMemory(fields["MemTotal:"] * _KIB, fields["MemAvailable:"] * _KIB)
    with contextlib.suppress(OSError, ValueError):  # no Linux: the total at least
        return HostMemory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return HostMemory()


def _group(root: Path) -> HostMemory | None:
    group = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError, ValueError, KeyError):
        limit = int((group / "memory.max").read_text())  # "max" is none
        used = int((group / "memory.current").read_text())
        cached = _fields(group / "memory.stat")["inactive_file"]
        return HostMemory(limit, limit - used + cached)
    return None


def _fields(path: Path) -> dict[str, int]:
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}
