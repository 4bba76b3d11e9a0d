"""What can be published, and which signatures it has.

Keras models keep the names of their layers, functions those of their arguments. What TensorFlow
can trace is traced here, in the caller's thread; everything else needs declared signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ...errors import ServingError, invalid_argument
from ...servable import TensorInfo
from .live_calls import LiveCall, PythonCall, TracedCall, Weights
from .live_keras import check_backend, distinct, is_keras, keras_function
from .session_call import dtype_name
from .signature import Signature, Spec

DEFAULT_SIGNATURE = "serving_default"
_EXAMPLE = (
    'signatures=Signature(inputs={"x": ("float32", [-1, 4])}, outputs={"y": ("float32", [-1])})'
)


def live_calls(model: Any, signatures: Any, *, freeze: bool | None) -> dict[str, LiveCall]:
    """The calls of a model by signature key.

    Args:
        model: A Keras model, a ``tf.Module``, a function of TensorFlow, or any callable.
        signatures: None for the model's own; else a :class:`Signature` to call the model by, a
            function of TensorFlow, or a mapping of keys to such.
        freeze: Whether variables are copied; None copies them where there are any.

    Raises:
        ServingError: INVALID_ARGUMENT, saying what is missing.
    """
    if signatures is None:
        signatures = _own_signatures(model)
    if not isinstance(signatures, Mapping):
        signatures = {DEFAULT_SIGNATURE: signatures}
    if not signatures:
        raise invalid_argument("There are no signatures to publish")
    weights = None if freeze is False else Weights()
    calls = {}
    for key, signature in sorted(signatures.items()):
        try:
            calls[key] = _call(model, signature, weights)
        except ServingError as error:
            raise ServingError(error.code, f"Signature {key}: {error.message}") from error
    if freeze and any(isinstance(call, PythonCall) for call in calls.values()):
        raise invalid_argument(
            "The weights of a plain Python function cannot be frozen: what it uses is known to it "
            "alone. Publish a copy of the model, with weights='follow'"
        )
    return calls


def _own_signatures(model: Any) -> Any:
    if is_keras(model) or _is_function(model):
        return model
    own = getattr(model, "signatures", None)
    if isinstance(own, Mapping) and own:
        return own
    if isinstance(model, tf.Module):
        if callable(model) and _is_function(model.__call__):
            return model.__call__
        raise invalid_argument(
            "A tf.Module needs signatures: publish(module, signatures=module.FUNCTION), where "
            "FUNCTION is a tf.function with an input_signature"
        )
    if callable(model):
        raise invalid_argument(f"A plain Python function needs a signature, such as {_EXAMPLE}")
    raise invalid_argument(
        f"Cannot publish a {type(model).__name__}: expected a Keras model, a tf.Module, a "
        "tf.function or a callable"
    )


def _call(model: Any, signature: Any, weights: Weights | None) -> LiveCall:
    if isinstance(signature, Signature):
        return _declared(model, signature, weights)
    if is_keras(signature):
        model, keras_inputs, keras_outputs = keras_function(signature)
        return _traced(model, keras_inputs, keras_outputs, weights)
    if _is_function(signature):
        return _function(signature, weights)
    raise invalid_argument(
        f"Expected a Signature or a tf.function, got a {type(signature).__name__}"
    )


# Functions ----------------------------------------------------------------------------------------


def _is_function(model: Any) -> bool:
    kinds = tf.types.experimental
    return isinstance(model, kinds.PolymorphicFunction | kinds.ConcreteFunction)


def _function(function: Any, weights: Weights | None) -> LiveCall:
    if not isinstance(function, tf.types.experimental.ConcreteFunction):
        if function.input_signature is None:
            raise invalid_argument(
                "The tf.function has no input_signature. Give it one, or publish "
                "f.get_concrete_function(tf.TensorSpec([None, 4], tf.float32))"
            )
        function = function.get_concrete_function()
    structure = function.structured_input_signature
    leaves = tf.nest.flatten(structure)
    wanted = [leaf for leaf in leaves if isinstance(leaf, tf.TypeSpec)]
    if not all(isinstance(spec, tf.TensorSpec) for spec in wanted):
        raise invalid_argument("The tf.function takes other tensors than dense ones")
    specs = dict(zip(distinct([spec.name for spec in wanted]), wanted, strict=True))

    def run(*tensors: tf.Tensor) -> Any:
        given = iter(tensors)
        # What is no tensor is a Python value that the function was traced with.
        flat = [next(given) if isinstance(leaf, tf.TypeSpec) else leaf for leaf in leaves]
        arguments, keywords = tf.nest.pack_sequence_as(structure, flat)
        return function(*arguments, **keywords)

    return _traced(run, specs, None, weights)


def _declared(model: Any, signature: Signature, weights: Weights | None) -> LiveCall:
    if not signature.inputs:
        raise invalid_argument("A signature needs at least one input")
    inputs = {name: _info(name, spec) for name, spec in signature.inputs.items()}
    outputs = None
    if signature.outputs is not None:
        outputs = {name: _info(name, spec) for name, spec in signature.outputs.items()}
    if is_keras(model):
        check_backend()
    if is_keras(model) or isinstance(model, tf.Module) or _is_function(model):
        specs = {name: _spec(info) for name, info in inputs.items()}
        return _traced(model, specs, None if outputs is None else list(outputs), weights)
    if not callable(model):
        raise invalid_argument(f"A {type(model).__name__} cannot be called")
    if not outputs:
        raise invalid_argument(
            f"The outputs of a plain Python function have to be declared: {_EXAMPLE}"
        )
    return PythonCall(model, inputs, outputs)


def _traced(
    function: Callable[..., Any],
    specs: Mapping[str, tf.TensorSpec],
    outputs: Sequence[str] | None,
    weights: Weights | None,
) -> LiveCall:
    """Trace a function of tensors; ``outputs`` name its results where they do not themselves."""
    names: list[str] = []

    def flat(*tensors: tf.Tensor) -> list[tf.Tensor]:
        result = function(*tensors)
        names[:] = _output_names(result, outputs)
        return [tf.convert_to_tensor(tensor) for tensor in tf.nest.flatten(result)]

    traced = tf.function(flat, autograph=False).get_concrete_function(*specs.values())
    inputs = {name: _info(name, spec) for name, spec in specs.items()}
    results = {
        name: _info(name, tf.TensorSpec(tensor.shape, tensor.dtype))
        for name, tensor in zip(names, traced.outputs, strict=True)
    }
    return TracedCall(traced, inputs, results, weights)


def _output_names(result: Any, declared: Sequence[str] | None) -> list[str]:
    number = len(tf.nest.flatten(result))
    if isinstance(result, Mapping):
        names = sorted(result)  # the order in which TensorFlow flattens it
        if declared is not None and sorted(declared) != names:
            raise invalid_argument(
                f"The function returns {', '.join(names)}; declared are {', '.join(declared)}"
            )
    elif declared is not None:
        names = list(declared)
    elif hasattr(result, "_fields"):
        names = list(result._fields)
    else:
        names = [f"output_{index}" for index in range(number)]
    if len(names) != number:
        raise invalid_argument(
            f"The function returns {number} tensors, which {len(names)} names cannot stand for"
        )
    return names


# Specs --------------------------------------------------------------------------------------------


def _info(name: str, spec: Spec) -> TensorInfo:
    try:
        if not isinstance(spec, tf.TensorSpec):
            dtype, shape = spec
            if shape is not None:
                shape = [None if size == -1 else size for size in shape]
            spec = tf.TensorSpec(shape, dtype)
    except (TypeError, ValueError) as error:
        raise invalid_argument(
            f'{name}: expected a dtype and a shape such as ("float32", [-1, 4]), got {spec!r}'
        ) from error
    dims = None
    if spec.shape.rank is not None:
        dims = tuple(-1 if size is None else size for size in spec.shape)
    return TensorInfo(dtype_name(spec.dtype.as_datatype_enum), dims)


def _spec(info: TensorInfo) -> tf.TensorSpec:
    shape = None if info.shape is None else [None if n == -1 else n for n in info.shape]
    return tf.TensorSpec(shape, tf.as_dtype(types_pb2.DataType.Value(f"DT_{info.dtype.upper()}")))
