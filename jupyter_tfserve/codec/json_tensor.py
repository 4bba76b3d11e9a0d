"""The body of a predict request to tensors, exactly as TensorFlow Serving converts it.

The work has two steps, for the servable and its signature are looked up between them: a body that
is no JSON is refused before an unknown model is, and wrong keys after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import invalid_argument
from ..servable import TensorInfo
from .document_tensors import Format, Tensors, document_tensors
from .json_debug import shown, text_of
from .rapidjson import MISSING, Object, parse

__all__ = ["Format", "PredictBody", "Tensors", "parse_predict"]


class PredictBody:
    """A predict request whose JSON is well formed. ``signature_name`` is empty where absent."""

    __slots__ = ("_document", "signature_name")

    def __init__(self, signature_name: str, document: Object) -> None:
        self.signature_name = signature_name
        self._document = document

    def tensors(self, inputs: Mapping[str, TensorInfo]) -> tuple[Tensors, Format]:
        """Convert by the inputs of the signature, of which there is at least one.

        Arrays have exactly the signature's dtype, strings are object arrays of ``bytes``; shapes
        are those of the JSON, and are not compared with the signature's.

        Raises:
            ServingError: INVALID_ARGUMENT, or UNIMPLEMENTED for a columnar value of a dtype that
                JSON cannot fill.
        """
        return document_tensors(self._document, inputs)


def parse_predict(body: bytes | bytearray | memoryview) -> PredictBody:
    """Read a predict request as far as its signature's name.

    Raises:
        ServingError: INVALID_ARGUMENT where the body is no JSON object, or the name no string.
    """
    document = parse_object(bytes(body))
    return PredictBody(signature_name(document), document)


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
