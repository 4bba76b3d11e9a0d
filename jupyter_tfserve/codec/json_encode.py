"""Arrays to the JSON of an answer.

The values are TensorFlow Serving's: integers plain, floats always with a fraction or an exponent,
``NaN``, ``Infinity`` and ``-Infinity`` as bare tokens, strings as their very bytes, and b64 objects
for outputs whose name ends in ``_bytes``. Floats are the shortest text that reads back to the same
value in the array's own precision, where TensorFlow Serving prints up to 9 or 17 digits. Answers of
up to ``_PRETTY`` elements are laid out as TensorFlow Serving does; larger ones are compact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import orjson

from ..errors import invalid_argument
from . import b64
from .deep import DeepTensor, Tensor, flat
from .document_tensors import Format
from .dtypes import dtype_of, name_of
from .json_debug import quote

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from ..servable import TensorInfo

Array: TypeAlias = np.ndarray[Any, Any]

_PRETTY = 64
# NumPy's codes of the numeric dtypes that have JSON: all but half, uint16 and complex.
_WRITTEN = frozenset("fdbhilqBILQ?")
_TINY = np.finfo(np.float32).tiny
_TINY_TEXTS = b"1.1754944e-38", b"1.17549435e-38"
_NINE_DIGITS = re.compile(rb"(?<![0-9.])[0-9]{9}\.0(?![0-9])")
ROWS_OPEN, ROWS_CLOSE = b'{\n    "predictions": [', b"\n    ]\n}"


def encode_predict(
    outputs: Mapping[str, Tensor], infos: Mapping[str, TensorInfo], form: Format
) -> bytes:
    """The body of a predict answer, in the form of its request.

    ``outputs`` are arrays by alias, strings as object arrays of ``bytes``; ``infos`` are the
    outputs of the signature, whose dtype names stand in errors.

    Raises:
        ServingError: INVALID_ARGUMENT for outputs that the row form cannot hold, or of a dtype
            that has no JSON.
    """
    size = check_outputs(outputs, infos, form)
    if form is Format.ROW and not next(iter(outputs.values())).shape[0]:
        return b'{\n    "predictions": []\n}'
    pretty = size <= _PRETTY
    if form is Format.COLUMNAR:
        return _columnar(outputs, pretty=pretty)
    if len(outputs) == 1:
        ((name, array),) = outputs.items()
        text = _text(name, array, 2 if pretty else None, b", " if pretty else b",")
        return b"".join((ROWS_OPEN, memoryview(text)[1:-1], ROWS_CLOSE))
    return b"".join((ROWS_OPEN, row_objects(outputs, pretty=pretty), ROWS_CLOSE))


def check_outputs(
    outputs: Mapping[str, Tensor], infos: Mapping[str, TensorInfo], form: Format
) -> int:
    """The number of elements of outputs that have JSON in a form; see :func:`encode_predict`.

    Raises:
        ServingError: as it does.
    """
    if not outputs:
        raise invalid_argument("Cannot convert empty tensor map to JSON")
    if form is Format.ROW and _batch_size(outputs) == 0:
        return 0
    size = 0
    for name, array in outputs.items():
        size += array.size
        if array.dtype.char not in _WRITTEN:
            _check_dtype(name, array, infos)
    return size


def _check_dtype(name: str, array: Tensor, infos: Mapping[str, TensorInfo]) -> None:
    dtype = array.dtype
    if dtype.kind in "OSU" or not array.size:
        return
    shown = dtype_of(infos[name].dtype).name if name in infos else name_of(dtype)
    raise invalid_argument(f"Failed to write JSON value for tensor type: {shown}")


def _batch_size(outputs: Mapping[str, Tensor]) -> int:
    size: int | None = None
    for name, array in outputs.items():
        if array.ndim == 0:
            raise invalid_argument(f"Tensor name: {name} has no shape information ")
        if size is None:
            size = array.shape[0]
        elif size != array.shape[0]:
            raise invalid_argument(
                f"Tensor name: {name} has inconsistent batch size: {array.shape[0]} "
                f"expecting: {size}"
            )
    return size or 0


def _columnar(outputs: Mapping[str, Tensor], *, pretty: bool) -> bytes:
    if len(outputs) == 1:
        ((name, array),) = outputs.items()
        text = _expanded(name, array, 1) if pretty else compact_text(name, array)
        return b'{\n    "outputs": %b\n}' % text
    members = b",".join(
        b"\n        %b: %b"
        % (key_text(name), _expanded(name, array, 2) if pretty else compact_text(name, array))
        for name, array in outputs.items()
    )
    return b'{\n    "outputs": {%b\n    }\n}' % members


def row_objects(outputs: Mapping[str, Tensor], *, pretty: bool) -> bytes:
    """The objects of the row form, one a row, without the brackets around them."""
    start, between, end = b"{", b",", b"}"
    if pretty:
        start, between, end = b"\n        {\n            ", b",\n            ", b"\n        }"
    columns = []
    for name, array in outputs.items():
        key = key_text(name) + (b": " if pretty else b":")
        texts = _row_texts(name, array, pretty=pretty)
        columns.append([key + text for text in texts])
    return b",".join(
        b"%b%b%b" % (start, between.join(members), end) for members in zip(*columns, strict=True)
    )


def _row_texts(name: str, array: Tensor, *, pretty: bool) -> list[bytes]:
    """The JSON of each row of an array of at least one row."""
    comma = b", " if pretty else b","
    inner = array.shape[1:]
    if not _is_written_whole(array):
        items = _items(name, array, 3 + len(inner) if pretty else None)
        return _nest(items, inner, comma, rows=array.shape[0])
    text = _numbers(array)
    opening, closing = b"[" * len(inner), b"]" * len(inner)
    cut = 1 + len(inner)
    rows = text[cut:-cut].split(closing + b"," + opening)
    if pretty:
        rows = [row.replace(b",", comma) for row in rows]
    return [opening + row + closing for row in rows] if inner else rows


def key_text(name: str) -> bytes:
    """The JSON of an output's name."""
    return quote(name.encode("utf-8", "surrogateescape"))


