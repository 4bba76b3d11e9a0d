"""What a caller gives, other than pandas, to the tensors of a signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codec.dtypes import Json, dtype_of
from .casting import FLOATS, Array, cast
from .errors import InvalidArgumentError
from .metadata import describe, did_you_mean

if TYPE_CHECKING:
    from ..servable import SignatureInfo, TensorInfo


def to_tensors(data: Any, signature: SignatureInfo) -> dict[str, Array]:
    """The tensors to send, each with its input's dtype.

    Args:
        data: One of

            - an array, a nested list, a scalar or anything that NumPy takes: the only input, in
              just this shape;
            - a dict of these by input: columns. Keys that are no input are left out. Where every
              value has one dimension less than its input, the dict is one row;
            - a list of dicts by input: rows.
        signature: What takes it.

    Raises:
        InvalidArgumentError: naming the input, the row and the value, and what was expected.
    """
    if isinstance(data, Mapping) and data.keys() != {"b64"}:
        return _columns(data, signature)
    if isinstance(data, list | tuple) and data and _is_row(data[0]):
        return _rows(data, signature)
    if len(signature.inputs) != 1:
        raise InvalidArgumentError(
            f"The signature has {len(signature.inputs)} inputs, and the data does not say which is "
            "which",
            "Give a dict with a value for each input, or a list of such dicts.",
            signature=signature,
        )
    ((name, info),) = signature.inputs.items()
    return {name: tensor(data, name, info, f"input {name}")}


def _is_row(item: Any) -> bool:
    return isinstance(item, Mapping) and item.keys() != {"b64"}


def _columns(data: Mapping[Any, Any], signature: SignatureInfo) -> dict[str, Array]:
    check_names(data, signature, "The data")
    inputs = signature.inputs
    tensors = {k: tensor(data[k], k, info, f"input {k}") for k, info in inputs.items()}
    ranks = {k: info.shape for k, info in inputs.items()}
    if all(shape and tensors[k].ndim == len(shape) - 1 for k, shape in ranks.items()):
        return {name: array[np.newaxis] for name, array in tensors.items()}
    return tensors


def _rows(data: Sequence[Any], signature: SignatureInfo) -> dict[str, Array]:
    columns: dict[str, list[Array]] = {name: [] for name in signature.inputs}
    for index, row in enumerate(data):
        if not _is_row(row):
            raise InvalidArgumentError(
                f"Row {index} is no dict, as the rows before it are", where=f"row {index}"
            )
        check_names(row, signature, f"Row {index}")
        for name, values in columns.items():
            where = f"row {index}, input {name}"
            values.append(tensor(row[name], name, signature.inputs[name], where))
    return {name: _stacked(name, values) for name, values in columns.items()}


def _stacked(name: str, values: list[Array]) -> Array:
    first = values[0].shape
    for index, value in enumerate(values):
        if value.shape != first:
            where = f"row {index}, input {name}"
            raise InvalidArgumentError(
                f"{where}: shape {list(value.shape)}, while row 0 has {list(first)}", where=where
            )
    return np.stack(values)


def check_names(data: Mapping[Any, Any], signature: SignatureInfo, who: str) -> None:
    """Make sure that a value is there for every input.

    Raises:
        InvalidArgumentError: naming the one that is missing.
    """
    for name in signature.inputs:
        if name in data:
            continue
        for key in data:
            if key not in signature.inputs and (meant := did_you_mean(key, [name])):
                raise InvalidArgumentError(
                    f"{who} has {key!r}, which is no input{meant}", signature=signature, where=name
                )
        raise InvalidArgumentError(
            f"{who} has no {name!r}",
            examples_hint(signature),
            signature=signature,
            where=name,
        )


def examples_hint(signature: SignatureInfo) -> str:
    """What to do where a signature seems to take serialised ``tf.Example``; or empty."""
    if len(signature.inputs) != 1:
        return ""
    ((name, info),) = signature.inputs.items()
    if info.dtype != "string" or (info.shape is not None and len(info.shape) != 1):
        return ""
    return (
        f"{name} most probably takes serialised tf.Example: make them with "
        "df.tfserve.to_examples(serialized=True), or call classify or regress where the model has "
        "such a signature."
    )


def tensor(value: Any, name: str, info: TensorInfo, where: str) -> Array:
    """One input from anything that NumPy takes.

    Raises:
        InvalidArgumentError: naming the first place that cannot be so.
    """
    array = _as_array(value, info, where)
    return cast(array, name, info, partial(_place, where, array.shape))


def _as_array(value: Any, info: TensorInfo, where: str) -> Array:
    dtype = dtype_of(info.dtype)
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, list | tuple):
        if info.dtype == "string":
            return _objects(value, where)
        try:
            array = np.asarray(value)
            # What NumPy would make doubles or text of is looked at as it was given.
            if array.dtype.kind in "SUO" or (
                array.dtype.kind == "f"
                and (dtype.json in (Json.INTEGER, Json.BOOL) or (np.abs(array) >= 2.0**53).any())
            ):
                array = _objects(value, where)
        except ValueError:
            array = _objects(value, where)
        if not array.size and array.dtype.kind == "f":
            return array.astype(dtype.numpy)
        return array
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping):
        return _objects(value, where)
    try:
        return np.asarray(value)  # tensors and other arrays, scalars
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"{where}: no array can be made of it: {error}") from None


def _objects(value: Any, where: str) -> Array:
    """A nested list as an array of the very objects in it; it has to be a rectangle."""
    shape: list[int] = []
    leaves: list[Any] = [value]
    while leaves and _is_list(leaves[0]):
        size = len(leaves[0])
        for index, node in enumerate(leaves):
            if not _is_list(node) or len(node) != size:
                place = _place(where, shape, index)
                found = f"{len(node)} elements" if _is_list(node) else "no list"
                raise InvalidArgumentError(
                    f"{place}: {found}, while {_place(where, shape, 0)} has {size} elements",
                    where=place,
                )
        shape.append(size)
        leaves = [leaf for node in leaves for leaf in node]
    for index, leaf in enumerate(leaves):
        if _is_list(leaf):
            place = _place(where, shape, index)
            raise InvalidArgumentError(
                f"{place}: a list, while {_place(where, shape, 0)} is none", where=place
            )
    array = np.empty(len(leaves), np.object_)
    array[:] = leaves
    return array.reshape(shape)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _place(where: str, shape: Sequence[int], index: int) -> str:
    if not shape:
        return where
    return where + "".join(f"[{at}]" for at in np.unravel_index(index, tuple(shape)))


def first_difference(tensors: Mapping[str, Array], signature: SignatureInfo) -> str:
    """The first input whose shape is not as declared, in words; empty where all are."""
    sizes: dict[str, int] = {}
    for name, array in tensors.items():
        info = signature.inputs[name]
        if info.shape is None:
            continue
        if array.ndim != len(info.shape) or any(
            declared >= 0 and declared != size
            for declared, size in zip(info.shape, array.shape, strict=False)
        ):
            return f"shape {list(array.shape)} for {describe(name, info)}"
        if info.shape and info.shape[0] < 0:
            sizes[name] = array.shape[0]
    if len(set(sizes.values())) > 1:
        return "different numbers of rows: " + ", ".join(f"{k} {v}" for k, v in sizes.items())
    return ""


def sends_half(signature: SignatureInfo) -> bool:
    """Whether a tensor is of a dtype that JSON carries only with the server's option."""
    infos = (*signature.inputs.values(), *signature.outputs.values())
    return any(info.dtype in FLOATS and info.dtype not in ("float", "double") for info in infos)
