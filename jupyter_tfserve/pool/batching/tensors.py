"""Rows of several callers as one tensor: joined, padded, and cut apart again.

The paddings are TensorFlow Serving's (``batching/batching_session.cc``, ``batching_util.cc``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = Mapping[str, Array]


def join(parts: Sequence[Arrays], rows: int = 0) -> dict[str, Array]:
    """The rows of all parts, one after the other.

    Args:
        parts: at least one, each with the same names; all of one shape beyond the first dimension.
        rows: where there are fewer, the first row of the last part fills them up.
    """
    if len(parts) == 1 and rows <= _rows(parts[0]):
        return dict(parts[0])
    missing = rows - sum(map(_rows, parts))
    joined = {}
    for name, last in parts[-1].items():
        arrays = [part[name] for part in parts]
        if missing > 0:
            arrays.append(np.broadcast_to(last[:1], (missing, *last.shape[1:])))
        joined[name] = np.concatenate(arrays)
    return joined


def cut(outputs: Arrays, sizes: Sequence[int]) -> list[dict[str, Array]]:
    """The parts of ``sizes`` rows each; rows beyond them are dropped."""
    ends = list(accumulate(sizes))
    return [
        {name: array[end - size : end] for name, array in outputs.items()}
        for size, end in zip(sizes, ends, strict=True)
    ]


def even_out(parts: Sequence[Arrays]) -> Sequence[Arrays]:
    """Make rows of different shapes and one rank the same shape: the largest of each dimension.

    What is missing at the end of a dimension is filled with the tensor's own first element.
    """
    return [
        {name: _padded(part[name], _largest([p[name] for p in parts])) for name in part}
        for part in parts
    ]


def _largest(arrays: Sequence[Array]) -> tuple[int, ...]:
    return tuple(map(max, zip(*(array.shape[1:] for array in arrays), strict=True)))


def _padded(array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape[1:] == shape:
        return array
    first: Any = array.flat[0] if array.size else b"" if array.dtype == object else 0
    padded = np.full((array.shape[0], *shape), first, array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    return padded


def _rows(part: Arrays) -> int:
    return int(next(iter(part.values())).shape[0])
