"""Functions of this process that a live servable calls: traced by TensorFlow, or plain Python."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from ...codec.deep import MAX_NUMPY_RANK, DeepTensor
from ...codec.dtypes import dtype_of
from ...errors import Code, ServingError, invalid_argument
from .repeatable import because_of, unrepeatable_operation
from .session_call import serving_error

if TYPE_CHECKING:
    from ...codec.deep import Tensor
    from ...servable import TensorInfo

_HEAD = re.compile(
    r"\AGraph execution error:\n\n"
    r"(?:Detected at node .*\n(?:<stack traces unavailable>\n|(?: .*)?\n)*)*"
)
_TAIL = re.compile(r" \[Op:\w*\]\Z")


class LiveCall(ABC):
    """One signature, callable from several threads: a tensor for each input, in their order."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    why_not_repeatable: str | None = None
    """Why a row's outputs depend on more than the row; None where they do not."""

    @abstractmethod
    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run it and return a tensor for each output, in their order.

        Raises:
            ServingError: with the reason of whoever refused or failed.
        """


class Weights:
    """Copies of variables as they are now, each made once however many signatures use it."""

    def __init__(self) -> None:
        self._copies: dict[int, tf.Variable] = {}

    def copy(self, variable: tf.Variable) -> tf.Variable:
        """A variable of the same value on the same device, which nobody else changes."""
        key = id(variable.handle)
        if key not in self._copies:
            with tf.device(variable.device):
                self._copies[key] = tf.Variable(
                    variable.read_value(), trainable=False, shape=variable.shape
                )
        return self._copies[key]


class TracedCall(LiveCall):
    """A ConcreteFunction, its graph taken over so that it runs as TensorFlow Serving runs graphs.

    Static shapes of inputs are not checked at the door: what does not fit is refused by the
    operation that it does not fit, with the runtime's words.

    Attributes:
        variables: What the graph reads and writes: the model's own, or the copies.
        shares: Whether the graph holds other things of the model, such as tables.
    """

    def __init__(
        self,
        function: Any,
        inputs: Mapping[str, TensorInfo],
        outputs: Mapping[str, TensorInfo],
        weights: Weights | None,
    ) -> None:
        """Take the function over.

        Args:
            function: takes and returns flat lists of tensors, in the order of the mappings.
            inputs: what it takes.
            outputs: what it returns.
            weights: where its variables are copied to; None to follow its own.
        """
        self.inputs = inputs
        self.outputs = outputs
        graph = function.graph
        by_handle = {id(variable.handle): variable for variable in function.variables}
        self.variables: list[tf.Variable] = []
        self.shares = False
        captured = []
        for outer, _ in graph.captures:
            variable = by_handle.get(id(outer))
            if variable is not None:
                variable = variable if weights is None else weights.copy(variable)
                self.variables.append(variable)
            self.shares |= variable is None and outer.dtype == tf.resource
            captured.append(outer if variable is None else variable.handle)
        arguments = function.inputs[: len(inputs)]
        names = [tensor.name for tensor in (*arguments, *(inner for _, inner in graph.captures))]
        results = [tensor.name for tensor in function.outputs]
        definition = graph.as_graph_def()
        operation = unrepeatable_operation(definition, results)
        self.why_not_repeatable = None if operation is None else because_of(operation)

        def taken_over(*tensors: tf.Tensor) -> list[tf.Tensor]:
            here = tf.compat.v1.get_default_graph()
            feeds = [*tensors, *map(here.capture, captured)]
            fetched: list[tf.Tensor] = tf.import_graph_def(
                definition, dict(zip(names, feeds, strict=True)), results, name=""
            )
            return fetched

        self._dtypes = [tensor.dtype for tensor in arguments]
        self._function = tf.function(taken_over, autograph=False).get_concrete_function(
            *[tf.TensorSpec(None, dtype) for dtype in self._dtypes]
        )

    def trace(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Make it part of a graph that is being traced."""
        traced: list[tf.Tensor] = self._function(*tensors)
        return traced

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run it; see :meth:`LiveCall.__call__`."""
        try:
            fed = map(_to_tensorflow, tensors, self._dtypes)
            return [_from_tensorflow(tensor) for tensor in self._function(*fed)]
        except tf.errors.OpError as error:
            raise _as_served(error) from error


class PythonCall(LiveCall):
    """A plain Python function, held to the inputs and outputs that were declared for it."""

    why_not_repeatable = "it is a Python function, which may do anything"

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Mapping[str, TensorInfo],
        outputs: Mapping[str, TensorInfo],
    ) -> None:
        self._function = function
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run it; see :meth:`LiveCall.__call__`."""
        for (name, info), tensor in zip(self.inputs.items(), tensors, strict=True):
            if isinstance(tensor, DeepTensor) or not _fits(tensor.shape, info.shape):
                raise invalid_argument(
                    f"Input {name} has shape {_shown(tensor.shape)}, expected {_shown(info.shape)}"
                )
        try:
            returned = self._function(*tensors)
            results = self._in_order(returned)
            return [
                _as_declared(name, info, result)
                for (name, info), result in zip(self.outputs.items(), results, strict=True)
            ]
        except ServingError:
            raise
        except Exception as error:
            raise ServingError(Code.UNKNOWN, f"{type(error).__name__}: {error}") from error

    def _in_order(self, returned: Any) -> Sequence[Any]:
        if isinstance(returned, Mapping):
            missing = self.outputs.keys() - returned.keys()
            if missing:
                raise _wrong(f"no output {', '.join(sorted(missing))}")
            return [returned[name] for name in self.outputs]
        if len(self.outputs) == 1 and not (isinstance(returned, tuple) and len(returned) == 1):
            return [returned]
        if not isinstance(returned, tuple | list) or len(returned) != len(self.outputs):
            raise _wrong(
                f"{type(returned).__name__}, where {len(self.outputs)} outputs are declared"
            )
        return returned