def compact_text(name: str, array: Tensor) -> bytes:
    """The JSON of an array without any white space."""
    return _text(name, array, None, b",")


def _text(name: str, array: Tensor, depth: int | None, comma: bytes) -> bytes:
    """An array on one line; ``depth`` is that of its elements' parent less the array's rank - 1."""
    if not _is_written_whole(array):
        items = _items(name, array, None if depth is None else depth - 1 + array.ndim)
        return _nest(items, array.shape, comma)[0]
    text = _numbers(array)
    return text if comma == b"," else text.replace(b",", comma)


def _is_written_whole(array: Tensor) -> TypeIs[Array]:
    """Whether :func:`_numbers` takes it; any other is written element by element."""
    return not isinstance(array, DeepTensor) and array.dtype.kind not in "OSU" and array.size > 0


def _expanded(name: str, array: Tensor, depth: int) -> bytes:
    """An array with every element on a line of its own, opened at ``depth``."""
    items = _items(name, array, depth + array.ndim)
    for level in range(array.ndim - 1, -1, -1):
        size = array.shape[level]
        indent = b"\n" + b"    " * (depth + level)
        items = [
            b"[%b    %b%b]"
            % (indent, (b"," + indent + b"    ").join(items[at : at + size]), indent)
            if size
            else b"[]"
            for at in _starts(array.shape[:level], size)
        ]
    return items[0]


def _items(name: str, array: Tensor, depth: int | None) -> list[bytes]:
    """The JSON of each element, in order; b64 objects on several lines where ``depth`` is given."""
    if not array.size:
        return []
    if array.dtype.kind not in "OSU":
        return _numbers(flat(array))[1:-1].split(b",")
    elements = [
        element if isinstance(element, bytes) else str(element).encode()
        for element in flat(array).tolist()
    ]
    if not name.endswith("_bytes"):
        return list(map(quote, elements))
    before, after = b'{"b64":"', b'"}'
    if depth is not None:
        indent = b"\n" + b"    " * depth
        before, after = b"{" + indent + b'    "b64": "', b'"' + indent + b"}"
    return [before + b64.encode(element) + after for element in elements]


