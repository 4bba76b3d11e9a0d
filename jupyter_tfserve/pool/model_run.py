"""One run of a signature, alone or merged with others of its kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from ..codec.deep import DeepTensor
from ..errors import Code, ServingError
from .batching.records import BatchRecord
from .batching.tensors import cut, join
from .batching.version import Mode

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from ..codec.deep import Tensor
    from ..servable import SignatureInfo
    from .batching.queues import VersionQueues
    from .batching.tensors import Arrays
    from .servables.base import Servable

MAX_MERGED_ROWS = 1024
"""So many rows are run at a time, unless one caller alone brings more."""


class ModelRun:
    """What is to be run on what, and in time what came out.

    Attributes:
        servable: What runs it; None once it has.
        signature: Of the servable.
        aliases: The outputs to compute; None stands for all.
        inputs: A tensor for each input alias; dropped once they have been run.
        outputs: A tensor for each output alias, once run.
        seconds: How long the run took, of a merged one that of all.
    """

    __slots__ = (
        "_uneven",
        "aliases",
        "inputs",
        "outputs",
        "seconds",
        "servable",
        "signature",
    )

    def __init__(
        self,
        servable: Servable,
        signature: SignatureInfo,
        inputs: Mapping[str, Tensor],
        aliases: tuple[str, ...] | None = None,
    ) -> None:
        self.servable: Servable | None = servable
        self._uneven = False
        self.aliases = aliases
        self.signature = signature
        self.inputs = inputs
        self.outputs: Mapping[str, Tensor] = {}
        self.seconds = 0.0

    def run(self) -> None:
        """Run it alone.

        Raises:
            ServingError: with the code and text of the runtime.
        """
        servable = self.servable
        assert servable is not None
        inputs, self.inputs = self.inputs, {}
        began = time.perf_counter()
        outputs = servable.call(self.signature.key, inputs, self.aliases)
        self.finish(outputs, time.perf_counter() - began)
        if self._uneven:
            text = "it takes inputs with different numbers of rows"
            servable.batching.refuse(self.signature.key, text)

    def run_and_look(self) -> None:
        """The same for a run with a :meth:`key`, and note whether its outputs are rows.

        Raises:
            ServingError: as :meth:`run`.
        """
        servable, rows = self.servable, self.rows
        assert servable is not None
        self.run()
        servable.batching.has_a_row_for_each(self.signature.key, self.aliases, self.outputs, rows)

    def finish(self, outputs: Mapping[str, Tensor], seconds: float) -> None:
        """Take what came out; the servable and the inputs are not held any longer."""
        self.seconds = seconds
        self.outputs = outputs
        self.inputs = {}
        self.servable = None

    @property
    def rows(self) -> int:
        """The size of the inputs' common first dimension, of a run that has a :meth:`key`."""
        return int(next(iter(self.inputs.values())).shape[0])

    @property
    def queues(self) -> VersionQueues | None:
        """Where such runs wait for company; None where they do not. A run also needs a key."""
        return None if self.servable is None else self.servable.batching.queues

    def key(self) -> Hashable | None:
        """What runs that may be merged with this one have in common, or None if it runs alone.

        Only rows of the same shapes and dtypes are merged: what fits one caller's fits all.
        """
        servable, inputs = self.servable, self.inputs
        if servable is None or self.signature.key not in servable.batching.mergeable:
            return None
        kinds: list[Hashable] = []
        rows = None
        for tensor in inputs.values():
            if isinstance(tensor, DeepTensor) or not tensor.ndim:
                return None
            if rows is None:
                rows = tensor.shape[0]
            elif tensor.shape[0] != rows:
                self._uneven = True  # which says something of the model, if it takes them
                return None
            kinds += tensor.shape[1:], tensor.dtype.num
        # A run of no rows has an error or an answer of its own.
        return (servable, self.signature.key, self.aliases, *kinds) if rows else None

    def run_with(self, others: Sequence[ModelRun]) -> None:
        """Run it and others of the same :meth:`key` as one.

        Raises:
            ServingError: nothing has come of it, and each may be run alone.
        """
        servable = self.servable
        assert servable is not None
        runs = self, *others
        sizes = [run.rows for run in runs]
        rows = sum(sizes)
        inputs = join([cast("Arrays", run.inputs) for run in runs])
        began = time.perf_counter()
        outputs = servable.call(self.signature.key, inputs, self.aliases)
        seconds = time.perf_counter() - began
        batching = servable.batching
        if not batching.has_a_row_for_each(self.signature.key, self.aliases, outputs, rows):
            raise ServingError(
                Code.FAILED_PRECONDITION,
                f"The outputs of signature {self.signature.key} may be no rows of its inputs",
            )
        batching.observe(BatchRecord(Mode.GREEDY, rows, rows))
        for run, part in zip(runs, cut(cast("Arrays", outputs), sizes), strict=True):
            run.finish(part, seconds)
