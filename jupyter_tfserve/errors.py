"""The one error of the project, its codes, and their HTTP statuses.

Everything below the doors raises :class:`ServingError`; the doors turn it into a status and a
body by the one table here. Codes and HTTP statuses are TensorFlow Serving's
(``model_servers/http_server.cc: ToHTTPStatusCode``).
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Canonical status codes of gRPC and absl, by their numbers on the wire."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


HTTP_STATUS: dict[Code, int] = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}


class ServingError(Exception):
    """A refusal or failure with a canonical code and the text that the caller is to read.

    Texts of bytes that are no UTF-8 carry them as surrogate escapes, so that an error can quote a
    payload exactly.

    ``hint`` is what the caller can do about it, for interfaces that have a place for it.
    """

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def http_status(self) -> int:
        """The HTTP status that stands for the code."""
        return HTTP_STATUS[self.code]

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


def invalid_argument(message: str) -> ServingError:
    """The commonest refusal: the caller's input is wrong (400)."""
    return ServingError(Code.INVALID_ARGUMENT, message)


_ESCAPES = {i: f"\\u{i:04X}" for i in range(0x20)} | {
    ord("\b"): "\\b",
    ord("\f"): "\\f",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def json_string(text: str) -> str:
    """Quote text as RapidJSON's writer does: ``/`` and all beyond ASCII stay as they are."""
    return f'"{text.translate(_ESCAPES)}"'


def error_json(message: str) -> bytes:
    """The body of an error as TensorFlow Serving lays it out; empty for an error without text."""
    if not message:
        return b""
    return f'{{\n    "error": {json_string(message)}\n}}'.encode("utf-8", "surrogateescape")
