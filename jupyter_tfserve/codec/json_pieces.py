"""Large answers, written piece by piece.

A piece holds up no other thread for long, and is still in the processor's cache when it is put to
the others. An answer is in memory once, and as one block, which the allocator gives back when it is
freed; of many small ones it would keep the pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from .deep import DeepTensor
from .document_tensors import Format
from .json_encode import (
    ROWS_CLOSE,
    ROWS_OPEN,
    check_outputs,
    compact_text,
    encode_predict,
    key_text,
    row_objects,
)

if TYPE_CHECKING:
    from ..servable import TensorInfo
    from .deep import Tensor

Piece: TypeAlias = bytes | memoryview

LARGE = 1 << 16
"""Answers of more elements come in pieces."""
PIECE = 1 << 15
"""Elements of a piece."""
_SAMPLE = 1024


def encode_large(
    outputs: Mapping[str, Tensor],
    infos: Mapping[str, TensorInfo],
    form: Format,
    *,
    large: int = LARGE,
    piece: int = PIECE,
) -> bytes | bytearray:
    """What :func:`~.json_encode.encode_predict` returns, whatever its size.

    Raises:
        ServingError: as it does.
    """
    size = 0
    for array in outputs.values():
        size += array.size
    if size <= large:
        return encode_predict(outputs, infos, form)
    check_outputs(outputs, infos, form)
    # Grown from nothing it would be moved again and again, and leave holes as large as itself.
    body = bytearray(sum(_guess(name, array) for name, array in outputs.items()))
    end = 0
    for text in _document(outputs, form, piece):
        start, end = end, end + len(text)
        body[start:end] = text
    del body[end:]
    return body


def _guess(name: str, array: Tensor) -> int:
    """About how long the text of a numeric array is, by its first elements; 0 for any other."""
    if array.dtype.kind in "OSU" or not array.size:
        return 0
    sample = array.values[:_SAMPLE] if isinstance(array, DeepTensor) else array.flat[:_SAMPLE]
    brackets: int = 2 * sum(accumulate(array.shape[:-1], mul))
    text = len(compact_text(name, sample)) / sample.size * array.size
    return int(text * 1.02) + brackets


def _document(outputs: Mapping[str, Tensor], form: Format, piece: int) -> Iterator[Piece]:
    if form is Format.ROW:
        yield ROWS_OPEN
        yield from _rows(outputs, piece)
        yield ROWS_CLOSE
    elif len(outputs) == 1:
        yield b'{\n    "outputs": '
        ((name, array),) = outputs.items()
        yield from _array(name, array, piece)
        yield b"\n}"
    else:
        before = b'{\n    "outputs": {'
        for name, array in outputs.items():
            yield b"%b\n        %b: " % (before, key_text(name))
            yield from _array(name, array, piece)
            before = b","
        yield b"\n    }\n}"


def _rows(outputs: Mapping[str, Tensor], piece: int) -> Iterator[Piece]:
    """What is between the brackets of the list of predictions."""
    if len(outputs) == 1:
        ((name, array),) = outputs.items()
        yield from _elements(name, array, piece)
        return
    arrays = {name: array for name, array in outputs.items() if not isinstance(array, DeepTensor)}
    if len(arrays) < len(outputs):
        yield row_objects(outputs, pretty=False)
        return
    rows = next(iter(arrays.values())).shape[0]
    step = max(piece * rows // sum(array.size for array in arrays.values()), 1)
    for at in range(0, rows, step):
        part = {name: array[at : at + step] for name, array in arrays.items()}
        yield b"," if at else b""
        yield row_objects(part, pretty=False)


def _array(name: str, array: Tensor, piece: int) -> Iterator[Piece]:
    """A whole array, brackets and all."""
    if array.ndim and array.size > piece:
        yield b"["
        yield from _elements(name, array, piece)
        yield b"]"
    else:
        yield compact_text(name, array)


def _elements(name: str, array: Tensor, piece: int) -> Iterator[Piece]:
    """What is between the brackets of an array that is no scalar."""
    if isinstance(array, DeepTensor):
        yield memoryview(compact_text(name, array))[1:-1]
        return
    rows = array.shape[0]
    step = max(piece * rows // array.size, 1) if array.size else rows
    for at in range(0, rows, step):
        yield b"," if at else b""
        if step == 1 and array.ndim > 1:
            yield from _array(name, array[at], piece)
        else:
            yield memoryview(compact_text(name, array[at : at + step]))[1:-1]
