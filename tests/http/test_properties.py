"""However input is cut, and whatever it is: the same answers, and never a crash."""

import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_tfserve.http import Limits
from jupyter_tfserve.http.memory import HeadMemory
from jupyter_tfserve.http.parser import Phase, RequestParser

targets = st.sampled_from(["/", "/v1/models/m:predict", "/v1/x?y=1", "http://h/v1/x"])
values = st.text(string.ascii_letters + string.digits + " ,;", max_size=30)
fields = st.lists(
    st.tuples(st.sampled_from(["Host", "X-A", "x-a", "Accept", "Upgrade"]), values), max_size=5
)
payloads = st.binary(max_size=300)


@st.composite
def requests(draw):
    method = draw(st.sampled_from(["GET", "POST", "PUT", "HEAD"]))
    lines = [f"{method} {draw(targets)} HTTP/1.1", *(f"{n}: {v}" for n, v in draw(fields))]
    if draw(st.integers(0, 9)) == 0:
        lines.append(f"Connection: {draw(st.sampled_from(['close', 'upgrade', 'keep-alive']))}")
    framing = draw(st.sampled_from(["none", "length", "chunked"]))
    body = draw(payloads)
    if framing == "length":
        lines.append(f"Content-Length: {len(body)}")
        tail = body
    elif framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
        chunks = [c for c in draw(st.lists(payloads, max_size=4)) if c]
        tail = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"
    else:
        tail = b""
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + tail


@st.composite
def pieces(draw, data):
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=20).map(sorted))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def parse(parts, limits=None, memory=None):
    """What a parser makes of input that arrives in ``parts``."""
    parser = RequestParser(limits or Limits(), memory or HeadMemory())
    seen = []
    for part in parts:
        rest = memoryview(part)
        while rest:
            if parser.body is not None:
                free = parser.body.free()
                count = min(len(free), len(rest))
                free[:count] = rest[:count]
                parser.body_received(count)
            else:
                count = min(len(rest), 1 << 16)
                parser.feed(rest[:count])
            rest = rest[count:]
            while parser.requests:
                request = parser.requests.popleft()
                seen.append(
                    (
                        request.method,
                        request.target,
                        request.headers,
                        bytes(request.body),
                        request.http_version,
                        request.keep_alive,
                    )
                )
    refusal = parser.refusal and (parser.refusal.status, parser.refusal.body)
    return seen, refusal, parser.phase


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_requests_are_the_same_however_they_are_cut(data):
    stream = b"".join(data.draw(st.lists(requests(), min_size=1, max_size=6)))
    parts = data.draw(pieces(stream))
    whole = parse([stream])
    assert parse(parts) == whole
    assert parse([bytes([byte]) for byte in stream]) == whole
    memory = HeadMemory()
    assert parse([stream], memory=memory) == whole
    assert parse(parts, memory=memory) == whole
    assert whole[0]
    assert whole[1] is None


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_damaged_requests_are_the_same_however_they_are_cut(data):
    stream = bytearray(b"".join(data.draw(st.lists(requests(), min_size=1, max_size=4))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        stream[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    limits = Limits(max_body_bytes=200, max_header_bytes=100, max_target_bytes=20)
    parts = data.draw(pieces(bytes(stream)))
    memory = HeadMemory()
    whole = parse([bytes(stream)], limits, memory)
    assert parse(parts, limits) == whole
    assert parse([bytes(stream)], limits, memory) == whole


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_garbage_is_refused_in_peace(parts):
    seen, refusal, phase = parse(parts)
    assert not seen or refusal is None or refusal[0] in (400, 501)
    assert (refusal is not None) <= (phase is Phase.DONE)


garbage = st.one_of(
    st.binary(max_size=500),
    st.builds(bytes.__add__, requests(), st.binary(max_size=100)),
    st.lists(requests(), max_size=4).map(b"".join),
)


@given(st.lists(garbage, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_server_survives_whatever_it_is_sent(lasting_server, parts):
    server = lasting_server
    with server.connect() as client:
        try:
            for part in parts:
                client.send(part)
        except ConnectionError:
            pass  # refused and closed in the middle
    server.until_connections(0)
    with server.connect() as client:
        client.send(b"GET /alive HTTP/1.1\r\n\r\n")
        assert client.read().body == b"GET /alive 0 "
    assert not server.problems
