"""A JSON document as RapidJSON has it: what the general reader makes, and error texts call it."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias, Union


class Missing(Enum):
    """The type of :data:`MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Object:
    """A JSON object: its members in order, repeated names kept."""

    __slots__ = ("members",)

    def __init__(self, members: list[tuple[bytes, Value]]) -> None:
        self.members = members

    def find(self, name: bytes) -> Value | Missing:
        """The value of the first member of that name."""
        for key, value in self.members:
            if key == name:
                return value
        return MISSING


Value: TypeAlias = Union[bool, int, float, bytes, "list[Value]", Object, None]


def type_name(value: Value) -> str:
    """RapidJSON's name of a value's type, as error texts give it."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if value is None:
        return "Null"
    if isinstance(value, list):
        return "Array"
    if isinstance(value, Object):
        return "Object"
    return "String" if isinstance(value, bytes) else "Number"


def b64_text(value: Value) -> bytes | None:
    """The text in a b64 object, one with a single member ``b64`` that is a string; else None."""
    if isinstance(value, Object) and len(value.members) == 1:
        name, text = value.members[0]
        if name == b"b64" and isinstance(text, bytes):
            return text
    return None
