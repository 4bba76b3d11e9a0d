"""What a request's header may say: fields, framing and expectations, or the refusal of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .pages import error, page

if TYPE_CHECKING:
    from .limits import Limits
    from .message import Response

# What libevent's server lets through to TensorFlow Serving; all others are 501 there.
METHODS = {
    method.encode(): method
    for method in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
}


class Refused(Exception):  # noqa: N818 - raised in parser callbacks, never seen outside
    """Stops parsing with the answer to give."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Framing(NamedTuple):
    """How the body comes: its length, None for chunks; and whether it waits to be asked for."""

    length: int | None
    wants_continue: bool


def read_fields(fields: list[tuple[bytes, bytes]], limits: Limits) -> dict[str, str]:
    """Header fields by lower-case name.

    Raises:
        Refused: They are larger than the limit.
    """
    if sum(len(name) + len(value) + len(": \r\n") for name, value in fields) > (
        limits.max_header_bytes
    ):
        raise Refused(header_too_large(limits))
    try:
        headers = {_name(name): value.decode().rstrip() for name, value in fields}
    except UnicodeDecodeError:
        return _joined(fields)
    return headers if len(headers) == len(fields) else _joined(fields)


def _joined(fields: list[tuple[bytes, bytes]]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(_name(name), []).append(_text(value).rstrip())
    return {name: ", ".join(parts) for name, parts in values.items()}


@lru_cache(maxsize=256)
def _name(raw: bytes) -> str:
    return raw.lower().decode("latin-1")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def framing(headers: dict[str, str], version: str, limits: Limits) -> Framing:
    """How the body comes; httptools has refused lengths that contradict each other.

    Raises:
        Refused: The body is too large, or its coding or the expectation is not understood.
    """
    length: int | None = None
    if (digits := headers.get("content-length")) is not None:
        length = int(digits.lstrip("0") or "0")  # int() is wary of very long texts
        if length > limits.max_body_bytes:
            raise Refused(body_too_large(limits))
    coding = headers.get("transfer-encoding")
    if coding is not None:
        if version == "1.0":  # older proxies would pass the body on as a second request
            raise Refused(page(400))
        if coding.lower() != "chunked":
            raise Refused(page(501))
    expectation = headers.get("expect")
    if expectation is None or version == "1.0":
        return Framing(length, wants_continue=False)
    if expectation.lower() != "100-continue":
        raise Refused(page(417))
    return Framing(length, wants_continue=coding is not None or bool(length))


def target_too_large(limits: Limits) -> Response:
    """The refusal of a long request target."""
    return _too_large(414, "Request target", limits.max_target_bytes)


def header_too_large(limits: Limits) -> Response:
    """The refusal of a large header."""
    return _too_large(431, "Request header", limits.max_header_bytes)


def body_too_large(limits: Limits) -> Response:
    """The refusal of a large body."""
    return _too_large(413, "Request body", limits.max_body_bytes)


def _too_large(status: int, what: str, limit: int) -> Response:
    return error(status, f"{what} exceeds the limit of {limit} bytes", close=True)
