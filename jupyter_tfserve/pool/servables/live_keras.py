"""Keras models as functions of tensors, named by their layers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from ...errors import invalid_argument


def is_keras(model: Any) -> bool:
    """Whether it is a model of Keras 3."""
    keras = sys.modules.get("keras")  # imported by whoever made the model
    return keras is not None and isinstance(model, keras.Model)


def check_backend() -> None:
    """Refuse the models of a Keras that computes with something else than TensorFlow.

    Raises:
        ServingError: INVALID_ARGUMENT, saying what to do instead.
    """
    backend = sys.modules["keras"].config.backend()
    if backend != "tensorflow":
        raise invalid_argument(
            f"Keras runs on {backend} here, which TensorFlow cannot trace. Publish a function that "
            "calls the model, with its signature"
        )


def keras_function(
    model: Any,
) -> tuple[Callable[..., Any], dict[str, tf.TensorSpec], list[str]]:
    """A function of a flat list of tensors, its inputs by name, and the names of its outputs.

    Raises:
        ServingError: INVALID_ARGUMENT for a model that has no fixed inputs.
    """
    check_backend()
    nested = structures(model)
    if nested is None:
        raise invalid_argument(
            f"The Keras model {model.name} has no fixed inputs. Say what it takes: "
            'signatures=Signature(inputs={"x": ("float32", [-1, 4])})'
        )
    taken, given = nested
    names = (
        sorted(taken)
        if isinstance(taken, Mapping)
        else distinct([tensor.name for tensor in tf.nest.flatten(taken)])
    )
    specs = {
        name: tf.TensorSpec(tensor.shape, tensor.dtype)
        for name, tensor in zip(names, tf.nest.flatten(taken), strict=True)
    }

    def run(*tensors: tf.Tensor) -> Any:
        return model(tf.nest.pack_sequence_as(taken, tensors), training=False)

    return run, specs, _output_names(model, given)


def structures(model: Any) -> tuple[Any, Any] | None:
    """The symbolic inputs and outputs of a functional model, nested as it takes them.

    None for a model that has no fixed inputs.
    """
    try:
        if isinstance(model, sys.modules["keras"].Sequential):
            return model.inputs[0], model.outputs[0]
        if model.inputs:
            return model.input, model.output
    except AttributeError:  # Keras's answer for a model that has not been told its inputs
        pass
    return None


def _output_names(model: Any, given: Any) -> list[str]:
    if isinstance(given, Mapping):
        return sorted(given)
    if isinstance(model, sys.modules["keras"].Sequential):
        return [model.layers[-1].name]
    return distinct(model.output_names)


def distinct(names: Sequence[str]) -> list[str]:
    """The same names, with a number where one comes again: a layer may have several outputs."""
    found: list[str] = []
    for name in names:
        number, alias = 0, name
        while alias in found:
            number += 1
            alias = f"{name}_{number}"
        found.append(alias)
    return found
