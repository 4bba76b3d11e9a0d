"""The request target as TensorFlow Serving's grammar sees it: raw, below the door's own prefix."""

from __future__ import annotations

from urllib.parse import unquote_plus


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
