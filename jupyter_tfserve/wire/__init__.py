"""The wire between doors and pools: messages as length-prefixed frames over a local socket.

Server and kernel may be two installs, so every connection begins by comparing ``WIRE_VERSION``.
"""

from .connection import Connection, FrameHandler
from .handshake import DoorHandshake, HandshakeError, PoolHandshake
from .messages import (
    CHUNK_SIZE,
    MAX_FRAME,
    STREAM_THRESHOLD,
    WIRE_VERSION,
    Api,
    Flag,
    Kind,
    Request,
    Response,
)

__all__ = [
    "CHUNK_SIZE",
    "MAX_FRAME",
    "STREAM_THRESHOLD",
    "WIRE_VERSION",
    "Api",
    "Connection",
    "DoorHandshake",
    "Flag",
    "FrameHandler",
    "HandshakeError",
    "Kind",
    "PoolHandshake",
    "Request",
    "Response",
]