def _nest(items: list[bytes], shape: Sequence[int], comma: bytes, rows: int = 1) -> list[bytes]:
    """Bracket elements into ``rows`` arrays of a shape."""
    for level in range(len(shape) - 1, -1, -1):
        size = shape[level]
        items = [
            b"[" + comma.join(items[at : at + size]) + b"]"
            for at in _starts((rows, *shape[:level]), size)
        ]
    return items


def _starts(outer: Sequence[int], size: int) -> list[int]:
    """Where each of the innermost groups of ``size`` elements starts."""
    return [index * size for index in range(math.prod(outer))]


def _numbers(array: Array) -> bytes:
    """Compact JSON of a numeric array of at least one element, or of a scalar."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = array.copy()
    shape = array.shape
    rank = len(shape)
    while rank and shape[rank - 1] == 1:
        rank -= 1
    ones = len(shape) - rank
    # orjson is several times slower on arrays whose innermost dimension is 1: those are written
    # without it, and then every comma closes and opens as many brackets more.
    lean = array if rank and not ones else array.reshape(shape[:rank] or -1)
    text = orjson.dumps(lean, option=orjson.OPT_SERIALIZE_NUMPY)
    if array.dtype.kind == "f":
        text = _as_tensorflow(text, lean)
    if not rank:
        text = text[1:-1]
    if ones:
        opening, closing = b"[" * ones, b"]" * ones
        text = opening + text.replace(b",", closing + b"," + opening) + closing
    return text


def _as_tensorflow(text: bytes, array: Array) -> bytes:
    """Correct what orjson writes otherwise: tokens, and two kinds of float32 numbers.

    Whole numbers of nine digits are exact in TensorFlow Serving (123456792.0), and padded with
    zeros where only as many digits are written as read back (123456790.0). The least normal number
    has a shortest text that is a normal double of its own, above it; its nine digits are not.
    """
    if array.dtype.itemsize == 4:
        if _has_long(text, array):
            text = _NINE_DIGITS.sub(lambda match: b"%d.0" % int(np.float32(float(match[0]))), text)
        if text.find(b"e") >= 0 and (np.abs(array) == _TINY).any():
            text = text.replace(*_TINY_TEXTS)
    # Only nulls have this letter; one letter is far cheaper to look for than anything longer.
    return text if text.find(b"n") < 0 else _splice(text, array)


def _has_long(text: bytes, array: Array) -> bool:
    """Whether there may be a whole number of nine digits."""
    if array.size <= _PRETTY:
        return text.find(b"0.0,") >= 0 or text.find(b"0.0]") >= 0
    peak = np.abs(array).max()
    if not np.isfinite(peak):
        peak = np.abs(array[np.isfinite(array)]).max(initial=0)
    return bool(peak >= 1e8)


def _splice(text: bytes, array: Array) -> bytes:
    """Put the tokens that JSON lacks where orjson wrote ``null``, in the array's order."""
    odd = array[~np.isfinite(array)]
    tokens = np.where(np.isnan(odd), b"NaN", np.where(odd > 0, b"Infinity", b"-Infinity"))
    pieces = text.split(b"null")
    parts = [piece for pair in zip(pieces, tokens.tolist(), strict=False) for piece in pair]
    return b"".join((*parts, pieces[-1]))


def encode_classify(classes: Array | None, scores: Array | None, n: int) -> bytes:
    """The body of a classify answer for ``n`` examples.

    ``classes`` are strings and ``scores`` float32, both of shape (n, number of classes); of either
    one, but not of both, there may be none.
    """
    present = classes if classes is not None else scores
    width = present.shape[1] if present is not None else 0
    labels = [b'""'] * (n * width) if classes is None else _items("", classes, None)
    numbers = [b"0.0"] * (n * width) if scores is None else _items("", scores, None)
    pairs = [b"[%b, %b]" % pair for pair in zip(labels, numbers, strict=True)]
    rows = b", ".join(_nest(pairs, (width,), b", ", rows=n))
    return b'{\n    "results": [%b\n    ]\n}' % rows


def encode_regress(values: Array) -> bytes:
    """The body of a regress answer; ``values`` are float32, one an example."""
    return b'{\n    "results": [%b]\n}' % b", ".join(_items("", values, None))
