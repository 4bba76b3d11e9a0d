"""Predict, classify and regress over a servable's signatures, whatever the surface.

The checks and texts are TensorFlow Serving's (``servables/tensorflow/predict_util.cc``,
``classifier.cc``, ``regressor.cc``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from ..codec.dtypes import dtype_of
from ..errors import invalid_argument
from .model_run import ModelRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..servable import SignatureInfo, TensorInfo
    from .servables.base import Servable

DEFAULT_SIGNATURE = "serving_default"
CLASSIFY_METHOD = "tensorflow/serving/classify"
REGRESS_METHOD = "tensorflow/serving/regress"


def predict_signature(servable: Servable, name: str) -> SignatureInfo:
    """The signature that a REST predict call asks for; an empty name is the default one.

    Raises:
        ServingError: INVALID_ARGUMENT where there is none, or one that takes nothing.
    """
    signature = servable.signatures.get(name or DEFAULT_SIGNATURE)
    if signature is None:
        raise invalid_argument(
            f'Serving signature name: "{name or DEFAULT_SIGNATURE}" not found in signature def'
        )
    if not signature.inputs:
        raise invalid_argument(f"Failed to get input map for signature: {name or 'DEFAULT'}")
    return signature


def classify_run(
    servable: Servable, name: str, examples: Sequence[bytes], *, check_method: bool = False
) -> ModelRun:
    """The run of a classify signature on serialized ``tf.Example`` messages.

    Raises:
        ServingError: INVALID_ARGUMENT for a signature that is not of a classifier.
    """
    method = CLASSIFY_METHOD if check_method else None
    signature = _scoring_signature(servable, name, "classification", method)
    if len(signature.outputs) not in (1, 2):
        raise invalid_argument(
            f"Expected one or two output Tensors, found {len(signature.outputs)}"
        )
    if "inputs" not in signature.inputs:
        raise invalid_argument(
            f"No classification inputs found in SignatureDef: {servable.debug_text(signature.key)}"
        )
    wanted = [alias for alias in ("classes", "scores") if alias in signature.outputs]
    if not wanted:
        raise invalid_argument(
            'Expected classification signature outputs to contain at least one of "classes" or '
            f'"scores". Signature was: {servable.debug_text(signature.key)}'
        )
    return _run(servable, signature, examples, wanted)


def classes_and_scores(run: ModelRun, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What a classifier said of ``n`` examples.

    Returns:
        The classes, object ``[n, k]`` of bytes, and the scores, float32 ``[n, k]``; either may be
        absent.

    Raises:
        ServingError: INVALID_ARGUMENT for outputs that are not of a classifier.
    """
    outputs = _arrays(run)
    classes, scores = outputs.get("classes"), outputs.get("scores")
    for array in (classes, scores):
        if array is not None and array.ndim != 2:
            raise invalid_argument(
                f"Expected Tensor shape: [batch_size num_classes] but got {_shape(array)}"
            )
    _check_class_output("classes", classes, run.signature, "string", n)
    _check_class_output("scores", scores, run.signature, "float", n)
    if classes is not None and scores is not None and classes.shape[1] != scores.shape[1]:
        raise invalid_argument(
            "Tensors class and score should match in dim_size(1). "
            f"Got {classes.shape[1]} vs. {scores.shape[1]}"
        )
    return classes, scores


def _check_class_output(
    alias: str, array: np.ndarray | None, signature: SignatureInfo, dtype: str, n: int
) -> None:
    if array is None:
        return
    if signature.outputs[alias].dtype != dtype:
        raise invalid_argument(
            f"Expected {alias} Tensor of {dtype_of(dtype).enum_name}. "
            f"Got: {_enum_name(signature.outputs[alias])}"
        )
    if array.shape[0] != n:
        raise invalid_argument(f"Expected {alias} output batch size of {n}. Got: {array.shape[0]}")


def regress_run(
    servable: Servable, name: str, examples: Sequence[bytes], *, check_method: bool = False
) -> ModelRun:
    """The run of a regress signature on serialized ``tf.Example`` messages.

    Raises:
        ServingError: INVALID_ARGUMENT for a signature that is not of a regressor.
    """
    method = REGRESS_METHOD if check_method else None
    signature = _scoring_signature(servable, name, "regression", method)
    if len(signature.outputs) != 1:
        raise invalid_argument("Expected one output Tensor.")
    if "inputs" not in signature.inputs:
        raise invalid_argument(
            f"No regression inputs found in SignatureDef: {servable.debug_text(signature.key)}"
        )
    if "outputs" not in signature.outputs:
        raise invalid_argument(
            f"No regression outputs found in SignatureDef: {servable.debug_text(signature.key)}"
        )
    return _run(servable, signature, examples, ["outputs"])


def regressions(run: ModelRun, n: int) -> np.ndarray:
    """What a regressor said of ``n`` examples.

    Returns:
        One value an example: float32 ``[n]``.

    Raises:
        ServingError: INVALID_ARGUMENT for an output that is not of a regressor.
    """
    values = _arrays(run)["outputs"]
    if values.ndim != 1 and not (values.ndim == 2 and values.shape[1] == 1):
        raise invalid_argument(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] "
            f"but got {_shape(values)}"
        )
    if values.shape[0] != n:
        raise invalid_argument(
            f"Input batch size did not match output batch size: {n} vs. {values.shape[0]}"
        )
    output = run.signature.outputs["outputs"]
    if output.dtype != "float":
        raise invalid_argument(f"Expected output Tensor of DT_FLOAT.  Got: {_enum_name(output)}")
    return values.reshape(-1)


def _scoring_signature(
    servable: Servable, name: str, kind: str, method: str | None
) -> SignatureInfo:
    """What classify and regress ask of a signature alike; ``method`` is the one it must have."""
    signature = servable.signatures.get(name or DEFAULT_SIGNATURE)
    if signature is None:
        raise invalid_argument(f"No signature was found with the name: {name or DEFAULT_SIGNATURE}")
    if method is not None and signature.method_name != method:
        raise invalid_argument(
            f"Expected {kind} signature method_name to be {method}. Was: {signature.method_name}"
        )
    if len(signature.inputs) != 1:
        raise invalid_argument("Expected one input Tensor.")
    return signature


def _run(
    servable: Servable, signature: SignatureInfo, examples: Sequence[bytes], outputs: list[str]
) -> ModelRun:
    if not examples:
        raise invalid_argument("Input is empty.")
    serialized = np.empty(len(examples), object)
    serialized[:] = examples
    return ModelRun(servable, signature, {"inputs": serialized}, tuple(outputs))


def _arrays(run: ModelRun) -> dict[str, np.ndarray]:
    # A vector went in, so no tensor is too deep to be an array.
    return cast("dict[str, np.ndarray]", run.outputs)


def _shape(array: np.ndarray) -> str:
    return f"[{','.join(map(str, array.shape))}]"


def _enum_name(info: TensorInfo) -> str:
    return dtype_of(info.dtype).enum_name
