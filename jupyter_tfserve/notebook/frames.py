"""DataFrames to the inputs of a signature: which column goes where.

- A signature with several inputs takes each from the column of its name; other columns are left
  out. ``columns={"input": "column"}``, or a list of columns for one input, says otherwise.
- A single input of rank 2 takes all columns, in their order, or those of ``columns=[...]``.
- Any other single input takes the column of its name, or the only column there is. So does one of
  rank 2 whose column of that name holds arrays, or that takes one value a row.
- A column of scalars fills an input ``[?]`` or ``[?, 1]``; cells that are arrays or lists have to
  have the shape of what follows the first dimension.
- Columns of two levels: the first is the input's name, and its columns make the last dimension.

What does not fit is an error that names the column; no column is dropped, cast or filled to make it
fit. The rule for each dtype stands in :mod:`~jupyter_tfserve.notebook.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import DROP, ERROR, column_array
from .errors import InvalidArgumentError
from .frame_columns import InputColumns, check_duplicates, match_columns
from .metadata import describe

if TYPE_CHECKING:
    import pandas as pd

    from ..servable import SignatureInfo
    from .casting import Array


class Plan:
    """Which columns of a frame make which inputs.

    Raises:
        InvalidArgumentError: where the frame does not fit the signature.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        signature: SignatureInfo,
        columns: Mapping[str, Any] | Sequence[Any] | None = None,
        missing: Any = ERROR,
    ) -> None:
        check_duplicates(frame)
        self._missing = missing
        self.inputs = match_columns(frame, signature, columns)

    def positions(self) -> list[int]:
        """The columns that are used."""
        return sorted({position for one in self.inputs for position in one.positions})

    def tensors(
        self, frame: pd.DataFrame, start: int = 0, stop: int | None = None
    ) -> dict[str, Array]:
        """The tensors of some of the rows.

        Raises:
            InvalidArgumentError: naming the column and the row that does not fit.
        """
        rows = frame.iloc[start:stop]
        return {one.name: self._tensor(rows, one, start) for one in self.inputs}

    def _tensor(self, rows: pd.DataFrame, one: InputColumns, first_row: int) -> Array:
        arrays = []
        for position in one.positions:
            column = rows.iloc[:, position]
            missing = _choice(self._missing, column.name)
            array = column_array(column, one.name, one.info, missing, first_row)
            arrays.append(_fitted(array, column.name, one))
        return np.stack(arrays, axis=1) if one.is_wide else arrays[0]


def _fitted(array: Array, label: Any, one: InputColumns) -> Array:
    """One column's array in the shape that its input has, or a refusal."""
    declared = one.info.shape
    if one.is_wide:
        if array.ndim == 1:
            return array
        raise _refusal(f"column {label!r} holds arrays, as one of several columns", one)
    if not declared:
        return array
    if array.ndim == 1 and len(declared) == 2 and declared[1] in (1, -1):
        return array.reshape(-1, 1)
    cell, expected = array.shape[1:], declared[1:]
    if len(cell) != len(expected) or any(
        e not in (-1, c) for c, e in zip(cell, expected, strict=True)
    ):
        found = f"arrays of shape {list(cell)}" if cell else "one value a row"
        raise _refusal(f"column {label!r} holds {found}", one)
    return array


def _refusal(reason: str, one: InputColumns) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{reason}, but the model takes {describe(one.name, one.info)}", where=reason
    )


def _choice(missing: Any, label: Any) -> Any:
    return missing.get(label, ERROR) if isinstance(missing, Mapping) else missing


def without_missing(frame: pd.DataFrame, positions: list[int], missing: Any) -> pd.DataFrame:
    """The frame without the rows that ``missing`` says to drop."""
    dropped = np.zeros(len(frame), np.bool_)
    for position in positions:
        column = frame.iloc[:, position]
        if _is_drop(_choice(missing, column.name)):
            dropped |= column.isna().to_numpy()
    return frame[~dropped] if dropped.any() else frame


def _is_drop(choice: Any) -> bool:
    return isinstance(choice, str) and choice == DROP


def to_inputs(
    frame: pd.DataFrame, signature: SignatureInfo, columns: Any = None, missing: Any = ERROR
) -> dict[str, Array]:
    """The tensors of a frame by input, for the columnar form.

    Args:
        frame: The data.
        signature: What takes it.
        columns: Which columns go where, if not by name and order; see this module.
        missing: ``"error"``, ``"drop"``, or the value to take; or a dict of these by column.

    Raises:
        InvalidArgumentError: naming the column and the row that does not fit.
    """
    plan = Plan(frame, signature, columns, missing)
    return plan.tensors(without_missing(frame, plan.positions(), missing))


def to_instances(
    frame: pd.DataFrame, signature: SignatureInfo, columns: Any = None, missing: Any = ERROR
) -> list[Any]:
    """The rows of a frame for the row form: what goes into ``instances``, ready for JSON.

    A signature with one input has a value for each row, one with several a dict. Bytes become
    ``{"b64": ...}`` where they are no UTF-8. Arguments are those of :func:`to_inputs`.

    Raises:
        InvalidArgumentError: as :func:`to_inputs` does.
    """
    from .request import plain_values

    tensors = to_inputs(frame, signature, columns, missing)
    lists = {name: plain_values(array) for name, array in tensors.items()}
    if len(lists) == 1:
        return next(iter(lists.values()))
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
