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
    if version.is_file():
        kind = Kind.TFLITE if path.endswith(TFLITE_SUFFIX) else Kind.SAVED_MODEL
        return (Kind.KERAS if path.endswith(KERAS_SUFFIXES) else kind), path
    names = sorted(entry.name for entry in version.iterdir()) if version.is_dir() else []
    keras = [name for name in names if name.endswith(KERAS_SUFFIXES)]
    is_saved_model = not SAVED_MODEL_FILES.isdisjoint(names)
    if TFLITE_FILE in names and (prefer_tflite or not (is_saved_model or keras)):
        return Kind.TFLITE, str(version / TFLITE_FILE)
    if is_saved_model or not keras:
        return Kind.SAVED_MODEL, path
    if len(keras) > 1:
        raise invalid_argument(
            f"{path} holds {len(keras)} Keras files: {', '.join(keras)}. A version is one model"
        )
    return Kind.KERAS, str(version / keras[0])
