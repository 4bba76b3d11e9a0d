"""The quick readers of predict requests, for the bodies that they can prove to read the same.

Whatever is not proved here, every error included, is left to the general reader
(:mod:`.rapidjson`): a quick reader answers None. The proofs, by what the libraries would hide:

- repeated names (orjson keeps the last): the names in the text are counted;
- a body that RapidJSON refuses but the libraries take: only an exponent that is too big on a zero
  (``0e309``), so three digits of a positive exponent are enough to leave the body alone;
- the shape (:mod:`.fast_numbers`), since ``as_buffer`` flattens any nesting.

All else that the two grammars differ in (tokens such as ``NaN``, text after the object, bytes that
are no UTF-8, lone surrogates) is refused by the libraries and so read by the general reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import orjson

from . import b64
from .deep import MAX_NUMPY_RANK
from .dense import all_taken, pack
from .document_tensors import Format, Tensors
from .dtypes import DType, Json, dtype_of
from .fast_numbers import NumericBody, read_numbers
from .rapidjson import collector_paused

if TYPE_CHECKING:
    from ..servable import TensorInfo

Array: TypeAlias = np.ndarray[Any, Any]
Body: TypeAlias = bytes | bytearray

# Below, building Python objects is quicker than simdjson's fixed cost.
_SMALL = 512
# Letters written as escapes could spell a second "signature_name".
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_NAME = re.compile(rb'"[ \t\n\r]*:')
_BIG_EXPONENT = re.compile(rb"[eE]\+?[0-9]{3}")
_POWER = re.compile(rb"0[eE]\+?[0-9]{3}")
_FEW = 256
_LONG_ZERO = 4096
# NumPy's own bound on the number of dimensions.


class FastBody(Protocol):
    """A body read quickly; it can be converted once."""

    @property
    def signature_name(self) -> str:
        """As :class:`~.json_tensor.PredictBody` has it."""

    def tensors(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format] | None:
        """The tensors, or None where the general reader must decide."""


def read_fast(body: Body) -> FastBody | None:
    """Read a predict request, or None where the general reader must decide."""
    if has_refused_zero(body):
        return None
    if len(body) >= _SMALL and _starts_with_numbers(body):
        return read_numbers(body)
    return read_tree(body)


def convert_fast(
    fast: FastBody, body: Body, inputs: Mapping[str, TensorInfo]
) -> tuple[Tensors, Format] | None:
    """Convert what :func:`read_fast` read, or None where the general reader must decide."""
    converted = fast.tensors(inputs)
    if converted is None and isinstance(fast, NumericBody):
        tree = read_tree(body)
        converted = None if tree is None else tree.tensors(inputs)
    return converted


def read_tree(body: Body) -> TreeBody | None:
    """Read a body into Python objects."""
    try:
        if len(body) < _SMALL:
            document = orjson.loads(body)
        else:
            with collector_paused():
                document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if type(document) is not dict:
        return None
    name = document.get("signature_name", "")
    if type(name) is not str:
        return None
    if body.count(b"signature_name") != ("signature_name" in document):
        return None
    if body.find(b"\\") >= 0 and _ESCAPED_LETTER.search(body):
        return None
    return TreeBody(body, document, name)


def has_refused_zero(body: Body) -> bool:
    """Whether there may be a zero with an exponent that RapidJSON refuses."""
    if len(body) >= _SMALL and _is_plain(body, b"e") and _is_plain(body, b"E"):
        return False
    match = _POWER.search(body)
    while match:
        if _is_zero(body, match.start()):
            return True
        match = _POWER.search(body, match.end())
    return False


def _is_plain(body: Body, letter: bytes) -> bool:
    """Whether an exponent's letter is rare, and never followed by three digits.

    One letter is far cheaper to look for than anything longer.
    """
    at = body.find(letter)
    for _ in range(_FEW):
        if at < 0:
            return True
        if _BIG_EXPONENT.match(body, at):
            return False
        at = body.find(letter, at + 1)
    return False


def _is_zero(body: Body, at: int) -> bool:
    """Whether the digit 0 at an offset ends a number that is zero so far."""
    before = bytes(body[max(at - _LONG_ZERO, 0) : at]).rstrip(b"0.")
    return not before or before[-1:] in b"[:,- \t\n\r"


def _starts_with_numbers(body: Body) -> bool:
    """A guess at what a large body holds; a wrong one costs time only."""
    head = bytes(body[:1024])
    first = head[head.find(b"[") :].lstrip(b"[ \t\r\n")
    if first[:1] == b"{":
        return re.search(rb':\s*["tf{]', first) is None
    return first[:1] in b"-0123456789NI"


class TreeBody:
    """A body as orjson's tree of dicts, lists and scalars."""

    __slots__ = ("_body", "_document", "signature_name")

    def __init__(self, body: Body, document: dict[str, Any], signature_name: str) -> None:
        self.signature_name = signature_name
        self._body = body
        self._document = document

    def tensors(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format] | None:
        """Convert; None where something is wrong or not proved."""
        document = self._document
        if len(document) == len(inputs) == 1 and (quick := self._numbers(inputs)):
            return quick, Format.ROW
        if ("instances" in document) == ("inputs" in document):
            return None
        if "instances" in document:
            form = Format.ROW
            fields = _row_fields(document["instances"], inputs)
        else:
            form = Format.COLUMNAR
            fields = _column_fields(document["inputs"], inputs)
        if fields is None:
            return None
        values, names = fields
        names += len(document)
        tensors = {}
        for name, value in values.items():
            converted = _tensor(value, dtype_of(inputs[name].dtype))
            if converted is None:
                return None
            tensors[name], b64_objects = converted
            names += b64_objects
        return (tensors, form) if self._has_names(names) else None

    def _numbers(self, inputs: Mapping[str, TensorInfo]) -> Tensors | None:
        """The commonest request, rows of one number each and nothing else, in few steps."""
        rows = self._document.get("instances")
        ((name, info),) = inputs.items()
        dtype = dtype_of(info.dtype)
        if type(rows) is list and rows and all_taken(rows, dtype) and self._has_names(1):
            return {name: pack(rows, (len(rows),), dtype)}
        return None

    def _has_names(self, names: int) -> bool:
        """Whether the text has no more names than were seen: then none was repeated.

        Every name's closing quote is followed by a colon, so neither count is ever too low.
        """
        body = self._body
        if len(body) < _SMALL or names > _FEW:
            return body.count(b":") == names or len(_NAME.findall(body)) == names
        at = -1
        for _ in range(names + 1):
            at = body.find(b":", at + 1)
            if at < 0:
                return True
        return len(_NAME.findall(body)) == names


