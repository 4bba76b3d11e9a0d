"""Inference requests as protos: what gRPC carries, and what is recorded for warm-up.

The checks and texts are TensorFlow Serving's (``servables/tensorflow/predict_util.cc``,
``multi_inference.cc``). Models are looked up elsewhere: here the servable is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import Code, ServingError, invalid_argument
from . import inference
from .inference import CLASSIFY_METHOD, DEFAULT_SIGNATURE, REGRESS_METHOD
from .model_run import ModelRun
from .tensor_proto import to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from ..codec.deep import Tensor
    from ..servable import SignatureInfo
    from .servables.base import Servable

    Scores: TypeAlias = np.ndarray[Any, Any] | tuple[np.ndarray | None, np.ndarray | None]


def predict_run(servable: Servable, request: Any) -> ModelRun:
    """The run that a ``PredictRequest`` asks for.

    Raises:
        ServingError: FAILED_PRECONDITION for a signature that is not there; INVALID_ARGUMENT for
            inputs or a filter of outputs that do not fit it, or a tensor that is none.
    """
    name = request.model_spec.signature_name or DEFAULT_SIGNATURE
    signature = servable.signatures.get(name)
    if signature is None:
        raise ServingError(Code.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.')
    inputs = _inputs(signature, request.inputs)
    return ModelRun(servable, signature, inputs, _outputs(signature, request.output_filter))


def _inputs(signature: SignatureInfo, sent: Any) -> dict[str, Tensor]:
    wanted = signature.inputs
    too_few = len(sent) < len(wanted) and not signature.defaults
    if len(sent) > len(wanted) or too_few:
        raise invalid_argument(
            f"input size does not match signature: {len(sent)}!={len(wanted)} "
            f"len({_set(sent)}) != len({_set(wanted)}). "
            f"Sent extra: {_set(sent.keys() - wanted.keys())}. "
            f"Missing but required: {_set(wanted.keys() - sent.keys() - signature.defaults)}."
        )
    inputs = {}
    for alias, info in wanted.items():
        if alias in sent:
            inputs[alias] = to_tensor(sent[alias], alias)
        elif alias not in signature.defaults:
            raise invalid_argument(
                f"Signature input alias: {alias}(feed name: {info.tensor}) not found in request "
                "and no default value provided. Inputs expected to be in the request "
                f"{_set(sent)}, or default input alias set: {_set(signature.defaults)}"
            )
    if len(inputs) < len(sent):
        raise invalid_argument(
            "Inputs contains invalid name. "
            f"Used request inputs: {_set(inputs)}, request input: {_set(sent)}"
        )
    return inputs


def _outputs(signature: SignatureInfo, chosen: Any) -> tuple[str, ...] | None:
    """The aliases to compute; None is all."""
    seen: dict[str, None] = {}
    for alias in chosen:
        if alias not in signature.outputs:
            raise invalid_argument(
                f"output tensor alias not found in signature: {alias} "
                f"Outputs expected to be in the set {_set(signature.outputs)}."
            )
        if alias in seen:
            raise invalid_argument(f"duplicate output tensor alias: {alias}")
        seen[alias] = None
    return tuple(seen) or None


def _set(names: Any) -> str:
    return f"{{{','.join(sorted(names))}}}"


def examples_of(message: Any) -> list[bytes]:
    """The serialized ``tf.Example`` messages of an ``Input``, each with the context merged in."""
    if message.WhichOneof("kind") == "example_list_with_context":
        listed = message.example_list_with_context
        # Of two serialized messages one after the other, the parser makes one: the example's wins.
        context = listed.context.SerializeToString()
        return [context + example.SerializeToString() for example in listed.examples]
    return [example.SerializeToString() for example in message.example_list.examples]


@dataclass(frozen=True, slots=True)
class Task:
    """One classification or regression, alone or as a part of a multi-inference.

    Attributes:
        signature_name: As the request asks for it.
        classify: Whether it is a classification; else a regression.
        run: What is to be run for it.
        n: The number of examples.
    """

    signature_name: str
    classify: bool
    run: ModelRun
    n: int

    def result(self) -> Scores:
        """Classes and scores, or regressions, once it is run; see :mod:`.inference`.

        Raises:
            ServingError: INVALID_ARGUMENT for outputs of another kind.
        """
        if self.classify:
            return inference.classes_and_scores(self.run, self.n)
        return inference.regressions(self.run, self.n)


def score_task(servable: Servable, request: Any, *, classify: bool) -> Task:
    """What a ``ClassificationRequest`` or ``RegressionRequest`` asks for.

    Raises:
        ServingError: INVALID_ARGUMENT for a signature of another kind, or without examples.
    """
    examples = examples_of(request.input)
    name = request.model_spec.signature_name
    run = _run_of(classify=classify)(servable, name, examples)
    return Task(name, classify, run, len(examples))


def _run_of(*, classify: bool) -> Callable[[Servable, str, Sequence[bytes]], ModelRun]:
    return inference.classify_run if classify else inference.regress_run


def multi_inference(servable: Servable, request: Any) -> list[Task]:
    """The tasks of a ``MultiInferenceRequest``, in their order; all are checked, none is run.

    Raises:
        ServingError: INVALID_ARGUMENT or UNIMPLEMENTED, in TensorFlow Serving's words.
    """
    examples = examples_of(request.input)
    tasks: dict[str, Task] = {}
    names = {task.model_spec.name for task in request.tasks}
    for wanted in request.tasks:
        if not wanted.model_spec.name:
            raise invalid_argument("Found ModelSpec with an empty model name.")
        if len(names) > 1:
            raise invalid_argument(
                "All ModelSpecs in a MultiInferenceRequest must access the same model name."
            )
        name = wanted.model_spec.signature_name or DEFAULT_SIGNATURE
        if name in tasks:
            raise invalid_argument(f"Duplicate evaluation of signature: {name}")
        if name not in servable.signatures:
            raise invalid_argument(f"Requested signature not found in model graph: {name}")
        if wanted.method_name not in (CLASSIFY_METHOD, REGRESS_METHOD):
            raise ServingError(
                Code.UNIMPLEMENTED, f"Unsupported signature method_name: {wanted.method_name}"
            )
        classify = wanted.method_name == CLASSIFY_METHOD
        # The signatures are judged first, whatever the examples are.
        run = _run_of(classify=classify)(servable, name, examples or [b""])
        tasks[name] = Task(wanted.model_spec.signature_name, classify, run, len(examples))
    if len({task.run.signature.inputs["inputs"].tensor for task in tasks.values()}) > 1:
        raise invalid_argument("Input tensor must be the same for all Signatures.")
    if not examples:
        raise invalid_argument("Input is empty.")
    return list(tasks.values())
