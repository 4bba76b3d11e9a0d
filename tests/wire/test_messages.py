"""Messages survive the wire, and what is no message is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.wire import Api, Request, Response

texts = st.text(max_size=50)


@given(
    st.builds(
        Request,
        method=texts,
        target=texts,
        body=st.binary(),
        content_encoding=texts,
        options=texts,
        timeout_ms=st.integers(0, 2**32 - 1),
        api=st.sampled_from(Api),
    )
)
def test_requests_read_back(request: Request) -> None:
    assert Request.decode(request.head() + request.body) == request


@given(st.integers(0, 65535), st.binary(), st.sampled_from(["application/json", "", "text/html"]))
def test_responses_read_back(status: int, body: bytes, content_type: str) -> None:
    response = Response(status, body, content_type)
    assert Response.decode(response.head() + body) == response


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_message_or_a_value_error(payload: bytes) -> None:
    for message in (Request, Response):
        with contextlib.suppress(ValueError):
            message.decode(payload)


def test_a_header_too_long_for_the_wire_is_refused_at_the_sender() -> None:
    with pytest.raises(ValueError, match="65,535"):
        Request("GET", "/" + "x" * 70_000).head()
