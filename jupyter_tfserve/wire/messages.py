"""What crosses the wire, and its bytes.

A frame is a header (payload length, kind, flags, exchange id) and a payload. A request or response
fits one frame when it is small; a body of more than ``STREAM_THRESHOLD`` bytes follows its
first frame in CHUNK frames, on a connection of its own, so that it never holds up small ones.

========  =========  =====================================================================
kind      sent by    payload
========  =========  =====================================================================
HELLO     both       JSON: wire version, nonce, and the pool's proof (see ``handshake``)
PROOF     door       JSON: the door's proof
REQUEST   door       :class:`Request`; flag MORE: its body goes on in CHUNK frames
RESPONSE  pool       :class:`Response`; flag MORE as above
CHUNK     both       bytes of the body; flag MORE on all but the last
CANCEL    door       nothing: the answer to this exchange is no longer wanted
CALL      door       JSON: ``{"method", "params"}`` of the management interface
REPLY     pool       JSON: ``{"result"}`` or ``{"error": {"code", "message"}}``
EVENT     pool       JSON: ``{"event", ...}`` once a door has asked for events
========  =========  =====================================================================
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

WIRE_VERSION = 1
STREAM_THRESHOLD = 1 << 20
CHUNK_SIZE = 1 << 18
MAX_FRAME = (1 << 20) + (1 << 17)
"""Largest payload accepted: a body at the threshold and room for what goes before it, in bytes."""

HEADER = struct.Struct("!IBBHI")  # payload length, kind, flags, reserved, exchange id


class Kind(IntEnum):
    """What a frame carries."""

    HELLO = 1
    PROOF = 2
    REQUEST = 3
    RESPONSE = 4
    CHUNK = 5
    CANCEL = 6
    CALL = 7
    REPLY = 8
    EVENT = 9


class Flag(IntEnum):
    """Bits of a frame's flags."""

    NONE = 0
    MORE = 1


class Api(IntEnum):
    """Which surface a request came through; it decides how the pool reads it."""

    REST = 1
    GRPC = 2


_REQUEST = struct.Struct("!BIHHHH")  # api, time-out, lengths of the four texts
_RESPONSE = struct.Struct("!HH")  # status, length of the content type


_Texts = tuple[str, str, str, str]


# Most requests differ from the one before in nothing but their body.
@lru_cache(maxsize=256)
def _request_head(api: Api, timeout_ms: int, texts: _Texts) -> bytes:
    encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
    if max(map(len, encoded)) > 0xFFFF:
        raise ValueError("a request line or header is longer than 65,535 bytes")
    return _REQUEST.pack(api, timeout_ms, *map(len, encoded)) + b"".join(encoded)


@lru_cache(maxsize=256)
def _read_request_head(head: bytes) -> tuple[Api, int, list[str]]:
    api, timeout_ms, *lengths = _REQUEST.unpack_from(head)
    texts, at = [], _REQUEST.size
    for length in lengths:
        texts.append(head[at : at + length].decode("utf-8", "surrogateescape"))
        at += length
    return Api(api), timeout_ms, texts


@dataclass(slots=True)
class Request:
    """A call as the door received it; the door never looks inside the body.

    ``target`` is the raw request target below the door's own prefix (``/v1/models/m:predict``), or
    the full method name for gRPC. ``timeout_ms`` of 0 is none. ``options`` is the text of
    ``X-TFServe-Options``.
    """

    method: str
    target: str
    body: bytes | bytearray | memoryview = b""
    content_encoding: str = ""
    options: str = ""
    timeout_ms: int = 0
    api: Api = Api.REST

    def head(self) -> bytes:
        """All but the body, as the beginning of a REQUEST frame's payload.

        Raises:
            ValueError: where one of the texts is longer than 65,535 bytes.
        """
        texts = (self.method, self.target, self.content_encoding, self.options)
        return _request_head(self.api, self.timeout_ms, texts)

    @classmethod
    def decode(cls, payload: bytes | bytearray) -> Request:
        """Read a REQUEST frame's payload; the body is what was in that frame.

        Raises:
            ValueError: for a payload that is no request.
        """
        try:
            lengths = _REQUEST.unpack_from(payload)[2:]
        except struct.error as error:
            raise ValueError("truncated request") from error
        end = _REQUEST.size + sum(lengths)
        if end > len(payload):
            raise ValueError("truncated request")
        api, timeout_ms, texts = _read_request_head(bytes(payload[:end]))
        method, target, content_encoding, options = texts
        return cls(method, target, payload[end:], content_encoding, options, timeout_ms, api)


@lru_cache(maxsize=64)
def _response_head(status: int, content_type: str) -> bytes:
    encoded = content_type.encode()
    return _RESPONSE.pack(status, len(encoded)) + encoded


@dataclass(slots=True)
class Response:
    """An answer: an HTTP status and body, or for gRPC a status code and message or reply."""

    status: int
    body: bytes | bytearray | memoryview = b""
    content_type: str = "application/json"

    def head(self) -> bytes:
        """All but the body, as the beginning of a RESPONSE frame's payload."""
        return _response_head(self.status, self.content_type)

    @classmethod
    def decode(cls, payload: bytes | bytearray) -> Response:
        """Read a RESPONSE frame's payload; the body is what was in that frame.

        Raises:
            ValueError: for a payload that is no response.
        """
        try:
            status, length = _RESPONSE.unpack_from(payload)
        except struct.error as error:
            raise ValueError("truncated response") from error
        at = _RESPONSE.size + length
        if at > len(payload):
            raise ValueError("truncated response")
        return cls(status, payload[at:], payload[_RESPONSE.size : at].decode())
