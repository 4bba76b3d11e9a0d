"""Announcements: complete, private, and never believed."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from jupyter_tfserve.announcement import (
    PoolInfo,
    announce,
    announcement_path,
    find_pools,
    is_alive,
    make_socket_dir,
    read_announcement,
    withdraw,
)


@pytest.fixture(autouse=True)
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path / "runtime"


@pytest.fixture
def info() -> PoolInfo:
    return PoolInfo(
        pool_id="p1",
        kind="managed",
        owner_pid=os.getpid(),
        pid=os.getpid(),
        host=socket.gethostname(),
        address="unix:/nowhere/s",
        secret="s" * 64,
    )


@pytest.fixture
def dead_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.fixture
def zombie_pid() -> Iterator[int]:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    yield ended.pid
    ended.wait()


def test_an_announcement_reads_back_and_only_its_user_can(info: PoolInfo) -> None:
    path = announce(info)
    assert read_announcement("p1") == info
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_pools_are_found_by_the_server_that_owns_them(info: PoolInfo) -> None:
    announce(info)
    other = replace(info, pool_id="p2", owner_pid=os.getppid())
    announce(other)
    assert find_pools(os.getpid()) == [info]
    assert find_pools() == [info, other]


def test_the_dead_of_this_host_are_removed_with_their_socket(info: PoolInfo, dead_pid: int) -> None:
    directory = make_socket_dir("p1")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "s"))
        dead = replace(info, pid=dead_pid, address=f"unix:{directory / 's'}")
        path = announce(dead)
        assert find_pools() == []
    assert not path.exists()
    assert not directory.exists()


def test_files_of_other_hosts_and_nonsense_are_left_alone(info: PoolInfo, dead_pid: int) -> None:
    elsewhere = announce(replace(info, host="elsewhere", pid=dead_pid))
    nonsense = announcement_path("p3")
    nonsense.write_text('{"pool_id": ')
    surprising = announcement_path("p4")
    surprising.write_text(json.dumps(asdict(info) | {"future": 1}))
    assert find_pools() == []
    assert elsewhere.exists()
    assert nonsense.exists()
    assert surprising.exists()


def test_a_lying_file_costs_nothing_that_is_no_socket(info: PoolInfo, tmp_path: Path) -> None:
    precious = tmp_path / "thesis" / "chapter.txt"
    precious.parent.mkdir()
    precious.write_text("years of work")
    withdraw(replace(info, address=f"unix:{precious}"))
    assert precious.read_text() == "years of work"


def test_a_long_runtime_directory_still_gets_a_short_socket_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / ("long" * 30)))
    directory = make_socket_dir("p1")
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(directory / "s"))
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    finally:
        (directory / "s").unlink()
        directory.rmdir()


def test_a_zombie_is_dead(zombie_pid: int) -> None:
    assert is_alive(os.getpid())
    assert not is_alive(zombie_pid)


def test_a_runtime_directory_that_cannot_be_made_is_named(runtime_dir: Path) -> None:
    runtime_dir.write_text("a file")
    text = f"Jupyter's runtime directory cannot be used: File exists: '{runtime_dir}'"
    with pytest.raises(OSError, match=re.escape(text)):
        find_pools()
