"""The quick reader of the largest bodies: one array of numbers, decoded a segment at a time.

A whole document of simdjson's takes several times the body's memory, and keeps the interpreter
lock throughout. Here the final array is filled segment by segment, so that little is needed beside
the body and the array, and other threads get their turn in between.

The body must have a single array, of numbers only. What is around it is read by the general reader
with the array taken out; what is left then decides as it would have with the array in its place.

The array is cut at commas, anywhere. A segment is parsed with as many brackets before and after it
as arrays are open at its ends; so all of them together are well formed. And its *outline*, the
brackets and commas without the numbers, must go on where the rectangle's stood, which is that of
the first row over and over. Empty arrays have the outline of an array of one; they are found by
counting, as all values must be one more than all commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import simdjson

from ..errors import ServingError
from .deep import MAX_NUMPY_RANK
from .document_tensors import Format, Tensors
from .dtypes import DType, dtype_of
from .fast_json import Body, convert_fast, has_refused_zero, read_fast
from .fast_numbers import (
    NUMBER_BYTES,
    UnprovedError,
    buffer_of,
    narrow,
    restored,
    template,
)
from .json_debug import text_of
from .json_value import MISSING, Object
from .rapidjson import parse
from .sentinels import Counts, substitute

if TYPE_CHECKING:
    from ..servable import TensorInfo

Array: TypeAlias = np.ndarray[Any, Any]

LARGE = 1 << 20
"""The least body worth it, in bytes."""
SEGMENT = 1 << 18
"""What a segment has at least, in bytes; its document should stay in the processor's cache."""
_MAX_AROUND = 1 << 14
_OPENING = re.compile(rb"(?:\[[ \t\n\r]*)+")
_COMMA = ord(",")


def read_segments(body: Body, *, segment: int = SEGMENT) -> SegmentedBody | None:
    """Read what is around the only array of a body; None for a body that is not of that kind."""
    start, end = body.find(b"["), body.rfind(b"]") + 1
    if not 0 <= start < end or len(body) - (end - start) > _MAX_AROUND:
        return None
    if body.find(b'"', start, end) >= 0:
        return None
    try:
        # No other list can be in the document: none opens before this one, none closes after it.
        document = parse(bytes(body[:start] + b"[]" + body[end:]))
    except ServingError:
        return None
    if not isinstance(document, Object):
        return None
    name = document.find(b"signature_name")
    if name is MISSING:
        name = b""
    if not isinstance(name, bytes):
        return None
    return SegmentedBody(body, slice(start, end), document, text_of(name), segment)


class SegmentedBody:
    """A body that is one large array and little else."""

    __slots__ = ("_body", "_document", "_place", "_segment", "signature_name")

    def __init__(
        self, body: Body, place: slice, document: Object, signature_name: str, segment: int
    ) -> None:
        """``document`` has an empty list for the array, which is at ``place`` in the body."""
        self.signature_name = signature_name
        self._body = body
        self._place = place
        self._document = document
        self._segment = segment

    def tensors(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format] | None:
        """Convert, in whole if not in segments; None where the general reader must decide."""
        return self.in_segments(inputs) or self._in_whole(inputs)

    def in_segments(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format] | None:
        """Convert segment by segment; None where something is wrong or not proved."""
        form = self._form(inputs)
        if form is None:
            return None
        ((name, info),) = inputs.items()
        try:
            array = _read_array(self._body, self._place, dtype_of(info.dtype), self._segment)
        except (UnprovedError, TypeError, ValueError, RuntimeError, OverflowError):
            # Those of simdjson, for what it cannot parse, or elements of another type.
            return None
        return {name: array}, form

    def _form(self, inputs: Mapping[str, TensorInfo]) -> Format | None:
        """The form of the request, if the array is the value of the only input."""
        rows, columns = self._document.find(b"instances"), self._document.find(b"inputs")
        if len(inputs) != 1 or (rows is MISSING) == (columns is MISSING):
            return None
        if rows is not MISSING:
            return Format.ROW if isinstance(rows, list) else None
        if isinstance(columns, Object):
            columns = columns.find(next(iter(inputs)).encode("utf-8", "surrogateescape"))
        return Format.COLUMNAR if isinstance(columns, list) else None

    def _in_whole(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format] | None:
        fast = read_fast(self._body)
        return None if fast is None else convert_fast(fast, self._body, inputs)


