"""Recorded cases of the REST API: how one is sent, and when an answer agrees with it.

A case file holds a JSON object a line::

    id, model          names, for people
    method, path       the request line; the path is sent as it stands, below the door's own
    request_body       text, or null for none; ``request_body_b64`` where it is not UTF-8
    request_headers    further header fields
    status             of the answer
    response_body      text; ``response_body_b64`` where it is not UTF-8
    content_type       of the answer
    stable             what may differ between two runs of the original, see :class:`Stable`

Status is always equal. Error bodies, status and metadata are equal byte for byte; answers of
predict, classify and regress are equal as JSON values, with floats equal at the precision in which
they are written: the layout of numbers is nothing that a client depends on, their values are. Of
pages in HTML only the status counts, and of a failed operation's message the first line, since the
rest tells of the original's build.
"""

import base64
import json
import math
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPResponse
from pathlib import Path
from typing import Any


class Stable(StrEnum):
    """What may differ between two runs of the original."""

    BYTES = "bytes"  # nothing
    JSON = "json"  # the order of keys
    DEBUGPROTO = "debugproto"  # the random word that opens a proto's debug form
    SEQUENCE = "sequence"  # the case depends on those before it: once a server start, in order
    NO = "no"  # the answer is one of those in ``also``


@dataclass(frozen=True)
class Case:
    """A request, and the answer that it is to get."""

    id: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None
    status: int
    answer: bytes
    content_type: str
    stable: Stable
    also: tuple[bytes, ...]

    @classmethod
    def read(cls, line: str) -> "Case":
        data = json.loads(line)
        return cls(
            id=data["id"],
            method=data["method"],
            path=data["path"],
            headers=data.get("request_headers") or {},
            body=_bytes(data, "request_body"),
            status=data["status"],
            answer=_bytes(data, "response_body") or b"",
            content_type=data.get("content_type") or "",
            stable=Stable(data["stable"]),
            also=tuple(text.encode() for text in data.get("also", ())),
        )


def _bytes(data: Mapping[str, Any], key: str) -> bytes | None:
    if f"{key}_b64" in data:
        return base64.b64decode(data[f"{key}_b64"])
    text = data.get(key)
    return None if text is None else text.encode()


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file, in its order."""
    with path.open(encoding="utf-8") as lines:
        yield from map(Case.read, lines)


@dataclass(frozen=True)
class Door:
    """An address that answers the REST API: ``prefix`` is what comes before ``/v1``."""

    host: str
    port: int
    prefix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send(door: Door, case: Case, timeout: float = 30.0) -> Answer:
    """Send a case on a connection of its own, every byte of the request line as it stands.

    An HTTP client would mend or refuse some of the paths.
    """
    fields = {"Host": f"{door.host}:{door.port}", "Connection": "close"}
    fields |= door.headers
    fields |= case.headers
    if case.body is not None:
        fields["Content-Length"] = str(len(case.body))
    lines = [f"{case.method} {door.prefix}{case.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    head = "\r\n".join(lines) + "\r\n\r\n"
    with socket.create_connection((door.host, door.port), timeout=timeout) as connection:
        connection.sendall(head.encode("utf-8", "surrogateescape") + (case.body or b""))
        response = HTTPResponse(connection, method=case.method)
        response.begin()
        return Answer(response.status, dict(response.headers), response.read())


def difference(case: Case, answer: Answer) -> str | None:
    """Why an answer does not agree with its case; None where it does."""
    if answer.status != case.status:
        return f"status {answer.status}, not {case.status}: {answer.body[:500]!r}"
    if case.method == "HEAD" or case.content_type.startswith("text/"):
        return None
    if _agrees(case, answer.body):
        return None
    return f"answer {answer.body[:2000]!r}, not {case.answer[:2000]!r}"


def _agrees(case: Case, body: bytes) -> bool:
    if body == case.answer:
        return True
    if case.stable is Stable.DEBUGPROTO:
        return _without_debug_mark(body) == _without_debug_mark(case.answer)
    if case.stable is Stable.NO:
        return not case.also or _first_line(body) in map(_first_line, case.also)
    if case.stable is Stable.JSON or (case.method == "POST" and case.status == 200):
        return _same_json(case.answer, body)
    if b"[[{{" in case.answer:
        return _first_line(body) == _first_line(case.answer)
    return False


def _without_debug_mark(body: bytes) -> bytes:
    return re.sub(rb"goo\.gle/debug\w+ +", b"", body)


def _first_line(body: bytes) -> bytes:
    # The line break is an escape within a JSON string.
    return re.split(rb"\\n|\n\t", body, maxsplit=1)[0].rstrip(b'"}\n ')


# As many as the original writes of a float32; it takes 17 for a float64.
FLOAT32_DIGITS = 9


class Number(str):
    """A number of a JSON document, as the text that it is written in."""

    __slots__ = ()

    @property
    def is_float(self) -> bool:
        return re.fullmatch(r"-?[0-9]+", self) is None

    @property
    def digits(self) -> int:
        """How many significant digits are written."""
        return len(re.sub(r"[eE].*|[^0-9]", "", self).lstrip("0"))


def _same_json(want: bytes, got: bytes) -> bool:
    try:
        return _same(_loads(want), _loads(got))
    except ValueError:
        return False


def _loads(body: bytes) -> Any:
    text = body.decode("utf-8", "surrogateescape")
    return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)


def _same(want: Any, got: Any) -> bool:
    match want, got:
        case Number(), Number():
            return same_number(want, got)
        case dict(), dict():
            return want.keys() == got.keys() and all(_same(want[key], got[key]) for key in want)
        case list(), list():
            return len(want) == len(got) and all(map(_same, want, got))
    return type(want) is type(got) and bool(want == got)


def same_number(want: Number, got: Number) -> bool:
    """Whether two texts are the same number: an integer, a float32 or a float64.

    Up to nine digits are a float32's, and equal where they read back to the same one. The
    original's parser of float64 may be off by a unit in the last place, and it flushes numbers
    below the normal range to zero.
    """
    if want == got:
        return True
    if not (want.is_float and got.is_float):
        return False
    a, b = float(want), float(got)
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    if want.digits <= FLOAT32_DIGITS and _float32(a) == _float32(b):
        return True
    if a == 0:
        return abs(b) < 2.0**-126
    return math.isclose(a, b, rel_tol=2e-15)


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return value
