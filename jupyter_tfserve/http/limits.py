"""What one client may ask of the server: sizes and patience."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection, and of the number of connections; sizes in bytes, times in seconds.

    Times are kept to the precision of the server's sweep, one second unless told otherwise.

    Attributes:
        max_body_bytes: Longest request body; beyond it the answer is 413.
        max_header_bytes: All header fields of a request together; beyond it 431.
        max_target_bytes: The request target; beyond it 414.
        max_pipelined: Requests of one connection that may wait or run at a time; beyond it no more
            is read until answers have gone out.
        max_connections: Connections served at a time; those beyond it are told 503.
        header_timeout_s: From the first byte of a request to the end of its header; then 408.
        body_stall_timeout_s: A body must bring ``min_progress_bytes`` in this time; else 408.
        write_stall_timeout_s: A client must take ``min_progress_bytes`` of an answer in this time;
            else the connection is dropped.
        min_progress_bytes: The least that counts as progress.
        idle_timeout_s: A connection without a request is closed after this; TensorFlow Serving's
            HTTP library waits 50 s too.
        linger_timeout_s: Wait for the client to close after the last answer.
        max_linger_bytes: Bytes of an unwanted body that are read and thrown away, so that the
            client gets to read why, before the connection is cut.
    """

    max_body_bytes: int = 1024 * MIB
    max_header_bytes: int = 64 * KIB
    max_target_bytes: int = 8 * KIB
    max_pipelined: int = 16
    max_connections: int = 10_000
    header_timeout_s: float = 20.0
    body_stall_timeout_s: float = 50.0
    write_stall_timeout_s: float = 50.0
    min_progress_bytes: int = KIB
    idle_timeout_s: float = 50.0
    linger_timeout_s: float = 5.0
    max_linger_bytes: int = 16 * MIB
