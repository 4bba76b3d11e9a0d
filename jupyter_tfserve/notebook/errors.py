"""What calls of a server raise.

TFServeError
├── InvalidArgumentError     400: the data does not fit the signature
├── FailedPreconditionError  400: the server is not in the state for it
├── OutOfRangeError          400
├── UnauthenticatedError     401
├── PermissionDeniedError    403
├── NotFoundError            404: no such model, version or label
├── AlreadyExistsError       409
├── AbortedError             409
├── ResourceExhaustedError   429, 413: over a limit of the server
├── CancelledError           499
├── InternalError            500
├── UnimplementedError       501: the server has no such function
├── UnavailableError         502, 503, or no answer at all
└── DeadlineExceededError    504, or no answer within the time-out

They are named after gRPC's canonical codes, which TensorFlow Serving's HTTP statuses stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Code

if TYPE_CHECKING:
    from ..servable import SignatureInfo
    from .partial import PartialResult

_SHOWN = 600
"""Characters of a server's text that are shown: some repeat whole payloads."""


class TFServeError(Exception):
    """The server refused, could not be reached, or would refuse what was to be sent.

    Attributes:
        text: What the server said, or why nothing was sent.
        hint: One sentence on what to do, or empty.
        status: The HTTP status; 0 where there was no answer, or nothing was sent.
        signature: What the call had to fit, once it is known.
        where: The first place that differs from it, such as ``column 'age', row 3``; or empty.
        partial: What a call in pieces had done by then, and how to go on.
    """

    code: Code = Code.UNKNOWN

    def __init__(
        self,
        message: str,
        hint: str = "",
        status: int = 0,
        *,
        signature: SignatureInfo | None = None,
        where: str = "",
    ) -> None:
        super().__init__(message)
        self.text = message
        self.hint = hint
        self.status = status
        self.signature = signature
        self.where = where
        self.partial: PartialResult | None = None

    def __str__(self) -> str:
        lines = [self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]} …"]
        if self.where and self.where not in self.text:
            lines.append(f"First difference: {self.where}")
        if self.signature is not None:
            from .metadata import describe_inputs

            lines.append(describe_inputs(self.signature))
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """IPython: the words are for the user; where they were raised says nothing to them."""
        return [*str(self).splitlines(), *getattr(self, "__notes__", ())]


class InvalidArgumentError(TFServeError):
    """The data does not fit the signature, or the request is malformed."""

    code = Code.INVALID_ARGUMENT


class FailedPreconditionError(TFServeError):
    """The server is not in the state that the call needs."""

    code = Code.FAILED_PRECONDITION


class OutOfRangeError(TFServeError):
    """A value is beyond what the model takes."""

    code = Code.OUT_OF_RANGE


class UnauthenticatedError(TFServeError):
    """The server does not know who calls."""

    code = Code.UNAUTHENTICATED


class PermissionDeniedError(TFServeError):
    """The server does not let this caller in."""

    code = Code.PERMISSION_DENIED


class NotFoundError(TFServeError):
    """There is no such model, version or label."""

    code = Code.NOT_FOUND


class AlreadyExistsError(TFServeError):
    """The name is taken."""

    code = Code.ALREADY_EXISTS


class AbortedError(TFServeError):
    """Another change came in between."""

    code = Code.ABORTED


class ResourceExhaustedError(TFServeError):
    """A limit of the server is reached: calls in flight, memory, or the size of a body."""

    code = Code.RESOURCE_EXHAUSTED


class CancelledError(TFServeError):
    """The call was cancelled."""

    code = Code.CANCELLED


class InternalError(TFServeError):
    """The server or the model failed."""

    code = Code.INTERNAL


class UnimplementedError(TFServeError):
    """The server has no such function."""

    code = Code.UNIMPLEMENTED


class UnavailableError(TFServeError):
    """The server does not answer, or the model is not ready."""

    code = Code.UNAVAILABLE


class DeadlineExceededError(TFServeError):
    """There was no answer in time."""

    code = Code.DEADLINE_EXCEEDED


_BY_STATUS: dict[int, type[TFServeError]] = {
    400: InvalidArgumentError,
    401: UnauthenticatedError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: AlreadyExistsError,
    413: ResourceExhaustedError,
    429: ResourceExhaustedError,
    499: CancelledError,
    500: InternalError,
    501: UnimplementedError,
    502: UnavailableError,
    503: UnavailableError,
    504: DeadlineExceededError,
}
_BY_NAME = {kind.code.name: kind for kind in TFServeError.__subclasses__()}


def error_class(status: int, code: Any = None) -> type[TFServeError]:
    """The class for an HTTP status, or for the code's name where the server tells it."""
    if isinstance(code, str) and code in _BY_NAME:
        return _BY_NAME[code]
    return _BY_STATUS.get(status, TFServeError)
