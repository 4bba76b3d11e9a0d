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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import DROP, ERROR, column_array
from .errors import InvalidArgumentError
from .metadata import describe, did_you_mean
from .tensors import examples_hint

if TYPE_CHECKING:
    import pandas as pd

    from ..servable import SignatureInfo, TensorInfo
    from .casting import Array


@dataclass(frozen=True, slots=True)
class InputColumns:
    """One input and the positions of its columns; a single one gives its cells as they are."""

    name: str
    info: TensorInfo
    positions: tuple[int, ...]
    is_wide: bool


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
        self.inputs = _match(frame, signature, columns)

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


def check_duplicates(frame: pd.DataFrame) -> None:
    """Make sure that a name means one column.

    Raises:
        InvalidArgumentError: naming those that do not.
    """
    twice = frame.columns[frame.columns.duplicated()].unique()
    if len(twice):
        names = ", ".join(map(repr, twice))
        raise InvalidArgumentError(
            f"Several columns are called {names}",
            "Rename them: it could not be told which one is meant.",
            where=f"column {twice[0]!r}",
        )


def _match(frame: pd.DataFrame, signature: SignatureInfo, columns: Any) -> list[InputColumns]:
    inputs = signature.inputs
    if not inputs:
        raise InvalidArgumentError("The signature takes no data", signature=signature)
    if columns is None and frame.columns.nlevels > 1:
        columns = _by_level(frame, signature)
    if len(inputs) == 1 and not isinstance(columns, Mapping):
        ((name, info),) = inputs.items()
        labels = list(frame.columns) if columns is None else _listed(columns)
        return [_single(frame, name, info, labels, signature, chosen=columns is not None)]
    if columns is not None and not isinstance(columns, Mapping):
        raise InvalidArgumentError(
            "A list of columns is for a single input",
            'Say which is which: columns={"input": "column"}.',
            signature=signature,
        )
    chosen = dict(columns or {})
    for name in chosen:
        if name not in inputs:
            raise InvalidArgumentError(
                f"The signature has no input {name!r}{did_you_mean(name, inputs)}",
                signature=signature,
            )
    return [_named(frame, k, info, chosen.get(k, k), signature) for k, info in inputs.items()]


def _listed(columns: Any) -> list[Any]:
    return [columns] if isinstance(columns, str) else list(columns)


def _by_level(frame: pd.DataFrame, signature: SignatureInfo) -> dict[str, list[Any]]:
    if frame.columns.nlevels > 2:
        raise InvalidArgumentError(
            f"The columns have {frame.columns.nlevels} levels",
            "Two have a meaning: the input, and its columns in their order.",
        )
    found: dict[str, list[Any]] = {}
    for label in frame.columns:
        found.setdefault(label[0], []).append(label)
    for name in signature.inputs:
        if name not in found:
            raise _no_column(name, found, signature)
    return {name: found[name] for name in signature.inputs}


def _single(
    frame: pd.DataFrame,
    name: str,
    info: TensorInfo,
    labels: list[Any],
    signature: SignatureInfo,
    *,
    chosen: bool,
) -> InputColumns:
    # Without any dimension declared, none is taken for the batch's: the server will judge.
    rank = len(info.shape) if info.shape else None
    if not chosen and name in labels and len(labels) > 1:
        position = frame.columns.get_loc(name)
        takes_one = rank != 2 or (info.shape or ())[1:] == (1,)
        if takes_one or _holds_arrays(frame.iloc[:, position]):
            labels = [name]
    positions = tuple(_position(frame, label, name, signature) for label in labels)
    if rank in (2, None) and not (rank is None and info.dtype == "string" and len(labels) > 1):
        if rank == 2 and len(positions) == 1 and _holds_arrays(frame.iloc[:, positions[0]]):
            return InputColumns(name, info, positions, is_wide=False)
        return _wide(frame, name, info, positions, signature)
    if len(positions) == 1:
        return InputColumns(name, info, positions, is_wide=False)
    shown = ", ".join(map(repr, labels[:20])) or "none"
    raise InvalidArgumentError(
        f"{describe(name, info)} takes one column, and the frame has {len(labels)}: {shown}",
        examples_hint(signature) or "Choose it: columns=[...].",
        signature=signature,
    )


def _wide(
    frame: pd.DataFrame,
    name: str,
    info: TensorInfo,
    positions: tuple[int, ...],
    signature: SignatureInfo,
) -> InputColumns:
    width = info.shape[1] if info.shape else -1
    if width not in (-1, len(positions)):
        shown = ", ".join(repr(frame.columns[p]) for p in positions[:20])
        raise InvalidArgumentError(
            f"{describe(name, info)} takes {width} columns, and the frame has {len(positions)}: "
            f"{shown}",
            "Choose them: columns=[...].",
            signature=signature,
            where=f"{len(positions)} columns",
        )
    if not positions:
        raise InvalidArgumentError("The frame has no columns", signature=signature)
    return InputColumns(name, info, positions, is_wide=bool(info.shape) or len(positions) > 1)


def _named(
    frame: pd.DataFrame, name: str, info: TensorInfo, label: Any, signature: SignatureInfo
) -> InputColumns:
    if isinstance(label, list):
        positions = tuple(_position(frame, one, name, signature) for one in label)
        if len(positions) != 1 or (info.shape is not None and len(info.shape) == 2):
            return _wide(frame, name, info, positions, signature)
        return InputColumns(name, info, positions, is_wide=False)
    position = _position(frame, label, name, signature)
    return InputColumns(name, info, (position,), is_wide=False)


def _position(frame: pd.DataFrame, label: Any, name: str, signature: SignatureInfo) -> int:
    if label not in frame.columns:
        raise _no_column(label, frame.columns, signature, name)
    return int(frame.columns.get_loc(label))


def _no_column(
    label: Any, known: Any, signature: SignatureInfo, name: str | None = None
) -> InvalidArgumentError:
    purpose = f" for input {name}" if name not in (None, label) else ""
    return InvalidArgumentError(
        f"The frame has no column {label!r}{purpose}{did_you_mean(label, known)}",
        f"It has: {', '.join(str(one) for one in list(known)[:20])}.",
        signature=signature,
        where=f"column {label!r}",
    )


def _holds_arrays(column: pd.Series) -> bool:
    if column.dtype != np.object_:
        return False
    first = next((value for value in column if value is not None), None)
    return isinstance(first, list | tuple) or getattr(first, "ndim", 0) > 0


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
