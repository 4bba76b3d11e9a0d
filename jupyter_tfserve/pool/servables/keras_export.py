"""``python -m jupyter_tfserve.pool.servables.keras_export FILE FOLDER``: a Keras file exported.

The SavedModel's inputs and outputs are called as Keras calls them and keep their dtypes, which
Keras' own ``model.export`` gives up. A failure is one line, the last one of standard error.
"""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf

from ...errors import ServingError, invalid_argument
from .live_keras import keras_function, structures

_KEY = "serving_default"


def export(file: str, folder: str) -> None:
    """Load a file of Keras and write it as a SavedModel.

    Raises:
        ServingError: INVALID_ARGUMENT for a model without fixed inputs.
        Exception: whatever Keras raises.
    """
    import keras

    model = keras.saving.load_model(file, compile=False)
    if structures(model) is None:
        raise invalid_argument(
            f"the model {model.name} has no fixed inputs. Give it an Input layer and save it again"
        )
    function, specs, names = keras_function(model)

    def serve(tensors: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        results = tf.nest.flatten(function(*(tensors[name] for name in specs)))
        return dict(zip(names, results, strict=True))

    signature: Any = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in specs.items()
    }
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(_KEY, serve, input_signature=[signature])
    archive.write_out(folder, verbose=False)


def _reason(error: Exception) -> str:
    """What is wrong, without the configuration that Keras quotes before and after it."""
    if isinstance(error, ServingError):
        return error.message
    text = str(error) or type(error).__name__
    return text.rpartition("Exception encountered: ")[2].partition("Full object config:")[0]


def main() -> None:
    """The command."""
    file, folder = sys.argv[1:]
    try:
        export(file, folder)
    except Exception as error:  # noqa: BLE001 - Keras raises whatever its parts raise
        print(" ".join(_reason(error).split()), file=sys.stderr)  # noqa: T201
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
