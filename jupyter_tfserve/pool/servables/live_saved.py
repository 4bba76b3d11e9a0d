"""Models of this process's memory written down as SavedModels."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ...errors import Code, ServingError, invalid_argument
from .live_calls import LiveCall, TracedCall
from .live_model import live_calls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...servable import TensorInfo


def save_live(model: Any, signatures: Any, folder: Path) -> None:
    """Save a model with the signatures, names and dtypes that it would be published with.

    Args:
        model: see :func:`.live_model.live_calls`.
        signatures: see there.
        folder: where the SavedModel is written, which is not there yet.

    Raises:
        ServingError: INVALID_ARGUMENT for what cannot be traced, or written down; UNKNOWN where the
            file system refuses.
        Exception: whatever the model's own code raises when it is traced.
    """
    calls = {
        key: _traced(key, call) for key, call in live_calls(model, signatures, freeze=False).items()
    }
    module = tf.Module()
    module.variables_of_calls = [call.variables for call in calls.values()]
    if isinstance(model, tf.Module) or hasattr(model, "_trackable_children"):
        module.model = model  # tables and other resources are found through their owner
    functions = {key: _function(call) for key, call in calls.items()}
    try:
        with _quietly():
            tf.saved_model.save(module, str(folder), signatures=functions)
    except (AssertionError, ValueError) as error:
        # TensorFlow's text goes on about its own interfaces.
        reason = str(error).partition("\n")[0].partition(". ")[0]
        if "untracked" in reason:
            reason = (
                "it uses a table or a variable that belongs to another object. Publish the "
                "tf.Module or Keras model that it belongs to, with signatures="
            )
        raise invalid_argument(f"The model cannot be saved: {reason}") from error
    except (OSError, tf.errors.OpError) as error:
        raise ServingError(Code.UNKNOWN, f"The model cannot be saved: {error}") from error


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep TensorFlow's word of each file that it writes out of the user's cell."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _traced(key: str, call: LiveCall) -> TracedCall:
    if not isinstance(call, TracedCall):
        raise invalid_argument(
            f"Signature {key}: a plain Python function cannot be saved, as it is in this process "
            "alone. Publish it from here, or write it as a tf.function"
        )
    return call


def _function(call: TracedCall) -> Any:
    """A call as TensorFlow saves signatures: tensors by name in, tensors by name out."""

    def serve(tensors: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        results = call.trace([tensors[name] for name in call.inputs])
        named = dict(zip(call.outputs, results, strict=True))
        for name, info in call.outputs.items():
            named[name].set_shape(_shape(info))
        # TensorFlow refuses an output that is an input as it came.
        return {name: tf.identity(tensor) for name, tensor in named.items()}

    specs = {
        name: tf.TensorSpec(_shape(info), _dtype(info), name) for name, info in call.inputs.items()
    }
    return tf.function(serve, autograph=False).get_concrete_function(specs)


def _shape(info: TensorInfo) -> list[int | None] | None:
    return None if info.shape is None else [None if size < 0 else size for size in info.shape]


def _dtype(info: TensorInfo) -> tf.DType:
    return tf.as_dtype(types_pb2.DataType.Value(f"DT_{info.dtype.upper()}"))
