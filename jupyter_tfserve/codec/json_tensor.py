"""The body of a predict request to tensors, exactly as TensorFlow Serving converts it.

The work has two steps, for the servable and its signature are looked up between them: a body that
is no JSON is refused before an unknown model is, and wrong keys after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import invalid_argument
from .document_tensors import Format, Tensors, document_tensors
from .fast_json import Body, FastBody, convert_fast, read_fast
from .json_debug import shown, text_of
from .json_value import MISSING, Object
from .rapidjson import parse
from .segments import LARGE, read_segments

if TYPE_CHECKING:
    from ..servable import TensorInfo

__all__ = ["Format", "PredictBody", "Tensors", "parse_predict"]


class PredictBody:
    """A predict request whose JSON is well formed. ``signature_name`` is empty where absent."""

    __slots__ = ("_body", "_document", "_fast", "signature_name")

    def __init__(
        self,
        signature_name: str,
        body: Body,
        fast: FastBody | None,
        document: Object | None = None,
    ) -> None:
        self.signature_name = signature_name
        self._body = body
        self._fast = fast
        self._document = document

    def tensors(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format]:
        """Convert by the inputs of the signature, of which there is at least one.

        Arrays have exactly the signature's dtype, strings are object arrays of ``bytes``; shapes
        are those of the JSON, and are not compared with the signature's. Large arrays may be
        read-only.

        Raises:
            ServingError: INVALID_ARGUMENT, or UNIMPLEMENTED for a columnar value of a dtype that
                JSON cannot fill.
        """
        fast, self._fast = self._fast, None
        if fast is not None:
            converted = convert_fast(fast, self._body, inputs)
            if converted is not None:
                return converted
        if self._document is None:
            self._document = parse_object(bytes(self._body))
        return document_tensors(self._document, inputs)


def parse_predict(body: bytes | bytearray | memoryview) -> PredictBody:
    """Read a predict request as far as its signature's name.

    The body must not change before its tensors are taken.

    Raises:
        ServingError: INVALID_ARGUMENT where the body is no JSON object, or the name no string.
    """
    if isinstance(body, memoryview):
        body = bytes(body)
    large = read_segments(body) if len(body) >= LARGE else None
    fast = large or read_fast(body)
    if fast is not None:
        return PredictBody(fast.signature_name, body, fast)
    document = parse_object(bytes(body))
    return PredictBody(signature_name(document), body, None, document)


def parse_object(body: bytes) -> Object:
    """Read a body that must be a JSON object.

    Raises:
        ServingError: INVALID_ARGUMENT where it is none.
    """
    document = parse(body)
    if not isinstance(document, Object):
        raise invalid_argument(f"JSON Value: {shown(document)} Is not object")
    return document


def signature_name(document: Object) -> str:
    """The signature that a request asks for; empty where it names none.

    Raises:
        ServingError: INVALID_ARGUMENT where the name is no string.
    """
    name = document.find(b"signature_name")
    if name is MISSING:
        return ""
    if not isinstance(name, bytes):
        raise invalid_argument(
            f"JSON Value: {shown(document)} not formatted correctly. 'signature_name' key must be "
            "a string value."
        )
    return text_of(name)
