"""What a base path holds: numbered version directories, and why it may hold none.

Rules: TensorFlow Serving's ``sources/storage_path/file_system_storage_path_source.cc``, but for
directories that are not complete yet, which are left alone here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_VERSION = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)[ \t\n\v\f\r]*", re.ASCII)
SAVED_MODEL_FILES = frozenset({"saved_model.pb", "saved_model.pbtxt"})
TFLITE_SUFFIX = ".tflite"
TFLITE_FILE = f"model{TFLITE_SUFFIX}"
KERAS_SUFFIXES = (".keras", ".h5")
_FILE_SUFFIXES = (*KERAS_SUFFIXES, TFLITE_SUFFIX)
_MODEL_FILES = SAVED_MODEL_FILES | {TFLITE_FILE}
_MODEL_FILES_TEXT = "saved_model.pb, saved_model.pbtxt, model.tflite, *.keras or *.h5"
FILE_VERSION = 1
"""The version that a model file stands for which is the base path itself."""
_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class Listing:
    """What one look at a base path found.

    Attributes:
        versions: Complete versions, by number, with their paths.
        incomplete: Paths of numbered entries that hold no model (yet).
        others: Names that are no version numbers, sorted, hidden ones left out.
    """

    versions: dict[int, str] = field(default_factory=dict)
    incomplete: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def parse_version(name: str) -> int | None:
    """The version that a directory's name stands for; None where it is no decimal int64.

    Leading zeros, spaces around and one sign are accepted.
    """
    match = _VERSION.fullmatch(name)
    if match is None:
        return None
    version = int(match[1])
    return version if -(2**63) <= version < 2**63 else None


def list_versions(base_path: str) -> Listing:
    """Look at a base path; of two names for one number the lexicographically last one counts.

    A base path that is itself a file of Keras or TFLite is version 1.

    Raises:
        OSError: The base path cannot be listed.
    """
    if base_path.endswith(_FILE_SUFFIXES) and Path(base_path).is_file():
        return Listing({FILE_VERSION: base_path})
    versions: dict[int, str] = {}
    others = []
    for name in sorted(path.name for path in Path(base_path).iterdir()):
        version = parse_version(name)
        if version is not None:
            versions[version] = str(Path(base_path, name))
        elif not name.startswith("."):
            others.append(name)
    complete = {version: path for version, path in versions.items() if is_complete(path)}
    incomplete = (path for version, path in versions.items() if version not in complete)
    return Listing(complete, tuple(incomplete), tuple(others))


def is_complete(path: str) -> bool:
    """Whether a version directory holds a model's main file, so that loading can be tried."""
    try:
        names = [entry.name for entry in Path(path).iterdir()]
    except OSError:
        return False
    return any(name in _MODEL_FILES or name.endswith(KERAS_SUFFIXES) for name in names)


def fingerprint(path: str) -> Hashable:
    """Names, sizes and times of ``path`` or all below it; differs once a file was changed."""
    return frozenset(_entries(path))


def _entries(path: str) -> Iterator[tuple[str, int, int]]:
    for file in _files(path):
        try:
            stat = file.stat()
        except OSError:  # gone meanwhile
            continue
        yield str(file), stat.st_size, stat.st_mtime_ns


def _files(path: str) -> Iterator[Path]:
    if Path(path).is_file():
        yield Path(path)
    for folder, _, names in os.walk(path):
        for name in names:
            yield Path(folder, name)


def explain(listing: Listing, base_path: str, name: str) -> str | None:
    """Why a listing yields less than its folder's owner may expect; None where all is well."""
    if listing.incomplete:
        return (
            f"{_join(listing.incomplete)} holds no complete model (yet): looked for "
            f"{_MODEL_FILES_TEXT}"
        )
    if listing.versions:
        return None
    found = f"Found {_join(listing.others)}." if listing.others else "It is empty."
    files = [name for name in listing.others if name.endswith(_FILE_SUFFIXES)]
    if files:
        found = f"To serve one file, give its own path, such as {Path(base_path, files[0])}."
    if not SAVED_MODEL_FILES.isdisjoint(listing.others):
        found = (
            "This folder itself is a SavedModel: move its content into a numbered sub-directory, "
            f"such as {Path(base_path, '1')}."
        )
    return (
        f"No versions of servable {name} found under base path {base_path}. Did you forget to name "
        f"your leaf directory as a number (eg. '/1/')? {found}"
    )


def _join(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    left_out = len(names) - _MAX_NAMES
    return f"{shown} and {left_out} more" if left_out > 0 else shown
