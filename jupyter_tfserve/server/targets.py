"""The request target as TensorFlow Serving's grammar sees it: raw, below the door's own prefix."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

_TEXT = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*"
_URI = re.compile(rf"{_TEXT}(?:#{_TEXT})?")


def raw_target(uri: str, prefix_length: int) -> str:
    """The target of a request line without the door's prefix and Jupyter's ``token`` argument.

    Nothing is decoded, and any other argument stays as it was sent: in TensorFlow Serving a query
    is part of what is matched.

    Args:
        uri: the request line's target, as Tornado has it (bytes as Latin-1).
        prefix_length: how many characters come before ``/v1``.
    """
    target = uri[prefix_length:]
    if not target.isascii():
        target = target.encode("latin-1").decode("utf-8", "surrogateescape")
    path, mark, query = target.partition("?")
    if not mark:
        return target
    arguments = query.split("&")
    kept = [a for a in arguments if unquote_plus(a.partition("=")[0]) != "token"]
    if len(kept) == len(arguments):
        return target
    return f"{path}?{'&'.join(kept)}" if kept else path


def is_uri(target: str) -> bool:
    """Whether a target is a path, query and fragment by RFC 3986.

    TensorFlow Serving's HTTP library lets no other reach the grammar; Tornado does.
    """
    return _URI.fullmatch(target) is not None
