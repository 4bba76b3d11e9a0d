"""Which columns of a frame make which inputs of a signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidArgumentError
from .metadata import describe, did_you_mean
from .tensors import examples_hint

if TYPE_CHECKING:
    import pandas as pd

    from ..servable import SignatureInfo, TensorInfo


@dataclass(frozen=True, slots=True)
class InputColumns:
    """One input and the positions of its columns; a single one gives its cells as they are."""

    name: str
    info: TensorInfo
    positions: tuple[int, ...]
    is_wide: bool


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


def match_columns(
    frame: pd.DataFrame, signature: SignatureInfo, columns: Any
) -> list[InputColumns]:
    """Settle which columns make which inputs; see :mod:`~jupyter_tfserve.notebook.frames`.

    Raises:
        InvalidArgumentError: naming the column that is missing or too many.
    """
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