def _read_array(body: Body, place: slice, dtype: DType, size: int) -> Array:
    """The rectangle of numbers at a place in a body, read in segments of ``size`` bytes or more.

    Raises:
        UnprovedError: it may be none; so may TypeError, ValueError and RuntimeError say.
    """
    start, end = place.start, place.stop
    opening = _OPENING.match(body, start, end)
    rank = opening[0].count(b"[") if opening else 0
    if not 0 < rank <= MAX_NUMPY_RANK:
        raise UnprovedError
    inside = range(start + 1, end - 1)
    row = _first_row(body, inside, rank, size)
    shape = _row_shape(row, rank)
    outline = _Outline(row)
    reader = _SegmentReader(dtype)
    array = np.empty(_count_commas(body, inside) + 1, dtype.numpy)
    filled, depth = 0, 1
    for piece in _segments(body, inside, size):
        text, counts = _without_tokens(piece)
        if rank > 1:
            brackets = text.translate(None, NUMBER_BYTES)
            outline.follow(brackets)
            closed = len(brackets) - len(brackets.rstrip(b"]"))
        elif b"[" in text:
            raise UnprovedError
        else:
            closed = 0
        numbers = reader.read(b"%b%b%b" % (b"[" * depth, text, b"]" * (rank - closed)), counts)
        depth = rank - closed
        array[filled : filled + numbers.size] = numbers
        filled += numbers.size
    if filled != array.size or not outline.is_whole:
        raise UnprovedError
    return array.reshape(-1, *shape)


def _segments(body: Body, inside: range, size: int) -> Iterator[bytes]:
    """Cut a part of a body at commas; these are left out."""
    at, end = inside.start, inside.stop
    with memoryview(body) as view:
        while (cut := body.find(b",", at + size, end)) >= 0:
            yield bytes(view[at:cut])
            at = cut + 1
        yield bytes(view[at:end])


def _count_commas(body: Body, inside: range) -> int:
    """The number of commas in a part of a body."""
    text = np.frombuffer(body, np.uint8)[inside.start : inside.stop]
    # Counting by the byte string's own method takes ten times as long where there are many.
    return sum(
        int(np.count_nonzero(text[at : at + SEGMENT] == _COMMA))
        for at in range(0, text.size, SEGMENT)
    )


def _first_row(body: Body, inside: range, rank: int, size: int) -> bytes:
    """The outline of an array's first element, itself an array unless the rank is 1."""
    closing = b"]" * (rank - 1)
    outline = bytearray()
    for piece in _segments(body, inside, size):
        seen = max(len(outline) - rank, 0)
        outline += _without_tokens(piece)[0].translate(None, NUMBER_BYTES)
        if (found := outline.find(closing, seen)) >= 0:
            return bytes(outline[: found + rank - 1])
        outline += b","
    raise UnprovedError


def _row_shape(row: bytes, rank: int) -> list[int]:
    """The shape of a rectangle by its outline.

    Raises:
        UnprovedError: the outline is not that of a rectangle.
    """
    shape: list[int] = []
    count = 1
    for level in range(1, rank):
        wider = row.count(b",", 0, row.find(b"]" * level)) + 1
        shape.insert(0, wider // count)
        count = wider
    if row != template(shape):
        raise UnprovedError
    return shape


def _without_tokens(text: bytes) -> tuple[bytes, Counts]:
    """A segment with numbers for its tokens, if it has any."""
    if b"N" not in text and b"I" not in text:
        return text, ()
    substituted = substitute(b"[%b]" % text)
    if substituted is None:
        raise UnprovedError
    return substituted[0][1:-1], substituted[1]


class _Outline:
    """The outline of equal rows, followed segment by segment."""

    def __init__(self, row: bytes) -> None:
        self._row = row + b","
        self._rows = self._row
        self._at = 0  # where the next segment starts, within a row

    def follow(self, outline: bytes) -> None:
        """Take one segment's outline and the comma after it.

        Raises:
            UnprovedError: it does not go on from the last.
        """
        end = self._at + len(outline)
        while len(self._rows) <= end:
            self._rows += self._rows
        if not self._rows.startswith(outline, self._at) or self._rows[end] != _COMMA:
            raise UnprovedError
        self._at = (end + 1) % len(self._row)

    @property
    def is_whole(self) -> bool:
        """Whether the segments so far end where a row does."""
        return self._at == 0


class _SegmentReader:
    """The values of one segment after the other, in one dtype."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype
        self._code, self._wide = buffer_of(dtype)
        self._parser = simdjson.Parser()

    def read(self, text: bytes, counts: Counts) -> Array:
        """The numbers of the arrays in a text, at any depth; ``counts`` are its tokens.

        Raises:
            UnprovedError: RapidJSON may refuse a number, or the dtype.
        """
        document = self._parser.parse(text)
        if not isinstance(document, simdjson.Array):
            raise UnprovedError
        numbers: Array = np.frombuffer(document.as_buffer(of_type=self._code), self._wide)
        if counts:
            numbers = restored(numbers, counts, self._dtype)
        if not numbers.all() and has_refused_zero(text):
            raise UnprovedError
        return narrow(numbers, self._dtype)
