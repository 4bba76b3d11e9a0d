"""A request document to the tensors of a signature: row form (``instances``) and columnar form.

The rules and texts are those of ``util/json_tensor.cc: FillTensorMapFromInstancesList`` and
``FillTensorMapFromInputsMap``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ServingError, invalid_argument
from .deep import MAX_NUMPY_RANK, MAX_RANK, DeepTensor, Tensor
from .dense import all_taken, fill, pack
from .dtypes import DType, dtype_of
from .json_debug import shown, text_of
from .json_value import MISSING, Object, Value, b64_text

if TYPE_CHECKING:
    from ..servable import TensorInfo

Tensors: TypeAlias = Mapping[str, Tensor]


class Format(StrEnum):
    """The form of a request, which is the form of its answer."""

    ROW = "row"
    COLUMNAR = "columnar"


def document_tensors(document: Object, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format]:
    """Convert a request by the inputs of its signature, of which there is at least one.

    Raises:
        ServingError: with TensorFlow Serving's text; UNIMPLEMENTED only in columnar form.
    """
    instances, columns = document.find(b"instances"), document.find(b"inputs")
    if instances is not MISSING and columns is not MISSING:
        raise invalid_argument(
            f"JSON Value: {shown(document)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    dtypes = {name: dtype_of(info.dtype) for name, info in inputs.items()}
    if instances is not MISSING:
        if not isinstance(instances, list):
            raise invalid_argument(
                f"JSON Value: {shown(document)} Expecting 'instances' to be an list/array"
            )
        if not instances:
            raise invalid_argument(f"JSON Value: {shown(document)} No values in 'instances' array")
        return _from_rows(instances, dtypes), Format.ROW
    if columns is not MISSING:
        return _from_columns(columns, dtypes), Format.COLUMNAR
    raise invalid_argument("Missing 'inputs' or 'instances' key")


def c_string(name: bytes) -> str:
    """A member's name where TensorFlow Serving takes it as a C string, which ends at a NUL."""
    return text_of(name.partition(b"\0")[0])


class _Column:
    """One input in the making: the elements of all rows, and the shape that each row must have."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype
        self._elements: list[Any] = []
        self._count = 0
        self._shape: tuple[int, ...] | None = None

    def add(self, value: Value) -> None:
        """Append one row's value.

        Raises:
            ServingError: the value is no tensor of the dtype, or differs in shape from the first.
        """
        before = len(self._elements)
        shape = fill(value, self._dtype, self._elements)
        count = len(self._elements) - before
        if self._shape is None:
            self._shape, self._count = shape, count
        elif count != self._count:
            raise invalid_argument(f"Expecting tensor size: {self._count} but got: {count}")
        elif shape != self._shape:
            raise invalid_argument(
                f"Expecting shape {_shape_text(self._shape)} but got: {_shape_text(shape)}"
            )

    def tensor(self, name: str, rows: int) -> Tensor:
        return _pack(name, self._elements, (rows, *(self._shape or ())), self._dtype)


def _from_rows(rows: list[Value], dtypes: Mapping[str, DType]) -> Tensors:
    if not isinstance(rows[0], Object) and len(dtypes) > 1:
        raise invalid_argument(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    if _is_named(rows[0]):
        return _from_named_rows(rows, dtypes)
    # With several inputs only a b64 object gets here. TensorFlow Serving feeds an arbitrary input
    # then, which is refused as too few when the model is called.
    name, dtype = next(iter(dtypes.items()))
    if all_taken(rows, dtype):
        return {name: _pack(name, rows, (len(rows),), dtype)}
    column = _Column(dtype)
    for index, row in enumerate(rows):
        if _is_named(row):
            raise invalid_argument(
                f"Expecting value/list but got object at item {index} of input list"
            )
        try:
            column.add(row)
        except ServingError as error:
            raise invalid_argument(
                f"Failed to process element: {index} of 'instances' list. Error: {error}"
            ) from None
    return {name: column.tensor(name, len(rows))}


def _from_named_rows(rows: list[Value], dtypes: Mapping[str, DType]) -> Tensors:
    columns = {name: _Column(dtype) for name, dtype in dtypes.items()}
    for index, row in enumerate(rows):
        if not isinstance(row, Object) or not _is_named(row):
            raise invalid_argument(f"Expecting object but got list at item {index} of input list")
        names = set()
        for key, value in row.members:
            name = c_string(key)
            names.add(name)
            try:
                if name not in columns:
                    raise invalid_argument(f"JSON object: does not have named input: {name}")
                columns[name].add(value)
            except ServingError as error:
                raise invalid_argument(
                    f"Failed to process element: {index} key: {name} of 'instances' list. "
                    f"Error: {error}"
                ) from None
        if names != columns.keys():
            raise invalid_argument(
                f"Failed to process element: {index} of 'instances' list. JSON object: "
                f"{shown(row)} keys must be equal to: {','.join(sorted(columns))}"
            )
    return {name: column.tensor(name, len(rows)) for name, column in columns.items()}


def _from_columns(columns: Value, dtypes: Mapping[str, DType]) -> Tensors:
    if not isinstance(columns, Object) or not _is_named(columns):
        if len(dtypes) > 1:
            raise invalid_argument(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        name, dtype = next(iter(dtypes.items()))
        return {name: _tensor(name, columns, dtype)}
    tensors = {}
    for name, dtype in dtypes.items():
        value = columns.find(name.encode("utf-8", "surrogateescape"))
        if value is MISSING:
            raise invalid_argument(f"Missing named input: {name} in 'inputs' object.")
        tensors[name] = _tensor(name, value, dtype)
    return tensors


def _tensor(name: str, value: Value, dtype: DType) -> Tensor:
    elements: list[Any] = []
    shape = fill(value, dtype, elements)
    return _pack(name, elements, shape, dtype)


def _pack(name: str, elements: list[Any], shape: tuple[int, ...], dtype: DType) -> Tensor:
    if len(shape) <= MAX_NUMPY_RANK:
        return pack(elements, shape, dtype)
    if len(shape) > MAX_RANK:
        raise invalid_argument(f"tensor parsing error: {name}")
    return DeepTensor(pack(elements, (math.prod(shape),), dtype), shape)


def _is_named(value: Value) -> bool:
    """Whether a value is an object other than a b64 object."""
    return isinstance(value, Object) and b64_text(value) is None


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
