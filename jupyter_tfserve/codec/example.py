"""The body of a classify or regress request to serialised ``tf.Example`` protos.

Each member of an example object is a feature whose kind is that of its first element
(``util/json_tensor.cc: MakeExampleFromJsonObject``). The wire format is written here by hand, for
``tensorflow/core/example/{example,feature}.proto`` need no more of it than this: length-delimited
fields, packed floats and packed varints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from ..errors import ServingError, invalid_argument
from .dense import decode_b64
from .document_tensors import c_string
from .json_debug import shown
from .json_tensor import parse_object, signature_name
from .json_value import MISSING, Object, Value, b64_text, type_name


@dataclass(frozen=True, slots=True)
class ExamplesBody:
    """A classify or regress request: serialised examples, each with the context merged in front."""

    signature_name: str
    examples: list[bytes]


def parse_examples(body: bytes | bytearray | memoryview) -> ExamplesBody:
    """Convert a whole request; its JSON is judged before any servable is looked up.

    Raises:
        ServingError: INVALID_ARGUMENT, with TensorFlow Serving's text.
    """
    document = parse_object(bytes(body))
    signature = signature_name(document)
    context = document.find(b"context")
    # Two messages one after the other read as merged: the example's own features win.
    merged = b"" if context is MISSING else _example(context)
    examples = document.find(b"examples")
    if examples is MISSING:
        raise _bad(
            document, "When method is classify, key 'examples' is expected and was not found"
        )
    if not isinstance(examples, list):
        raise _bad(document, "Expecting 'examples' value to be an list/array")
    if not examples:
        raise _bad(document, "'examples' value is an empty array")
    return ExamplesBody(signature, [merged + _example(example) for example in examples])


def _bad(document: Object, reason: str) -> ServingError:
    return invalid_argument(f"JSON Value: {shown(document)} {reason}")


class _Kind(Enum):
    """What a feature's elements are, by the field of ``Feature`` that holds them."""

    BYTES = 1
    FLOAT = 2
    INT64 = 3


def _example(value: Value) -> bytes:
    if not isinstance(value, Object):
        raise invalid_argument(f"Example must be JSON object but got JSON {type_name(value)}")
    features = {c_string(name): _feature(c_string(name), item) for name, item in value.members}
    entries = b"".join(
        proto_field(
            1, proto_field(1, name.encode("utf-8", "surrogateescape")) + proto_field(2, feature)
        )
        for name, feature in features.items()
    )
    return proto_field(1, entries) if entries else b""


def _feature(name: str, value: Value) -> bytes:
    kind: _Kind | None = None
    elements: list[Any] = []
    for item in value if isinstance(value, list) else [value]:
        item_kind = _kind_of(name, item)
        if kind is None:
            kind = item_kind
        elif item_kind is not kind:
            raise invalid_argument(
                f"Unexpected element type in feature: {name} expecting type: {kind.name.lower()}"
            )
        elements.append(_element(name, item))
    if kind is None:
        return b""
    return proto_field(kind.value, _LISTS[kind](elements))


def _kind_of(name: str, item: Value) -> _Kind:
    if isinstance(item, bytes) or b64_text(item) is not None:
        return _Kind.BYTES
    if isinstance(item, float):
        return _Kind.FLOAT
    if isinstance(item, int):
        return _Kind.INT64
    raise invalid_argument(
        f"Feature: {name} has element with unexpected JSON type: {type_name(item)}"
    )


def _element(name: str, item: Value) -> Any:
    if isinstance(item, Object):
        return decode_b64(item)
    if isinstance(item, int) and item >= 2**63:
        raise invalid_argument(f"Feature: {name} has uint64_t element. Only int64_t is supported.")
    return item


def _bytes_list(elements: list[bytes]) -> bytes:
    return b"".join(proto_field(1, element) for element in elements)


def _float_list(elements: list[float]) -> bytes:
    with np.errstate(over="ignore"):
        return proto_field(1, np.array(elements, np.float64).astype("<f4").tobytes())


def _int64_list(elements: list[int]) -> bytes:
    return proto_field(1, b"".join(varint(int(element) & (2**64 - 1)) for element in elements))


_LISTS: dict[_Kind, Callable[[list[Any]], bytes]] = {
    _Kind.BYTES: _bytes_list,
    _Kind.FLOAT: _float_list,
    _Kind.INT64: _int64_list,
}


def proto_field(number: int, payload: bytes) -> bytes:
    """A length-delimited field (wire type 2) of a number below 16."""
    return bytes((number << 3 | 2,)) + varint(len(payload)) + payload


def varint(value: int) -> bytes:
    """A whole number of zero or more, as protobuf writes it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
