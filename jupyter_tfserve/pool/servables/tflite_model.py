"""TFLite files: their signatures, and the interpreters that run them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from tensorflow.core.protobuf import meta_graph_pb2

from ...codec.dtypes import name_of
from ...errors import Code, ServingError, invalid_argument
from ...servable import SignatureInfo, TensorInfo
from .definition import PREDICT_METHOD

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_DEFAULT = "serving_default"
_METADATA = b"signature_defs_metadata"
"""Where older converters put a ``SignatureDef``; TensorFlow Serving reads it there."""
_MISSING_OP = re.compile(
    r"unresolved custom op: ([\w.:/-]+?)\.?\s|builtin opcode '(\w+)'|\((Flex\w+)\) failed"
)


_Aliases: TypeAlias = Mapping[str, str]
"""Names in a signature, by the names of tensors."""
_Details: TypeAlias = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]


class Interpreter(Protocol):
    """One interpreter; used by one thread at a time."""

    def details(self) -> _Details:
        """By signature, what LiteRT tells of the inputs and of the outputs by alias."""

    def run(self, signature: str, inputs: Mapping[str, Array]) -> Mapping[str, Any]:
        """The outputs of one signature by alias.

        Raises:
            ServingError: INVALID_ARGUMENT with the interpreter's reason.
        """


class TFLiteModel:
    """The content of one file.

    Raises:
        ServingError: FAILED_PRECONDITION where LiteRT is not installed.
    """

    def __init__(self, file: str, content: bytes) -> None:
        try:
            from ai_edge_litert import interpreter
        except ImportError as error:
            raise ServingError(
                Code.FAILED_PRECONDITION,
                f"{file} is a TFLite model, which needs LiteRT in the environment of the pool's "
                "kernel: pip install ai-edge-litert",
            ) from error
        self._file = file
        self._content = content
        self._module: Any = interpreter

    def make_interpreter(self) -> Interpreter:
        """A new interpreter, ready to run.

        Raises:
            ServingError: UNIMPLEMENTED naming an op that it lacks; DATA_LOSS for another file.
        """
        try:
            raw = self._module.Interpreter(model_content=self._content)
        except (ValueError, RuntimeError) as error:
            raise self._refusal(error, Code.DATA_LOSS) from error
        try:
            raw.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise self._refusal(error, Code.INVALID_ARGUMENT) from error
        native = raw.get_signature_list()
        if len(native) > 1:
            return _Signatures(raw, list(native))
        return _Graph(raw, *self._aliases(raw))

    def signatures(self, interpreter: Interpreter) -> dict[str, SignatureInfo]:
        """What can be called; a model with a single signature has it as ``serving_default``."""
        return {
            key: SignatureInfo(key, _infos(inputs), _infos(outputs), PREDICT_METHOD)
            for key, (inputs, outputs) in sorted(interpreter.details().items())
        }

    def _aliases(self, raw: Any) -> tuple[_Aliases, _Aliases]:
        """What inputs and outputs of the main graph are called in the only signature, if any."""
        native = raw.get_signature_list()
        if not native:
            return _aliases_of_metadata(self._content)
        (key,) = native
        runner = raw.get_signature_runner(key)
        inputs, outputs = runner.get_input_details(), runner.get_output_details()
        return (
            {details["name"]: alias for alias, details in inputs.items()},
            {details["name"]: alias for alias, details in outputs.items()},
        )

    def _refusal(self, error: Exception, code: Code) -> ServingError:
        reason = " ".join(str(error).split())
        missing = _MISSING_OP.search(f"{reason} ")
        if missing is None:
            return ServingError(code, f"{self._file}: {reason}")
        name = next(filter(None, missing.groups()))
        return ServingError(
            Code.UNIMPLEMENTED,
            f"{self._file} uses the op {name}, which the TFLite interpreter does not have",
        )


def _aliases_of_metadata(content: bytes) -> tuple[_Aliases, _Aliases]:
    from ai_edge_litert import schema_py_generated as schema
    from flatbuffers import flexbuffers

    model = schema.Model.GetRootAs(content, 0)
    for index in range(model.MetadataLength()):
        entry = model.Metadata(index)
        if entry.Name() == _METADATA:
            data = model.Buffers(entry.Buffer()).DataAsNumpy().tobytes()
            values = list(flexbuffers.GetRoot(data).AsMap.Values)
            if len(values) != 1:
                raise invalid_argument("Multiple SignatureDefs found in TfLite model")
            definition = meta_graph_pb2.SignatureDef.FromString(bytes(values[0].AsStringBytes))
            return _by_tensor(definition.inputs), _by_tensor(definition.outputs)
    return {}, {}


def _by_tensor(infos: Mapping[str, meta_graph_pb2.TensorInfo]) -> _Aliases:
    return {info.name.partition(":")[0]: alias for alias, info in infos.items()}


def _infos(details: Mapping[str, Any]) -> dict[str, TensorInfo]:
    return {
        alias: TensorInfo(
            name_of(np.dtype(detail["dtype"])),
            tuple(int(size) for size in detail["shape_signature"]),
            detail["name"],
        )
        for alias, detail in sorted(details.items())
    }


def _failed(inputs: Mapping[str, Array], error: Exception) -> ServingError:
    shapes = ", ".join(f"{alias} {list(array.shape)}" for alias, array in inputs.items())
    reason = " ".join(str(error).split())
    return invalid_argument(f"TFLite cannot run on {shapes}: {reason}")


class _Graph:
    """Runs a model's main graph; its inputs are resized only where their shapes change."""

    def __init__(self, raw: Any, inputs: _Aliases, outputs: _Aliases) -> None:
        self._raw = raw
        self._inputs = _by_alias(raw.get_input_details(), inputs)
        self._outputs = _by_alias(raw.get_output_details(), outputs)
        self._shapes = {
            alias: tuple(detail["shape"].tolist()) for alias, detail in self._inputs.items()
        }

    def details(self) -> _Details:
        return {_DEFAULT: (self._inputs, self._outputs)}

    def run(self, _signature: str, inputs: Mapping[str, Array]) -> Mapping[str, Any]:
        raw = self._raw
        try:
            shapes = {alias: array.shape for alias, array in inputs.items()}
            if shapes != self._shapes:
                for alias, shape in shapes.items():
                    raw.resize_tensor_input(self._inputs[alias]["index"], shape)
                raw.allocate_tensors()
                self._shapes = shapes
            for alias, array in inputs.items():
                raw.set_tensor(self._inputs[alias]["index"], array)
            raw.invoke()
            return {
                alias: raw.get_tensor(detail["index"]) for alias, detail in self._outputs.items()
            }
        except (ValueError, RuntimeError) as error:
            raise _failed(inputs, error) from error


class _Signatures:
    """Runs a model that has several signatures, a graph each."""

    def __init__(self, raw: Any, keys: list[str]) -> None:
        self._runners = {key: raw.get_signature_runner(key) for key in keys}

    def details(self) -> _Details:
        return {
            key: (runner.get_input_details(), runner.get_output_details())
            for key, runner in self._runners.items()
        }

    def run(self, signature: str, inputs: Mapping[str, Array]) -> Mapping[str, Any]:
        try:
            results: Mapping[str, Any] = self._runners[signature](**inputs)
        except (ValueError, RuntimeError) as error:
            raise _failed(inputs, error) from error
        return results


def _by_alias(details: list[dict[str, Any]], aliases: _Aliases) -> dict[str, Any]:
    return {aliases.get(detail["name"], detail["name"]): detail for detail in details}
