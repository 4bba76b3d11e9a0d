"""Which kind of model a version is, by the files that it holds."""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path

from ...errors import invalid_argument
from ..core.directory import KERAS_SUFFIXES, SAVED_MODEL_FILES, TFLITE_FILE, TFLITE_SUFFIX


class Kind(Enum):
    """Kinds of models on disk."""

    SAVED_MODEL = auto()
    KERAS = auto()
    TFLITE = auto()


def find_model(path: str, *, prefer_tflite: bool = False) -> tuple[Kind, str]:
    """The kind of the model at ``path``, a directory or a model file, and where it lies.

    A SavedModel is its directory, the other kinds are files. Of several kinds in one directory a
    SavedModel comes first, then Keras, then TFLite; ``prefer_tflite`` puts TFLite first. A
    directory without any is taken for a SavedModel, whose loader says what is missing.

    Raises:
        ServingError: INVALID_ARGUMENT where there is more than one Keras file to choose from.
    """
    version = Path(path)
    if version.is_file() and path.endswith(KERAS_SUFFIXES):
        return Kind.KERAS, path
    if version.is_file() and path.endswith(TFLITE_SUFFIX):
        return Kind.TFLITE, path
    names = sorted(entry.name for entry in version.iterdir()) if version.is_dir() else []
    keras = [name for name in names if name.endswith(KERAS_SUFFIXES)]
    has_tflite = TFLITE_FILE in names
    if has_tflite and prefer_tflite:
        return Kind.TFLITE, str(version / TFLITE_FILE)
    if not SAVED_MODEL_FILES.isdisjoint(names):
        return Kind.SAVED_MODEL, path
    if len(keras) > 1:
        raise invalid_argument(
            f"{path} holds {len(keras)} Keras files: {', '.join(keras)}. A version is one model"
        )
    if keras:
        return Kind.KERAS, str(version / keras[0])
    if has_tflite:
        return Kind.TFLITE, str(version / TFLITE_FILE)
    return Kind.SAVED_MODEL, path
