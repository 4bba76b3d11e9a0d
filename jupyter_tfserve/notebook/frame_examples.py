"""DataFrames to ``tf.Example``: a feature for each column, of the kind of its dtype.

Floats make a float feature, integers and truth values an int64 one, strings, categories of them,
dates and bytes a bytes one; cells that are lists make features of several values. ``tf.Example``
tells 20 from 20.0: a column of integers for a float feature has to be ``astype("float32")`` first.
Missing values are refused as in :mod:`~jupyter_tfserve.notebook.columns`, but for NaN in floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..codec.example import parse_examples
from ..codec.json_encode import key_text
from ..servable import TensorInfo
from .columns import ERROR, column_array
from .errors import InvalidArgumentError
from .frame_columns import check_duplicates
from .frames import without_missing
from .request import feature_array, plain_values, scored_body, tensor_text
from .tensors import examples_hint

if TYPE_CHECKING:
    from ..servable import SignatureInfo
    from .casting import Array

_FLOAT = TensorInfo("double", (-1,))
_FLOAT32 = TensorInfo("float", (-1,))
_INTEGER = TensorInfo("int64", (-1,))
_STRING = TensorInfo("string", (-1,))


def to_examples(
    frame: pd.DataFrame,
    signature: SignatureInfo | None = None,
    missing: Any = ERROR,
    *,
    serialized: bool = False,
) -> list[Any]:
    """The rows of a frame as examples.

    Args:
        frame: A column for each feature.
        signature: Where given, it is checked to take examples.
        missing: As in :func:`~jupyter_tfserve.notebook.frames.to_inputs`.
        serialized: Whether to return serialised ``tf.Example`` protos, for a predict signature
            that parses them, or dicts of features, for classify and regress.

    Raises:
        InvalidArgumentError: naming the column and the row that makes no feature; or where the
            signature takes no examples.
    """
    if signature is not None and not examples_hint(signature):
        raise InvalidArgumentError("The signature takes no tf.Example", signature=signature)
    frame = without_missing(frame, list(range(len(frame.columns))), missing)
    columns = example_columns(frame, missing)
    if serialized:
        rows = rows_of_columns(columns)
        return parse_examples(scored_body(rows, b"", "")).examples if rows else []
    lists = {name: _values(cells) for name, cells in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def example_columns(
    frame: pd.DataFrame, missing: Any = ERROR, first_row: int = 0
) -> dict[str, Array | list[Array]]:
    """Each column as an array of features, or a list of them where cells are lists.

    Raises:
        InvalidArgumentError: naming the column and the row.
    """
    check_duplicates(frame)
    columns: dict[str, Array | list[Array]] = {}
    for label in frame.columns:
        column = frame[label]
        choice = missing.get(label, ERROR) if isinstance(missing, Mapping) else missing
        if column.dtype == np.object_ and any(isinstance(v, list | np.ndarray) for v in column):
            columns[str(label)] = [
                feature_array(value, f"column {label!r}, row {first_row + row}")
                for row, value in enumerate(column)
            ]
        else:
            info = _feature_info(column)
            columns[str(label)] = column_array(column, str(label), info, choice, first_row)
    return columns


def _feature_info(column: pd.Series) -> TensorInfo:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_integer_dtype(dtype):
        return _INTEGER
    if pd.api.types.is_float_dtype(dtype):
        return _FLOAT32 if dtype == np.float32 else _FLOAT
    if dtype == np.object_ and pd.api.types.infer_dtype(column, skipna=True) in (
        *("integer", "boolean"),
    ):
        return _INTEGER
    if dtype == np.object_ and pd.api.types.infer_dtype(column, skipna=True) == "floating":
        return _FLOAT
    return _STRING


def _values(cells: Array | list[Array]) -> list[Any]:
    if isinstance(cells, list):
        return [plain_values(cell) for cell in cells]
    return plain_values(cells)


def rows_of_columns(columns: Mapping[str, Array | list[Array]]) -> list[bytes]:
    """The JSON of each row's example."""
    texts = []
    for name, cells in columns.items():
        key = key_text(name) + b":"
        texts.append([key + text for text in _texts(cells)])
    return [b"{%b}" % b",".join(row) for row in zip(*texts, strict=True)]


def _texts(cells: Array | list[Array]) -> list[bytes]:
    if isinstance(cells, list):
        return [tensor_text(cell) if cell.ndim else tensor_text(cell[None])[1:-1] for cell in cells]
    if not len(cells):
        return []
    if cells.dtype == np.object_:
        return [tensor_text(cells[at : at + 1])[1:-1] for at in range(len(cells))]
    return tensor_text(cells)[1:-1].split(b",")
