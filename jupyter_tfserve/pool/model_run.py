"""One run of a signature, alone or merged with others of its kind."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..codec.deep import DeepTensor
from ..errors import Code, ServingError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from ..codec.deep import Tensor
    from ..servable import SignatureInfo
    from .servables.base import Servable

MAX_MERGED_ROWS = 1024
"""So many rows are run at a time, unless one caller alone brings more."""


class ModelRun:
    """What is to be run on what, and in time what came out.

    Attributes:
        signature: Of the servable.
        inputs: A tensor for each input alias; dropped once they have been run.
        outputs: A tensor for each output alias, once run.
        seconds: How long the run took, of a merged one that of all.
    """

    __slots__ = ("_aliases", "_servable", "inputs", "outputs", "seconds", "signature")

    def __init__(
        self,
        servable: Servable,
        signature: SignatureInfo,
        inputs: Mapping[str, Tensor],
        aliases: tuple[str, ...] | None = None,
    ) -> None:
        """``aliases`` are the outputs to compute; None stands for all."""
        self._servable: Servable | None = servable
        self._aliases = aliases
        self.signature = signature
        self.inputs = inputs
        self.outputs: Mapping[str, Tensor] = {}
        self.seconds = 0.0

    def run(self) -> None:
        """Run it alone.

        Raises:
            ServingError: with the code and text of the runtime.
        """
        assert self._servable is not None
        inputs, self.inputs = self.inputs, {}
        began = time.perf_counter()
        outputs = self._servable.call(self.signature.key, inputs, self._aliases)
        self.finish(outputs, time.perf_counter() - began)

    def finish(self, outputs: Mapping[str, Tensor], seconds: float) -> None:
        """Take what came out; the servable and the inputs are not held any longer."""
        self.seconds = seconds
        self.outputs = outputs
        self.inputs = {}
        self._servable = None

    @property
    def rows(self) -> int:
        """The size of the inputs' common first dimension, of a run that has a :meth:`key`."""
        return int(next(iter(self.inputs.values())).shape[0])

    def key(self) -> Hashable | None:
        """What runs that may be merged with this one have in common, or None if it runs alone.

        Only rows of the same shapes are merged: what fits one caller's fits all.
        """
        servable, inputs = self._servable, self.inputs
        if servable is None or self.signature.key not in servable.mergeable:
            return None
        shapes = []
        rows = None
        for tensor in inputs.values():
            if isinstance(tensor, DeepTensor) or not tensor.ndim:
                return None
            if rows is None:
                rows = tensor.shape[0]
            elif tensor.shape[0] != rows:
                return None
            shapes.append(tensor.shape[1:])
        # A run of no rows has an error or an answer of its own.
        return (servable, self.signature.key, self._aliases, *shapes) if rows else None

    def run_with(self, others: Sequence[ModelRun]) -> None:
        """Run it and others of the same :meth:`key` as one.

        Raises:
            ServingError: nothing has come of it, and each may be run alone.
        """
        assert self._servable is not None
        runs = self, *others
        tensors = cast("list[Mapping[str, np.ndarray[Any, Any]]]", [run.inputs for run in runs])
        inputs = {name: np.concatenate([each[name] for each in tensors]) for name in self.inputs}
        ends = list(accumulate(run.rows for run in runs))
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        began = time.perf_counter()
        outputs = self._servable.call(self.signature.key, inputs, self._aliases)
        seconds = time.perf_counter() - began
        for name, tensor in outputs.items():
            if isinstance(tensor, DeepTensor) or tensor.shape[:1] != (ends[-1],):
                raise ServingError(
                    Code.FAILED_PRECONDITION,
                    f"Output {name} of signature {self.signature.key} has not a row for each row",
                )
            arrays[name] = tensor
        start = 0
        for run, end in zip(runs, ends, strict=True):
            run.finish({name: array[start:end] for name, array in arrays.items()}, seconds)
            start = end
