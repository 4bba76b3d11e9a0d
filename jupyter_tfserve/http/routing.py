"""Request targets: which are valid, and who answers them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from .pages import page

if TYPE_CHECKING:
    from .message import Response

# RFC 3986, with what libevent's parser adds to it: any scheme, and a network path.
_PATH = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]+|%[0-9A-Fa-f]{2})*"
_TAIL = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]+|%[0-9A-Fa-f]{2})*"
_HOST = rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]+|%[0-9A-Fa-f]{2})*)"
_USER = rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=:]+|%[0-9A-Fa-f]{2})*@"
_AUTHORITY_FOLLOWS = rb"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//"
_TARGET = re.compile(
    rb"(?:%b(?:%b)?%b(?::[0-9]*)?(?=[/?#]|\Z)|(?!%b))(%b(?:\?%b)?(?:#%b)?)"
    % (_AUTHORITY_FOLLOWS, _USER, _HOST, _AUTHORITY_FOLLOWS, _PATH, _TAIL, _TAIL)
)


@lru_cache(maxsize=1024)
def parse_target(raw: bytes) -> str | None:
    """Path, query and fragment of a request target as they were sent; None for no valid URI."""
    match = _TARGET.fullmatch(raw)
    return match[1].decode("ascii") if match else None


def is_rest(target: str) -> bool:
    """Whether the REST API answers: ``/v1/`` and anything after it, in any case.

    Source: ``http_rest_api_handler.cc: kPathRegex``.
    """
    return target[:4].lower() == "/v1/"


def is_path(target: str, path: str) -> bool:
    """Whether ``target`` is exactly ``path``, whatever its query and fragment."""
    return re.split(r"[?#]", target, maxsplit=1)[0] == path


def not_found() -> Response:
    """The answer to a target that nobody serves."""
    return page(404)
