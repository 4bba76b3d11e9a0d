"""Tensors of more dimensions than NumPy has: TensorFlow takes 254, a NumPy array 64.

Nobody means to send one, yet TensorFlow Serving answers it, so it is carried: flat, with its shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

MAX_NUMPY_RANK = 64
MAX_RANK = 254


@dataclass(frozen=True, slots=True)
class DeepTensor:
    """A tensor of rank 65 to 254: its values in row-major order, a 1-D array, and its shape."""

    values: np.ndarray[Any, Any]
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        dtype: np.dtype[Any] = self.values.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of values."""
        return self.values.size


def flat(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A tensor's values in row-major order, a 1-D array."""
    return tensor.values if isinstance(tensor, DeepTensor) else tensor.reshape(-1)


Tensor: TypeAlias = np.ndarray[Any, Any] | DeepTensor
