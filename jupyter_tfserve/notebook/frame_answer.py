"""Outputs to a DataFrame on the caller's index.

The shape in the signature decides, so that the columns are the same for any number of rows; sizes
that it leaves free are taken from the answer.

| output ``out`` of shape | columns                                            |
| ----------------------- | -------------------------------------------------- |
| ``[?]``, ``[?, 1]``     | ``out``                                            |
| ``[?, n]``              | ``out_0`` … ``out_{n-1}``                          |
| of more dimensions      | ``out``, with an array of the further ones in each cell |

Where a name would then stand twice, the vector stays in one column, with an array in each cell.
Outputs come in the order of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .errors import InvalidArgumentError
from .metadata import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..servable import SignatureInfo
    from .casting import Array


def to_frame(
    outputs: Mapping[str, Array], signature: SignatureInfo, index: pd.Index
) -> pd.DataFrame:
    """The outputs as columns; each has a row for each label of the index."""
    widths = {name: _width(outputs[name], signature, name) for name in sorted(outputs)}
    taken = [name for name, width in widths.items() if width is None]
    columns: dict[str, Any] = {}
    for name, width in widths.items():
        array = outputs[name]
        labels = [f"{name}_{at}" for at in range(width or 0)]
        if width is None:
            columns[name] = array.reshape(len(array)) if array.ndim == 2 else _cells(array)
        elif set(labels) & {*taken, *columns}:
            columns[name] = _cells(array)
        else:
            columns |= {label: array[:, at] for at, label in enumerate(labels)}
    return pd.DataFrame(columns, index=index)


def _width(array: Array, signature: SignatureInfo, name: str) -> int | None:
    """The number of columns that a vector is spread over; None for a single one."""
    if array.ndim != 2:
        return None
    declared = signature.outputs[name].shape
    if not declared:
        return None if array.shape[1] == 1 else int(array.shape[1])
    return None if len(declared) == 2 and declared[1] == 1 else int(array.shape[1])


def _cells(array: Array) -> Array:
    if array.ndim == 1:
        return array
    cells = np.empty(len(array), np.object_)
    for row, value in enumerate(array):
        cells[row] = value
    return cells


def chosen_outputs(
    outputs: Mapping[str, Array],
    wanted: Sequence[str] | None,
    rows: int,
    signature: SignatureInfo,
) -> dict[str, Array]:
    """The outputs that are wanted, each of them checked to have as many rows as were sent.

    Raises:
        InvalidArgumentError: where one has not, and so cannot stand on the caller's index.
    """
    found = {name: outputs[name] for name in outputs if wanted is None or name in wanted}
    for name, array in found.items():
        if array.ndim == 0 or len(array) != rows:
            raise InvalidArgumentError(
                f"Output {describe(name, signature.outputs[name])} has shape {list(array.shape)}, "
                f"not a row for each of the {rows} sent",
                "Leave it out with outputs=[...], or take the arrays as they are: "
                "client.predict(name, df.tfserve.to_inputs(signature)).",
                where=f"output {name}",
            )
    return found
