"""Files of Keras, exported once as SavedModels and kept in a cache.

The export runs in a process of its own: Keras, its memory and its choice of a device never come
into the pool, and a file that brings it down brings down nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from ...errors import Code, ServingError, invalid_argument

_FORM = "1"
"""What an export looks like; changed with :mod:`.keras_export`."""
_MAX_EXPORTS = 32
_MAX_BYTES = 16 << 30
_IN_USE_S = 3600.0
"""An export that was asked for this recently may be being read by another process."""
_MAX_REASON = 500
_CHUNK = 1 << 20
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def cache_dir() -> Path:
    """Where exports are kept: below Jupyter's folder for the user's data."""
    return Path(jupyter_data_dir(), "tfserve", "keras")


@contextmanager
def exported(file: str) -> Iterator[str]:
    """The SavedModel of a Keras file; to be loaded before the context is left.

    Exports are known by the file's content, so a copy or a renamed file needs none of its own.
    Where the cache cannot be written, the export lives as long as the context.

    Raises:
        ServingError: INVALID_ARGUMENT with Keras' own reason; DATA_LOSS for a damaged file; ABORTED
            where it was changed meanwhile; NOT_FOUND.
    """
    try:
        before = _stat(file)
        key = _key(file)
    except OSError as error:
        raise ServingError(Code.NOT_FOUND, f"{file}: {error.strerror}") from error
    if file.endswith(".keras") and not zipfile.is_zipfile(file):  # the end of the file tells
        raise ServingError(Code.DATA_LOSS, f"{file} is damaged or not yet complete")
    cache = cache_dir()
    kept = cache / key
    if not _touch(kept):
        with _folder_for_export(cache) as scratch:
            made = scratch / "model"
            _export(file, made)
            if _stat(file) != before:
                raise ServingError(Code.ABORTED, f"{file} was changed while it was loaded")
            if scratch.parent != cache or not _keep(made, kept):
                yield str(made)
                return
        _trim(cache)
    yield str(kept)


def _key(file: str) -> str:
    """The content and the versions of what makes the export of it."""
    try:
        keras = version("keras")
    except PackageNotFoundError:
        keras = ""
    digest = hashlib.sha256(f"{_FORM} {version('tensorflow')} {keras}".encode())
    with Path(file).open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()[:32]


def _stat(file: str) -> tuple[int, int]:
    stat = Path(file).stat()
    return stat.st_size, stat.st_mtime_ns


def _touch(kept: Path) -> bool:
    """Whether the export is there; it then counts as just used."""
    try:
        os.utime(kept)
    except OSError:
        return False
    return True


@contextmanager
def _folder_for_export(cache: Path) -> Iterator[Path]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="new-", dir=cache)
    except OSError:  # read-only, or full
        scratch = tempfile.TemporaryDirectory(prefix="tfserve-keras-")
    with scratch as name:
        yield Path(name)


def _keep(made: Path, kept: Path) -> bool:
    try:
        made.rename(kept)
    except OSError:  # another process was faster: the content is the same
        return _touch(kept)
    return True


def _trim(cache: Path) -> None:
    """Remove the exports that were used longest ago, where there are too many or too large ones."""
    found = []
    for folder in cache.iterdir():
        with contextlib.suppress(OSError):
            found.append((folder.stat().st_mtime, folder))
    total = 0
    for number, (used, folder) in enumerate(sorted(found, reverse=True), start=1):
        total += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        idle = time.time() - used > _IN_USE_S
        # An unfinished export that is this old belongs to a process that was killed.
        if idle and (number > _MAX_EXPORTS or total > _MAX_BYTES or folder.name.startswith("new-")):
            shutil.rmtree(folder, ignore_errors=True)


def _export(file: str, target: Path) -> None:
    command = [sys.executable, "-m", "jupyter_tfserve.pool.servables.keras_export"]
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    done = subprocess.run(
        [*command, file, str(target)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        check=False,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return
    # Whatever the libraries have to say comes before; the last line is the reason.
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    reason = lines[-1].strip() if lines else f"it ended with status {done.returncode}"
    reason = _STYLE.sub("", reason)
    if len(reason) > _MAX_REASON:
        reason = f"{reason[:_MAX_REASON]} ..."
    raise invalid_argument(f"Keras cannot load {file}: {reason}")