def _to_tensorflow(tensor: Tensor, dtype: tf.DType) -> tf.Tensor:
    if isinstance(tensor, DeepTensor):
        return tf.reshape(tf.constant(tensor.values, dtype), tensor.shape)
    return tf.constant(tensor, dtype)


def _from_tensorflow(tensor: tf.Tensor) -> Tensor:
    if tensor.shape.rank > MAX_NUMPY_RANK:
        return DeepTensor(tf.reshape(tensor, [-1]).numpy(), tuple(tensor.shape))
    array = tensor.numpy()
    # The runtime gives a scalar string as plain bytes, and other scalars as NumPy's.
    return array if type(array) is np.ndarray else np.array(array, tensor.dtype.as_numpy_dtype)


def _as_served(error: tf.errors.OpError) -> ServingError:
    """The runtime's words without the frames that eager execution puts around them."""
    served = serving_error(error)
    return ServingError(served.code, _TAIL.sub("", _HEAD.sub("", served.message)))


def _as_declared(name: str, info: TensorInfo, result: Any) -> np.ndarray:
    dtype = dtype_of(info.dtype).numpy
    if info.dtype == "string":
        array = _as_bytes(np.asarray(result, object))
    else:
        array = np.asarray(result)
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise _wrong(f"output {name} of dtype {array.dtype}, declared as {info.dtype}")
        array = array.astype(dtype, copy=False)
    if not _fits(array.shape, info.shape):
        raise _wrong(
            f"output {name} of shape {_shown(array.shape)}, declared as {_shown(info.shape)}"
        )
    return array


def _as_bytes(array: np.ndarray) -> np.ndarray:
    encoded = np.empty(array.shape, object)
    for index, item in np.ndenumerate(array):
        encoded[index] = item if isinstance(item, bytes) else str(item).encode()
    return encoded


def _wrong(what: str) -> ServingError:
    return ServingError(Code.INTERNAL, f"The published function returned {what}")


def _fits(shape: tuple[int, ...], declared: tuple[int, ...] | None) -> bool:
    if declared is None:
        return True
    return len(shape) == len(declared) and all(
        wanted in (-1, size) for size, wanted in zip(shape, declared, strict=True)
    )


def _shown(shape: tuple[int, ...] | None) -> str:
    """A shape as TensorFlow's texts write it."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if size < 0 else str(size) for size in shape)}]"
