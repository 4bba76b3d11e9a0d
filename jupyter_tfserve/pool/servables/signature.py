"""How a published function is called, as its owner declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Spec: TypeAlias = tuple[Any, Sequence[int | None] | None] | Any
"""A dtype and a shape, or a ``tf.TensorSpec``."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a function by name, in the order of its arguments and results.

    Each is a pair of a dtype and a shape, such as ``("float32", [-1, 4])``, or a ``tf.TensorSpec``.
    Dtypes are whatever TensorFlow takes as one (``"string"``, ``np.int64``, ``tf.bool``); a
    dimension of -1 or None is free, a shape of None has any rank.

    A plain Python function is called with one NumPy array for each input, in this order; strings
    are object arrays of ``bytes``. It returns one array, a tuple with one for each output in this
    order, or a dict by output name. It may be called from several threads at a time.

    Attributes:
        inputs: At least one.
        outputs: May be left out where TensorFlow can trace the function, which then tells them.
    """

    inputs: Mapping[str, Spec]
    outputs: Mapping[str, Spec] | None = None
