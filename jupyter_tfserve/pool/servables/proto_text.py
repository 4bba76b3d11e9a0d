"""Protobuf messages as TensorFlow Serving prints them: JSON, and the debug form of its errors.

The JSON is that of protobuf's own C++ printer with one blank of indentation, original field names,
defaults printed, and fields in the order of their numbers. Python's ``json_format`` keeps neither
the order nor the text of numbers.
"""

from __future__ import annotations

import json
import math
import struct
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.message import Message

_INT64 = {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
_FLOATS = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}


def to_json(message: Message) -> str:
    """The message's text, without a final newline."""
    return _message(message, "\n")


def debug_text(message: Message) -> str:
    """The text of C++ ``DebugString``, led by the marker that says it is not to be parsed."""
    return f"goo.gle/debugstr   \n{text_format.MessageToString(message)}"


def _message(message: Message, line: str) -> str:
    """One message; ``line`` is what begins a line at the message's own indentation."""
    inner = f"{line} "
    fields = sorted(message.DESCRIPTOR.fields, key=lambda field: field.number)
    members = [
        f'"{field.name}": {_field(field, getattr(message, field.name), inner)}'
        for field in fields
        if not field.has_presence or message.HasField(field.name)
    ]
    return _block("{", members, "}", line)


def _field(field: FieldDescriptor, value: Any, line: str) -> str:
    inner = f"{line} "
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = field.message_type.fields_by_name["value"]
        members = [
            f"{json.dumps(str(key), ensure_ascii=False)}: {_value(of_value, value[key], inner)}"
            for key in value
        ]
        return _block("{", members, "}", line)
    if field.is_repeated:
        return _block("[", [_value(field, item, inner) for item in value], "]", line)
    return _value(field, value, line)


def _block(opening: str, members: Iterable[str], closing: str, line: str) -> str:
    inner = f"{line} "
    body = ",".join(f"{inner}{member}" for member in members)
    return f"{opening}{body}{line}{closing}" if body else opening + closing


def _value(field: FieldDescriptor, value: Any, line: str) -> str:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _message(value, line)
    return _scalar(field, value)


def _scalar(field: FieldDescriptor, value: Any) -> str:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return f'"{known.name}"' if known else str(value)
    if field.cpp_type in _INT64:
        return f'"{value}"'
    if field.cpp_type in _FLOATS:
        return _float(value, single=field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return f'"{b64encode(value).decode()}"'
    return json.dumps(value, ensure_ascii=False)


def _float(value: float, *, single: bool) -> str:
    """As ``%g`` prints it where that reads back to the same value, else with all digits."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    short, exact = (
        (f"{value:.6g}", f"{value:.9g}") if single else (f"{value:.15g}", f"{value:.17g}")
    )
    kind = "f" if single else "d"
    same = struct.pack(kind, float(short)) == struct.pack(kind, value)
    return short if same else exact
