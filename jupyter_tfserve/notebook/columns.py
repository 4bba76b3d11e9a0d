"""One pandas column to the values of an input: the rule for each dtype.

| column                 | float, double, half   | integer input     | bool | string          |
| ---------------------- | --------------------- | ----------------- | ---- | --------------- |
| float32, float64       | yes, NaN too; rounded | whole, below 2**53 | 0, 1 | no             |
| int8 … uint64          | where exact           | within its range  | 0, 1 | no              |
| bool                   | 0.0, 1.0              | 0, 1              | yes  | no              |
| str, string            | no                    | no                | no   | UTF-8           |
| datetime64, timedelta64 | no                   | no                | no   | ISO 8601        |
| period                 | no                    | no                | no   | as it is shown  |
| interval, complex      | no                    | no                | no   | no              |
| object: numbers        | as numbers            | as numbers        | 0, 1 | no              |
| object: str, bytes     | no                    | no                | no   | as they are     |
| object: lists, arrays  | as their elements; of one shape, which makes further dimensions ||||
| Int64, Float64, boolean, Arrow | as the NumPy dtype; ``<NA>`` is missing                 ||||
| category               | as the categories' own values, never their codes                ||||
| Sparse                 | as dense                                                        ||||

"No" is an :class:`~jupyter_tfserve.notebook.errors.InvalidArgumentError` that names the column, the
row and what would do. Dates and durations have no unit that could be guessed, so they are never
made numbers: ``df.when.dt.total_seconds()`` or ``.astype("int64")`` says which is meant. Arrays for
a string input need an encoding: see :func:`~jupyter_tfserve.notebook.images.encode_array`.

Missing is what ``isna`` finds. NaN in a float column is a number to a float input, and goes to the
model as it is, unless ``missing`` is a value or ``"drop"``; everything else that is missing has to
be decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .casting import FLOATS, Array, cast, encoding_needed
from .errors import InvalidArgumentError
from .tensors import tensor

if TYPE_CHECKING:
    from ..servable import TensorInfo

ERROR, DROP = "error", "drop"


def column_array(
    column: pd.Series, name: str, info: TensorInfo, missing: Any = ERROR, first_row: int = 0
) -> Array:
    """The values of a column as an input's dtype; cells that are arrays add dimensions.

    Args:
        column: The column; its name stands in errors.
        name: The input's name.
        info: The input.
        missing: ``"error"``, or what takes the place of missing values. Rows to drop have gone
            before.
        first_row: The position of the first value in the caller's frame, for errors.

    Raises:
        InvalidArgumentError: naming the column and the row.
    """
    spot = _Spot(column, name, info, first_row)
    column = _plain(column)
    mask = column.isna().to_numpy()
    undecided = isinstance(missing, str) and missing in (ERROR, DROP)
    if mask.any() and not (undecided and _nan_is_meant(column, info)):
        if undecided:
            raise spot.missing(int(np.argmax(mask)))
        values = column.to_numpy(object).copy()
        values[mask] = missing
        column = pd.Series(values, column.index, name=column.name).infer_objects()
    values = _values(column, info, spot)
    if values.dtype == np.object_ and _has_arrays(values):
        return _stacked(values, spot)
    return cast(values, name, info, spot.place)


class _Spot:
    """Where values come from and go to, in words."""

    def __init__(self, column: pd.Series, name: str, info: TensorInfo, first_row: int) -> None:
        self.label = column.name
        self.name = name
        self.info = info
        self._index = column.index
        self._first_row = first_row

    def place(self, row: int) -> str:
        """A row by its position in the caller's frame, and by its label where that differs."""
        position, label = self._first_row + row, self._index[row]
        label = label.item() if isinstance(label, np.generic) else label
        known = f" (index {label!r})" if label != position else ""
        return f"column {self.label!r}, row {position}{known}"

    def missing(self, row: int) -> InvalidArgumentError:
        where = self.place(row)
        return InvalidArgumentError(
            f"{where}: a missing value; input {self.name} is {self.info.dtype}",
            'Say what is to become of it: missing="drop" leaves such rows out, any other value '
            "takes its place, missing={column: value} for each column.",
            where=where,
        )

    def refused(self, reason: str, hint: str) -> InvalidArgumentError:
        where = f"column {self.label!r}"
        return InvalidArgumentError(
            f"{where} {reason}; input {self.name} is {self.info.dtype}", hint, where=where
        )


def _plain(column: pd.Series) -> pd.Series:
    """A column without the dtypes that only say how values are kept."""
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return column.sparse.to_dense()
    if isinstance(dtype, pd.CategoricalDtype):
        return column.astype(object if column.hasnans else dtype.categories.dtype)
    return column


def _nan_is_meant(column: pd.Series, info: TensorInfo) -> bool:
    dtype = column.dtype
    return info.dtype in FLOATS and isinstance(dtype, np.dtype) and dtype.kind == "f"


def _values(column: pd.Series, info: TensorInfo, spot: _Spot) -> Array:
    dtype = column.dtype
    values: Array
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        if info.dtype != "string":
            raise _no_number(spot, dtype)
        values = column.map(lambda value: value.isoformat()).to_numpy(object)
    elif isinstance(dtype, pd.PeriodDtype) and info.dtype == "string":
        values = column.astype(str).to_numpy(object)
    elif isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype) or dtype.kind == "c":
        raise spot.refused(f"holds {dtype}", "Make numbers or text of it first.")
    elif isinstance(dtype, np.dtype):
        values = column.to_numpy()
    elif pd.api.types.is_bool_dtype(dtype):
        values = column.to_numpy(np.bool_)
    elif pd.api.types.is_integer_dtype(dtype):
        unsigned = pd.api.types.is_unsigned_integer_dtype(dtype)
        values = column.to_numpy(np.uint64 if unsigned else np.int64)
    elif pd.api.types.is_float_dtype(dtype):
        values = column.to_numpy(getattr(dtype, "numpy_dtype", np.dtype(np.float64)))
    else:
        values = column.to_numpy(object)
    return values


def _no_number(spot: _Spot, dtype: Any) -> InvalidArgumentError:
    if pd.api.types.is_timedelta64_dtype(dtype):
        return spot.refused("holds durations", "Choose the unit: .dt.total_seconds()")
    return spot.refused(
        "holds dates", 'Choose the unit: .astype("int64") counts in that of the column.'
    )


def _has_arrays(values: Array) -> bool:
    for value in values:
        if value is not None:
            return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0
    return False


def _stacked(values: Array, spot: _Spot) -> Array:
    """Cells that are arrays, as one."""
    if spot.info.dtype == "string":
        for row, value in enumerate(values):
            if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
                raise encoding_needed(spot.name, spot.place(row))
    cells = [
        tensor(value, spot.name, spot.info, spot.place(row)) for row, value in enumerate(values)
    ]
    for row, cell in enumerate(cells):
        if cell.shape != cells[0].shape:
            where = spot.place(row)
            raise InvalidArgumentError(
                f"{where}: shape {list(cell.shape)}, while {spot.place(0)} has "
                f"{list(cells[0].shape)}",
                where=where,
            )
    return np.stack(cells)
