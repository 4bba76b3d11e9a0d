"""How a pool makes itself known: one small file in Jupyter's runtime directory.

The files follow kernels' connection files: only their user can read them, they are complete when
they appear, and they are a hint, never truth. Each names the Jupyter server that owns the
pool, so that two servers of one user never adopt each other's pools.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir, secure_write

from .wire.messages import WIRE_VERSION

_PREFIX = "tfserve-pool-"
_MAX_SOCKET_PATH = 100
"""A Unix socket's path may have about 104 bytes on the strictest systems."""


@dataclass(frozen=True, slots=True)
class PoolInfo:
    """Where a pool is and whose it is.

    ``kind`` is ``managed`` or ``notebook``; ``owner_pid`` the process of the Jupyter server that it
    belongs to; ``address`` is ``unix:PATH`` or ``tcp:HOST:PORT``; ``secret`` proves a door to the
    pool and the pool to a door; ``kernel_id`` is the kernel's, where one is known; ``name`` is what
    a notebook pool is called, such as ``train.ipynb``.
    """

    pool_id: str
    kind: str
    owner_pid: int
    pid: int
    host: str
    address: str
    secret: str
    kernel_id: str = ""
    name: str = ""
    wire_version: int = WIRE_VERSION

    @property
    def unix_path(self) -> str | None:
        """The path of the pool's Unix socket, if it has one."""
        return self.address.removeprefix("unix:") if self.address.startswith("unix:") else None


def _runtime_dir() -> Path:
    directory = Path(jupyter_runtime_dir())
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        text = f"Jupyter's runtime directory cannot be used: {error.strerror}"
        raise OSError(error.errno, text, str(directory)) from error
    return directory


def announcement_path(pool_id: str) -> Path:
    """The file that announces a pool."""
    return _runtime_dir() / f"{_PREFIX}{pool_id}.json"


def kernel_connection_path(pool_id: str) -> Path:
    """The connection file of the kernel that a managed pool lives in."""
    return _runtime_dir() / f"tfserve-kernel-{pool_id}.json"


def make_socket_dir(pool_id: str) -> Path:
    """A new directory, closed to other users, whose path is short enough for a Unix socket."""
    directory = _runtime_dir() / f"{_PREFIX}{pool_id}"
    if len(os.fsencode(directory / "s")) > _MAX_SOCKET_PATH:
        return Path(tempfile.mkdtemp(prefix="tfserve-"))
    directory.mkdir(mode=0o700)
    return directory


def announce(info: PoolInfo) -> Path:
    """Write the pool's file: complete, user-only, renamed into place."""
    path = announcement_path(info.pool_id)
    draft = path.with_suffix(".part")
    with secure_write(str(draft)) as file:
        json.dump(asdict(info), file)
    draft.replace(path)
    return path


def withdraw(info: PoolInfo) -> None:
    """Remove all that a pool has lying about; what is gone already is fine."""
    path = announcement_path(info.pool_id)
    path.unlink(missing_ok=True)
    path.with_suffix(".part").unlink(missing_ok=True)
    kernel_connection_path(info.pool_id).unlink(missing_ok=True)
    if info.unix_path is not None:
        # The file may lie: no more is removed than a socket and an empty directory.
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(info.unix_path).st_mode):
                Path(info.unix_path).unlink()
            Path(info.unix_path).parent.rmdir()


def read_announcement(pool_id: str) -> PoolInfo | None:
    """The announcement of one pool, or None where there is none to be read."""
    return _read(announcement_path(pool_id))


def _read(path: Path) -> PoolInfo | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return PoolInfo(**json.loads(path.read_text("utf-8")))
    return None


def find_pools(owner_pid: int | None = None) -> list[PoolInfo]:
    """The pools of this host that are announced and whose process lives.

    Files of this host whose process is dead are removed on the way; files of other hosts (a shared
    home) and unreadable ones are left alone. With ``owner_pid`` only that server's pools.
    """
    found = []
    for path in sorted(_runtime_dir().glob(f"{_PREFIX}*.json")):
        info = _read(path)
        if info is None or info.host != socket.gethostname():
            continue
        if not is_alive(info.pid):
            withdraw(info)
        elif owner_pid is None or info.owner_pid == owner_pid:
            found.append(info)
    return found


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs on this host; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError):  # where there is no /proc the signal has to do
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True
