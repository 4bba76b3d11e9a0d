"""What the shapes of a signature tell about batching it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...servable import SignatureInfo, TensorInfo


def why_not_rowwise(signature: SignatureInfo) -> str | None:
    """Why inputs or outputs cannot be rows of several callers; None where their shapes allow it.

    An unknown rank allows it: each run shows what it has.
    """
    if not signature.inputs:
        return "it has no inputs"
    for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        for alias, info in tensors.items():
            reason = _why_not(info)
            if reason is not None:
                return f"{kind} {alias} {reason}"
    return None


def _why_not(info: TensorInfo) -> str | None:
    if info.shape is None:
        return None
    if not info.shape:
        return "is a scalar"
    return None if info.shape[0] < 0 else f"has a first dimension that is fixed at {info.shape[0]}"