_Fields: TypeAlias = tuple[Mapping[str, Any], int]
"""The value of each input, and the number of names in the objects that held them."""


def _row_fields(rows: Any, inputs: Mapping[str, TensorInfo]) -> _Fields | None:
    if type(rows) is not list or not rows:
        return None
    if type(rows[0]) is not dict or _is_b64(rows[0]):
        return (dict.fromkeys(inputs, rows), 0) if len(inputs) == 1 else None
    expected = inputs.keys()
    if "b64" in expected or any(type(row) is not dict or row.keys() != expected for row in rows):
        return None
    return {name: [row[name] for row in rows] for name in inputs}, len(rows) * len(inputs)


def _column_fields(columns: Any, inputs: Mapping[str, TensorInfo]) -> _Fields | None:
    if type(columns) is dict and not _is_b64(columns):
        if not inputs.keys() <= columns.keys():
            return None
        return {name: columns[name] for name in inputs}, len(columns)
    return (dict.fromkeys(inputs, columns), 0) if len(inputs) == 1 else None


def _is_b64(value: dict[str, Any]) -> bool:
    return len(value) == 1 and type(value.get("b64")) is str


def _tensor(value: Any, dtype: DType) -> tuple[Array, int] | None:
    """The array of a value, and how many b64 objects are in it."""
    shape, leaves = _flatten(value)
    b64_objects = 0
    if dtype.json is Json.STRING:
        strings = _strings(leaves)
        if strings is None:
            return None
        b64_objects = sum(type(leaf) is dict for leaf in leaves)
        leaves = strings
    elif not all_taken(leaves, dtype):
        return None
    if len(shape) > MAX_NUMPY_RANK:
        return None
    return pack(leaves, shape, dtype), b64_objects


def _flatten(value: Any) -> tuple[list[int], list[Any]]:
    """The shape of a value and its elements; a list is left among these where it is ragged."""
    shape: list[int] = []
    nodes = [value]
    while nodes and type(nodes[0]) is list:
        size = len(nodes[0])
        shape.append(size)
        if len(nodes) == 1:
            nodes = nodes[0]
        elif set(map(type, nodes)) == {list} and set(map(len, nodes)) == {size}:
            nodes = list(chain.from_iterable(nodes))
        else:
            break
    return shape, nodes


def _strings(leaves: list[Any]) -> list[bytes] | None:
    if set(map(type, leaves)) == {str}:
        return [leaf.encode() for leaf in leaves]
    elements = []
    for leaf in leaves:
        if type(leaf) is str:
            elements.append(leaf.encode())
        elif type(leaf) is dict and _is_b64(leaf):
            try:
                elements.append(b64.decode(leaf["b64"]))
            except ValueError:
                return None
        else:
            return None
    return elements
