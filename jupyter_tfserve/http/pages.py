"""Refusals: the HTML pages of TensorFlow Serving's HTTP library, and errors in JSON.

What never reaches the REST API there (a bad request line, an unknown method, a path that nobody
serves) is answered by libevent with a small page and the end of the connection. Limits, which it
does not have, are answered in the API's own form.
"""

from __future__ import annotations

from http import HTTPStatus

from ..errors import error_json
from .message import Response

_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {499: "Client Closed Request"}


def reason(status: int) -> str:
    """The phrase that goes with a status; for a reader only, clients ignore it."""
    return _PHRASES.get(status, "Unknown")


def page(status: int) -> Response:
    """A page that names the status; it ends the connection."""
    title = f"{status} {reason(status)}"
    html = (
        f"<!DOCTYPE html>\n<html><head><title>{title}</title></head>"
        f"<body><h1>{title}</h1></body></html>\n"
    )
    return Response(status, html.encode(), "text/html", close=True)


def error(
    status: int, message: str, headers: tuple[tuple[str, str], ...] = (), *, close: bool = False
) -> Response:
    """An error in the API's form."""
    return Response(status, error_json(message), headers=headers, close=close)
