"""What the handlers of both APIs share: Jupyter's checks, and errors as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http.client import responses
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jupyter_server.auth import decorator
from jupyter_server.base.handlers import APIHandler
from tornado import web

from ..errors import Code, ServingError

if TYPE_CHECKING:
    from .pool_manager import PoolManager

RESOURCE = "tfserve"
"""What an authoriser is asked about; the action is ``read``, ``execute`` or ``write``."""

_RETRY_AFTER_S = 1
_NO_USER = (
    "Forbidden: Jupyter did not accept this request. Send the server's token in a header, "
    "'Authorization: token TOKEN', to a host name that the server allows"
)
_NO_XSRF = (
    "{}: a page that is logged in by a cookie has to send the value of the cookie '_xsrf' in the "
    "header 'X-XSRFToken'"
)
_NO_ORIGIN = "Jupyter does not allow requests from pages of this origin (ServerApp.allow_origin)"


_Verb = TypeVar("_Verb", bound=Callable[..., Awaitable[None]])


def authorized(action: str) -> Callable[[_Verb], _Verb]:
    """Jupyter's decorator of that name for this resource; 403 where the user may not ``action``."""
    return cast("Callable[[_Verb], _Verb]", decorator.authorized(action, resource=RESOURCE))


def reason(status: int) -> str:
    """The words of an HTTP status."""
    return responses.get(status, "Unknown")


class DoorHandler(APIHandler):
    """Raises become answers: a :class:`ServingError` with its own status, all as JSON."""

    _track_activity = False  # what counts as activity is set request by request
    _admitted = False

    def initialize(self, *, manager: PoolManager) -> None:
        """Tornado: what the route table says."""
        self.manager = manager

    async def prepare(self) -> None:  # type: ignore[override]
        """Jupyter's checks: host, user, XSRF, origin."""
        await super().prepare()
        self._admitted = True

    def compute_etag(self) -> None:
        """No entity tags: answers are never the same for long."""

    def log_exception(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """A refusal is an answer, not a fault of the server."""
        if not isinstance(value, ServingError):
            super().log_exception(typ, value, tb)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer what was raised."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        if not isinstance(error, ServingError):
            error = self._as_serving_error(status_code, error)
        else:
            status_code = error.http_status
            self.refused(error)
        self.begin_answer(status_code)
        if self._admitted:
            self.set_cors_headers()  # they went when the answer was begun anew
        self.finish(self.error_body(error))

    def begin_answer(self, status: int) -> None:
        """Set the status, and where it is one that passes, when to come back."""
        self.set_status(status, reason(status))
        if status in (429, 503):
            self.set_header("Retry-After", str(_RETRY_AFTER_S))

    def refused(self, error: ServingError) -> None:
        """The API has refused the request, rather than Jupyter; for handlers that count."""

    def error_body(self, error: ServingError) -> bytes:
        """The body that tells an error; each API has its own form."""
        raise NotImplementedError

    def _as_serving_error(self, status_code: int, error: BaseException | None) -> ServingError:
        text = reason(status_code)
        if isinstance(error, web.HTTPError):
            if status_code == 403 and not getattr(self, "_jupyter_current_user", None):
                text = _NO_USER
            elif status_code == 404 and not self._admitted:
                text = _NO_ORIGIN  # Jupyter's own answer says nothing
            elif error.log_message:
                text = error.log_message % error.args if error.args else error.log_message
            elif error.reason:
                text = error.reason
            if status_code == 403 and "xsrf" in text.lower():
                text = _NO_XSRF.format(text)
        return ServingError(_CODES.get(status_code, Code.INTERNAL), text)


_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    405: Code.UNIMPLEMENTED,
    413: Code.INVALID_ARGUMENT,
}
