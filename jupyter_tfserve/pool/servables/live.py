"""Models in this process's memory, as they are or as they were when they were published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...servable import SignatureInfo
from .base import Footprint
from .definition import PREDICT_METHOD, DefinedServable
from .live_calls import TracedCall
from .live_model import live_calls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...codec.deep import Tensor


class LiveServable(DefinedServable):
    """A model that was made in this process."""

    def __init__(self, model: Any, signatures: Any = None, *, freeze: bool | None = None) -> None:
        """Trace the model's signatures; see :func:`.live_model.live_calls` for the arguments.

        Raises:
            ServingError: INVALID_ARGUMENT, saying what is missing.
            Exception: whatever the model's own code raises when it is traced.
        """
        self._calls = live_calls(model, signatures, freeze=freeze)
        self.signatures = {
            key: SignatureInfo(
                key,
                dict(sorted(call.inputs.items())),
                dict(sorted(call.outputs.items())),
                PREDICT_METHOD,
            )
            for key, call in self._calls.items()
        }
        traced = [call for call in self._calls.values() if isinstance(call, TracedCall)]
        variables = {id(v): v for call in traced for v in call.variables}.values()
        # TensorFlow frees a variable or a table with the object that made it. Frozen weights are
        # copies, so a model that is nothing but weights may go.
        frozen = len(traced) == len(self._calls) and freeze is not False
        needed = not frozen or any(call.shares for call in traced)
        self._kept = (model, signatures) if needed else None
        self.footprint = _footprint([(v.device, v.shape, v.dtype) for v in variables])

    def call(
        self,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Tensor]:
        """Run one signature; see :meth:`Servable.call`."""
        call = self._calls[signature]
        results = dict(zip(call.outputs, call([inputs[name] for name in call.inputs]), strict=True))
        return results if outputs is None else {alias: results[alias] for alias in outputs}

    def why_not_repeatable(self, signature: str) -> str | None:
        """See :meth:`Servable.why_not_repeatable`."""
        return self._calls[signature].why_not_repeatable

    def close(self) -> None:
        """Let go of the model and of the copies of its weights."""
        self._calls = {}
        self._kept = None


def _footprint(variables: Sequence[tuple[str, Any, Any]]) -> Footprint:
    """Bytes of variables, given as device, shape and dtype."""
    host = device = 0
    where = "CPU"
    for name, shape, dtype in variables:
        size = (shape.num_elements() or 0) * dtype.size
        if ":GPU:" in name:
            where = f"GPU:{name.rpartition(':')[2]}"
            device += size
        else:
            host += size
    return Footprint(where, host, device)
