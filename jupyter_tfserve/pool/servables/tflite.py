"""Models of TFLite, run by the LiteRT interpreter (package ``ai-edge-litert``)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codec.deep import DeepTensor
from ...codec.dtypes import name_of
from ...errors import Code, ServingError, invalid_argument
from .base import Footprint
from .definition import DefinedServable
from .tflite_model import TFLiteModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...codec.deep import Tensor
    from ...servable import TensorInfo
    from .tflite_model import Interpreter


class TFLiteServable(DefinedServable):
    """A TFLite model; calls run at the same time, each in an interpreter of its own.

    An interpreter is made when all others are busy, up to a limit, and kept; they share the
    file's content, which is read once.
    """

    def __init__(self, file: str, interpreters: int = 0) -> None:
        """Read the model in ``file`` and prepare one interpreter.

        Args:
            file: its path.
            interpreters: how many there may be; 0 is one for each CPU.

        Raises:
            ServingError: UNIMPLEMENTED naming an op that the interpreter lacks; DATA_LOSS for a
                file that is no TFLite model; FAILED_PRECONDITION where LiteRT is not installed.
        """
        try:
            content = Path(file).read_bytes()
        except OSError as error:
            raise ServingError(Code.NOT_FOUND, f"{file}: {error.strerror}") from error
        self._model: TFLiteModel | None = TFLiteModel(file, content)
        first = self._model.make_interpreter()
        self.signatures = self._model.signatures(first)
        self.footprint = Footprint("CPU", host_bytes=len(content))
        self._free = [first]
        self._slots = threading.Semaphore(interpreters or os.cpu_count() or 1)

    def call(
        self,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Tensor]:
        """Run one signature; see :meth:`Servable.call`."""
        info = self.signatures[signature]
        arrays = {
            alias: _array(index, alias, inputs[alias], wanted)
            for index, (alias, wanted) in enumerate(info.inputs.items())
        }
        with self._interpreter() as interpreter:
            results = interpreter.run(signature, arrays)
        return {alias: _result(results[alias]) for alias in outputs or info.outputs}

    @contextmanager
    def _interpreter(self) -> Iterator[Interpreter]:
        """One interpreter for one call; after a failure it is dropped, whatever its state."""
        with self._slots:
            try:
                interpreter = self._free.pop()
            except IndexError:
                assert self._model is not None
                interpreter = self._model.make_interpreter()
            yield interpreter
            self._free.append(interpreter)

    def why_not_repeatable(self, _signature: str) -> str | None:
        """Always a reason; see :meth:`Servable.why_not_repeatable`."""
        return "TFLite models are not looked into for state"

    def close(self) -> None:
        """Let go of all interpreters and of the model."""
        self._free.clear()
        self._model = None


def _array(index: int, alias: str, tensor: Tensor, wanted: TensorInfo) -> np.ndarray[Any, Any]:
    if isinstance(tensor, DeepTensor):
        raise invalid_argument(f"Input {alias} has {tensor.ndim} dimensions, too many for TFLite")
    given = name_of(tensor.dtype)
    if given != wanted.dtype:
        raise invalid_argument(f"Expects arg[{index}] to be {wanted.dtype} but {given} is provided")
    return tensor


def _result(value: Any) -> np.ndarray[Any, Any]:
    # The interpreter gives a scalar as itself, not as an array.
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
