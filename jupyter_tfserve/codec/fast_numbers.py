"""The quick reader of large numeric bodies: simdjson, straight into buffers.

``Array.as_buffer`` flattens any nesting, so it is used only with a proof that the array is a
rectangle of the shape found by descending through first elements. The proofs count or compare the
brackets in the text of the whole body, strings included, so that what they overlook makes them
fail. They rest on simdjson having found the body well formed:

- as many brackets as the arrays that were visited: then no other array exists, and an array whose
  elements were not visited has only scalars, which are as many as its length;
- the text from the first bracket to the last is, but for numbers and white space, the one of a
  rectangle: then it is a single value, and the body's only array.

A parser's memory holds the document, and is reused by its next parse: a parser is taken from the
pool by one body, and goes back when nothing refers to its document any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import simdjson

from .dense import all_taken, pack
from .document_tensors import Format, Tensors
from .dtypes import DType, Json, dtype_of
from .sentinels import Counts, restore, substitute

if TYPE_CHECKING:
    from ..servable import TensorInfo

Body: TypeAlias = bytes | bytearray
Array: TypeAlias = np.ndarray[Any, Any]

Wide: TypeAlias = tuple[Literal["d", "i", "u"], np.dtype[Any]]

_DOUBLE: Wide = ("d", np.dtype(np.float64))
_INT64: Wide = ("i", np.dtype(np.int64))
_UINT64: Wide = ("u", np.dtype(np.uint64))
NUMBER_BYTES = b"0123456789+-.eE \t\n\r"
# Rows shorter than this are cheaper to prove by their text than one by one.
_LONG_ROW = 16
# A parser keeps the memory of its largest document, several times the body's: not for ever.
_KEPT_BODY = 16 << 20
_KEPT_PARSERS = 8
_parsers: list[simdjson.Parser] = []


class UnprovedError(Exception):
    """The quick reader cannot vouch for what it would return."""


def read_numbers(body: Body) -> NumericBody | None:
    """Parse a body, or None where simdjson refuses it or its top level is no object."""
    try:
        parser = _parsers.pop()
    except IndexError:
        parser = simdjson.Parser()
    counts: Counts = ()
    document = _parse(parser, body)
    if document is None and (substituted := substitute(body)):
        body, counts = substituted
        document = _parse(parser, body)
    if document is None:
        _give_back(parser, len(body))
        return None
    # Asking simdjson for a name that is not there costs more than all the names that are.
    names = list(document)
    name = document["signature_name"] if "signature_name" in names else ""
    if type(name) is not str:
        return None
    return NumericBody(body, parser, document, names, counts, signature_name=name)


def _parse(parser: simdjson.Parser, body: Body) -> simdjson.Object | None:
    try:
        document = parser.parse(body)
    except (ValueError, RuntimeError):  # the latter for an integer beyond 64 bits
        return None
    return document if isinstance(document, simdjson.Object) else None


def _give_back(parser: simdjson.Parser, size: int) -> None:
    if size <= _KEPT_BODY and len(_parsers) < _KEPT_PARSERS:
        _parsers.append(parser)


class NumericBody:
    """A body parsed by simdjson; it holds the parser until it is converted."""

    __slots__ = (
        "_body",
        "_brackets",
        "_counts",
        "_document",
        "_names",
        "_parser",
        "signature_name",
    )

    def __init__(
        self,
        body: Body,
        parser: simdjson.Parser,
        document: simdjson.Object,
        names: list[str],
        counts: Counts,
        *,
        signature_name: str,
    ) -> None:
        """``names`` are the document's, ``counts`` those of the tokens that were replaced."""
        self.signature_name = signature_name
        self._body = body
        self._parser = parser
        self._document: simdjson.Object | None = document
        self._names = names
        self._brackets = 0
        self._counts = counts

    def tensors(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format] | None:
        """Convert; None where something is wrong or not proved."""
        try:
            return self._convert(inputs)
        except (UnprovedError, TypeError, ValueError, KeyError, IndexError, OverflowError):
            # The library's errors for elements of another type, or out of range.
            return None
        finally:
            self._document = None
            _give_back(self._parser, len(self._body))

    def _convert(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format]:
        document, names = self._document, self._names
        if document is None or ("instances" in names) == ("inputs" in names):
            raise UnprovedError
        dtypes = {name: dtype_of(info.dtype) for name, info in inputs.items()}
        if "instances" not in names:
            return self._from_columns(document["inputs"], dtypes), Format.COLUMNAR
        rows: Any = document["instances"]
        if isinstance(rows[0], simdjson.Object):
            return self._from_rows(rows, dtypes), Format.ROW
        return self._from_array(rows, dtypes), Format.ROW

    def _from_array(self, array: Any, dtypes: Mapping[str, DType]) -> Tensors:
        """The single input, from what must be the only array of the body."""
        ((name, dtype),) = dtypes.items()
        numbers = _numbers(array, dtype)
        if self._counts:
            numbers = restored(numbers, self._counts, dtype)
        shape = _sole_shape(array, numbers.size, self._body)
        return {name: narrow(numbers, dtype).reshape(shape)}

    def _from_columns(self, columns: Any, dtypes: Mapping[str, DType]) -> Tensors:
        if not isinstance(columns, simdjson.Object):
            return self._from_array(columns, dtypes)
        if len(dtypes) == 1:
            return self._from_array(columns[next(iter(dtypes))], dtypes)
        self._refuse_tokens()
        tensors = {}
        for name, dtype in dtypes.items():
            shape = self._visit(columns[name])
            tensors[name] = narrow(_numbers(columns[name], dtype), dtype).reshape(shape)
        self._prove_visited()
        return tensors

    def _from_rows(self, rows: Any, dtypes: Mapping[str, DType]) -> Tensors:
        self._refuse_tokens()
        self._brackets = 1
        values: dict[str, list[Any]] = {name: [] for name in dtypes}
        for row in rows:
            # The length counts repeated names, so all names are there once, and no other.
            if len(row) != len(dtypes):
                raise UnprovedError
            for name, column in values.items():
                column.append(row[name])
        tensors = {name: self._stack(values[name], dtype) for name, dtype in dtypes.items()}
        self._prove_visited()
        return tensors

    def _stack(self, values: list[Any], dtype: DType) -> Array:
        """One input's values of all rows, all scalars or all arrays of one shape."""
        code, wide = buffer_of(dtype)
        if not isinstance(values[0], simdjson.Array):
            if not all_taken(values, dtype):
                raise UnprovedError
            return pack(values, (len(values),), dtype)
        shape = self._visit(values[0])
        if len(shape) == 1 and set(map(type, values)) == {simdjson.Array}:
            self._brackets += len(values) - 1
            if set(map(len, values)) != set(shape):
                raise UnprovedError
        elif any(self._visit(value) != shape for value in values[1:]):
            raise UnprovedError
        joined = b"".join([value.as_buffer(of_type=code) for value in values])
        return narrow(np.frombuffer(joined, wide), dtype).reshape(len(values), *shape)

    def _visit(self, array: Any) -> tuple[int, ...]:
        """The shape of a rectangle of rank 1 or 2, if the brackets in the end are as counted."""
        if not isinstance(array, simdjson.Array):
            raise UnprovedError
        self._brackets += 1
        size = len(array)
        if size and isinstance(array[0], simdjson.Array):
            rows: list[Any] = list(array)
            widths = set(map(len, rows))
            if len(widths) != 1:
                raise UnprovedError
            self._brackets += size
            return size, widths.pop()
        return (size,)

    def _refuse_tokens(self) -> None:
        if self._counts:
            raise UnprovedError

    def _prove_visited(self) -> None:
        if self._body.count(b"[") != self._brackets:
            raise UnprovedError


