"""The machine's memory, or the container's."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfserve.server.host_memory import HostMemory, read

KIB = 1024


def write(root: Path, limit: str | None, current: int = 0) -> Path:
    (root / "proc").mkdir()
    lines = "MemTotal:        1000 kB\nMemFree: 1 kB\nMemAvailable:     400 kB\nHugePages: 0\n"
    (root / "proc/meminfo").write_text(lines)
    if limit is not None:
        group = root / "sys/fs/cgroup"
        group.mkdir(parents=True)
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{current}\n")
        (group / "memory.stat").write_text(f"anon 5\ninactive_file {10 * KIB}\n")
    return root


@pytest.mark.parametrize(
    ("limit", "current", "memory"),
    [
        (None, 0, HostMemory(1000 * KIB, 400 * KIB)),
        ("max", 0, HostMemory(1000 * KIB, 400 * KIB)),
        (str(9999 * KIB), 0, HostMemory(1000 * KIB, 400 * KIB)),
        (str(500 * KIB), 200 * KIB, HostMemory(500 * KIB, 310 * KIB)),
        (str(900 * KIB), 100 * KIB, HostMemory(900 * KIB, 400 * KIB)),
        (str(100 * KIB), 200 * KIB, HostMemory(100 * KIB, 0)),
    ],
)
def test_the_smaller_of_machine_and_container_counts(
    tmp_path: Path, limit: str | None, current: int, memory: HostMemory
) -> None:
    assert read(write(tmp_path, limit, current)) == memory


def test_a_system_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    memory = read(tmp_path)
    assert memory.free_bytes is None
    assert memory.used_bytes is None


def test_this_machine_has_memory() -> None:
    memory = read()
    assert memory.total_bytes
    assert memory.used_bytes