def _sole_shape(array: Any, size: int, body: Body) -> tuple[int, ...]:
    """The shape of the only array of a body, which has ``size`` scalars at any depth."""
    first = body.find(b"[")
    if body.find(b"[", first + 1) < 0:
        return (size,)
    shape = []
    while isinstance(array, simdjson.Array):
        shape.append(len(array))
        array = array[0]
    if not size or math.prod(shape) != size:
        raise UnprovedError
    # simdjson saturates a length that it has no room for; the product would not fit then.
    text = body[first : body.rfind(b"]") + 1].translate(None, NUMBER_BYTES)
    if text != template(shape):
        raise UnprovedError
    return tuple(shape)


def template(shape: list[int]) -> bytes:
    """The brackets and commas of a rectangle without its elements, as ``[[,],[,]]`` for (2, 2)."""
    text = b""
    for size in reversed(shape):
        text = b"[" + (text + b",") * (size - 1) + text + b"]"
    return text


def _numbers(array: Any, dtype: DType) -> Array:
    """All scalars of an array at any depth, as doubles or 64-bit integers."""
    if not isinstance(array, simdjson.Array):
        raise UnprovedError
    code, wide = buffer_of(dtype)
    return np.frombuffer(array.as_buffer(of_type=code), wide)


def restored(numbers: Array, counts: Counts, dtype: DType) -> Array:
    """The numbers with the tokens back in place.

    Raises:
        UnprovedError: the dtype takes no tokens, or there are other than ``counts`` says.
    """
    array = restore(numbers, counts) if dtype.json is Json.NUMBER else None
    if array is None:
        raise UnprovedError
    return array


def buffer_of(dtype: DType) -> Wide:
    """The code and the dtype of the buffer that an array of the dtype is read into."""
    if dtype.json is Json.NUMBER:
        return _DOUBLE
    if dtype.bounds is None:
        raise UnprovedError
    return _UINT64 if dtype.bounds[0] == 0 else _INT64


def narrow(wide: Array, dtype: DType) -> Array:
    """Bring doubles and 64-bit integers to the dtype, as TensorFlow Serving does."""
    if wide.dtype == dtype.numpy:
        return wide
    if dtype.json is Json.NUMBER:
        with np.errstate(over="ignore"):
            return wide.astype(dtype.numpy)
    low, high = dtype.bounds or (0, 0)
    if wide.size and not (low <= wide.min() and wide.max() <= high):
        raise UnprovedError
    return wide.astype(dtype.numpy)
