"""The fast lane: it takes what it should, and nobody can tell it from the ordinary lane.

Each exchange is made twice on the same server, with the lane as it is and with it closed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from fake_pool import Pools, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jupyter_door import AUTH, BASE_URL, TOKEN, Server, running_server, write_request
from jupyter_server.auth import AllowAllAuthorizer, IdentityProvider
from jupyter_server.auth.identity import PasswordIdentityProvider
from prometheus_client import REGISTRY

from jupyter_tfserve.config import ModelConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server.fast_lane import FastLane
from jupyter_tfserve.server.lane_gate import Gate
from jupyter_tfserve.wire import Request, Response

MODEL = "/v1/models/m"
PREDICT = "/v1/models/m:predict"
BODY = b'{"instances": [1.0]}'
HANDLERS = (
    "jupyter_tfserve.server.handlers.RestHandler",
    "jupyter_tfserve.server.upload_handler.UploadHandler",
)


class OtherProvider(PasswordIdentityProvider):
    """A provider that may do anything."""


class OtherAuthorizer(AllowAllAuthorizer):
    """An authorizer that may refuse."""


class Refuser(AllowAllAuthorizer):
    """One that does."""

    def is_authorized(self, *_args: Any) -> bool:
        return False


def lane_of(server: Server) -> FastLane:
    lane = server.app.web_app.settings["jupyter_tfserve"].lane
    assert isinstance(lane, FastLane)
    return lane


@pytest.fixture
async def served(server: Server) -> Server:
    """A server with model ``m``."""
    await server.manager.load(ModelConfig("m", "/models/m"))
    return server


@contextmanager
def closed_lane() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "admits", lambda *_: False)
        yield


async def raw(server: Server, data: bytes) -> bytes:
    """What comes back for these bytes until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


def comparable(answer: bytes) -> tuple[str, list[str], bytes]:
    """Status line, sorted headers and body, without what differs from one answer to the next."""
    # An interim answer's body, here, is the final answer with headers of its own.
    answer = re.sub(rb"(?m)^(Date: )[^\r]*|^(Set-Cookie: [^=]+=)[^\r]*", rb"\1\2", answer)
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.decode("latin-1").split("\r\n")
    return status, sorted(headers), body


@dataclass
class Seen:
    """One exchange, made in both lanes, which gave the same answer."""

    taken: bool
    status: int
    headers: list[str]
    body: bytes


async def both(server: Server, data: bytes) -> Seen:
    """Make the exchange in both lanes and compare all that can be seen of it."""
    lane, pool = lane_of(server), server.manager.managed.mirror
    taken = lane.taken
    fast, fast_count = await counted(server, data)
    took = lane.taken - taken
    with closed_lane():
        ordinary, ordinary_count = await counted(server, data)
    assert lane.taken == taken + took
    assert comparable(fast) == comparable(ordinary)
    assert fast_count == ordinary_count
    assert pool.client is None or pool.client.admission.in_flight == 0
    status, headers, body = comparable(fast)
    return Seen(took == 1, int(status.split()[1]) if status else 0, headers, body)


async def counted(server: Server, data: bytes) -> tuple[bytes, tuple[float, bool]]:
    """The answer, and what the server notes: answers counted, and whether it was activity."""
    activity = server.app.web_app.settings
    activity.pop("api_last_activity", None)
    before = answers_counted()
    answer = await raw(server, data)
    return answer, (answers_counted() - before, "api_last_activity" in activity)


def answers_counted() -> float:
    return sum(
        sample.value
        for metric in REGISTRY.collect()
        if metric.name == "http_request_duration_seconds"
        for sample in metric.samples
        if sample.name.endswith("_count") and sample.labels["handler"] in HANDLERS
    )


def ask(
    server: Server,
    *headers: str,
    method: str = "POST",
    target: str = PREDICT,
    body: bytes = BODY,
    host: str = "",
    version: str = "1.1",
    base_url: str = BASE_URL,
) -> bytes:
    """A request as bytes; a header in it is Latin-1."""
    lines = [
        f"{method} {base_url.rstrip('/')}{target} HTTP/{version}",
        f"Host: {host or f'127.0.0.1:{server.port}'}",
        "Connection: close",
        *([f"Content-Length: {len(body)}"] if body else []),
        *headers,
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


GOOD = f"Authorization: token {TOKEN}"


# Who may ask


@pytest.mark.parametrize(
    ("headers", "target", "taken", "status"),
    [
        ([GOOD], PREDICT, True, 200),
        ([f"Authorization: Bearer {TOKEN}"], PREDICT, True, 200),
        ([f"authorization:   TOKEN    {TOKEN}  "], PREDICT, True, 200),
        ([f"Authorization: bearer\t{TOKEN}"], PREDICT, True, 200),
        ([], PREDICT, False, 403),
        (["Authorization: "], PREDICT, False, 403),
        (["Authorization: token"], PREDICT, False, 403),
        (["Authorization: token "], PREDICT, False, 403),
        (["Authorization: token wrong"], PREDICT, False, 403),
        ([f"Authorization: token {TOKEN}x"], PREDICT, False, 403),
        ([f"Authorization: token {TOKEN[:-1]}"], PREDICT, False, 403),
        ([f"Authorization: token {TOKEN.upper()}"], PREDICT, False, 403),
        ([f"Authorization: token {TOKEN} x"], PREDICT, False, 403),
        ([f"Authorization: token{TOKEN}"], PREDICT, False, 403),
        ([f"Authorization: Basic {TOKEN}"], PREDICT, False, 403),
        ([f"Authorization: x token {TOKEN}"], PREDICT, False, 403),
        (["Authorization: token \xe4\xff"], PREDICT, False, 403),
        ([GOOD, GOOD], PREDICT, False, 403),
        ([GOOD, "Authorization: token wrong"], PREDICT, False, 403),
        ([], f"{PREDICT}?token={TOKEN}", False, 200),
        (["Authorization: token wrong"], f"{PREDICT}?token={TOKEN}", False, 200),
        ([GOOD], f"{PREDICT}?token=wrong", False, 403),
        ([GOOD], f"{PREDICT}?token=", False, 200),
        ([GOOD, "Cookie: a=b"], PREDICT, False, 200),
        ([GOOD, "Cookie: username-127-0-0-1=bad"], PREDICT, False, 200),
        (["Cookie: username-127-0-0-1=bad"], PREDICT, False, 403),
        ([GOOD, "X-XSRFToken: 2|aaaaaaaa|cc|1"], PREDICT, True, 200),
        ([GOOD, "Origin: https://page.example"], PREDICT, False, 200),
        ([GOOD, "Sec-Websocket-Origin: https://page.example"], PREDICT, False, 200),
        ([GOOD, "Sec-Fetch-Site: cross-site"], PREDICT, False, 200),
        ([GOOD, "Referer: https://page.example/"], PREDICT, True, 200),
        ([GOOD, "If-None-Match: *"], PREDICT, True, 200),
        ([GOOD, "Accept-Encoding: gzip"], PREDICT, True, 200),
        ([GOOD, "X-Forwarded-For: 1.2.3.4", "X-Scheme: https"], PREDICT, True, 200),
    ],
)
async def test_every_credential_is_taken_alike(
    served: Server, headers: list[str], target: str, taken: bool, status: int
) -> None:
    for method, of_model in (("POST", target), ("GET", target.replace(PREDICT, MODEL))):
        seen = await both(served, ask(served, *headers, method=method, target=of_model))
        assert (seen.taken, seen.status) == (taken, status)


async def test_a_login_cookie_is_the_ordinary_lanes(served: Server) -> None:
    login = await served.send("GET", f"{MODEL}?token={TOKEN}", None, {})
    user = login.headers["set-cookie"].split(";")[0]
    cookie = f"Cookie: {user}; _xsrf=2|aaaaaaaa|bbbb|1"
    for extra, status in (
        ([], 403),
        (["X-XSRFToken: 2|aaaaaaaa|bbbb|1"], 200),
        (["X-XSRFToken: 2|aaaaaaaa|cccc|1"], 403),
        ([GOOD], 200),
        (["Authorization: token wrong"], 403),
    ):
        seen = await both(served, ask(served, cookie, *extra))
        assert (seen.taken, seen.status) == (False, status)


@pytest.mark.parametrize(("method", "target"), [("POST", PREDICT), ("GET", MODEL)])
async def test_a_page_without_a_token_is_refused_alike(
    served: Server, method: str, target: str
) -> None:
    data = ask(served, "Origin: https://page.example", method=method, target=target)
    seen = await both(served, data)
    assert (seen.taken, seen.status) == (False, 404)


async def test_the_lanes_count_answers_under_one_name(served: Server) -> None:
    labels = {"method": "POST", "handler": HANDLERS[0], "status_code": "200"}
    name = "http_request_duration_seconds_count"
    before = REGISTRY.get_sample_value(name, labels) or 0
    assert (await both(served, ask(served, GOOD))).taken
    assert REGISTRY.get_sample_value(name, labels) == before + 2


async def test_showing_the_token_logs_nobody_in(served: Server) -> None:
    seen = await both(served, ask(served, GOOD))
    assert not any(line.lower().startswith("set-cookie") for line in seen.headers)


@pytest.mark.parametrize(
    ("jupyter_config", "token", "taken", "status"),
    [
        ({"IdentityProvider": {"token": ""}}, "", False, 200),
        ({"IdentityProvider": {"token": ""}}, "Authorization: token x", False, 200),
        ({"IdentityProvider": {"token": "t\xf6ken"}}, "Authorization: token t\xf6ken", True, 200),
        (
            {"IdentityProvider": {"token": "t\xf6ken"}},
            "Authorization: token t\xc3\xb6ken",
            False,
            403,
        ),
        ({"IdentityProvider": {"token": "\u65e5\u672c"}}, "Authorization: token ??", False, 403),
        ({"ServerApp": {"identity_provider_class": IdentityProvider}}, GOOD, True, 200),
        ({"ServerApp": {"identity_provider_class": OtherProvider}}, GOOD, False, 200),
        ({"PasswordIdentityProvider": {"hashed_password": "argon2:x"}}, GOOD, True, 200),
        ({"ServerApp": {"authorizer_class": OtherAuthorizer}}, GOOD, False, 200),
        ({"ServerApp": {"authorizer_class": Refuser}}, GOOD, False, 403),
        ({"ServerApp": {"allow_unauthenticated_access": True}}, GOOD, True, 200),
        ({"ServerApp": {"allow_unauthenticated_access": False}}, GOOD, True, 200),
        ({"ServerApp": {"allow_unauthenticated_access": True}}, "X: y", False, 403),
        ({"ServerApp": {"allow_unauthenticated_access": False}}, "X: y", False, 403),
        ({"ServerApp": {"disable_check_xsrf": True}}, GOOD, True, 200),
        ({"ServerApp": {"allow_origin": "*"}}, GOOD, True, 200),
        ({"ServerApp": {"allow_origin": "https://page.example"}}, GOOD, True, 200),
        ({"ServerApp": {"allow_origin_pat": "https://.*"}}, GOOD, True, 200),
        ({"ServerApp": {"allow_credentials": True}}, GOOD, True, 200),
        (
            {
                "ServerApp": {
                    "tornado_settings": {
                        "headers": {
                            "Content-Security-Policy": "frame-ancestors *",
                            "Access-Control-Allow-Origin": "https://page.example",
                            "X-Ours": "1",
                        }
                    }
                }
            },
            GOOD,
            True,
            200,
        ),
        ({"ServerApp": {"tornado_settings": {"compress_response": True}}}, GOOD, False, 200),
        ({"ServerApp": {"trust_xheaders": True}}, GOOD, True, 200),
        ({"ServerApp": {"max_body_size": 3}}, GOOD, True, 200),
        ({"ServerApp": {"record_http_request_metrics": False}}, GOOD, True, 200),
        ({"ServerApp": {"log_level": 10}}, GOOD, False, 200),
        ({"TFServeExtension": {"track_predictions": False}}, GOOD, True, 200),
    ],
)
async def test_every_server_answers_alike(
    served: Server, token: str, taken: bool, status: int
) -> None:
    provider = served.app.identity_provider
    if provider.token == TOKEN and "token" in served.app.config.IdentityProvider:
        provider.token = served.app.config.IdentityProvider.token
    lines = [token] if token else []
    for data in (
        ask(served, *lines, "Accept-Encoding: gzip"),
        ask(served, *lines, method="GET", target=MODEL, body=b""),
    ):
        seen = await both(served, data)
        assert seen.taken is taken
        assert seen.status == status or (provider.token == "" and seen.status == 403)


# Which host, which URL, which method


@pytest.mark.parametrize(
    ("host", "taken", "status"),
    [
        ("localhost", True, 200),
        ("localhost:1", True, 200),
        ("LOCALHOST", False, 403),
        ("127.8.9.10:99", True, 200),
        ("[::1]:80", True, 200),
        ("[::1]", True, 200),
        ("evil.example", False, 403),
        ("192.168.1.1:8888", False, 403),
        ("localhost.evil.example", False, 403),
        ("0.0.0.0", False, 403),
        ("%2Ftmp", False, 200),  # a Unix socket, so says Jupyter
        ("localhost:x", False, 403),
        ("", True, 200),
    ],
)
async def test_every_host_is_judged_alike(
    served: Server, host: str, taken: bool, status: int
) -> None:
    seen = await both(served, ask(served, GOOD, host=host))
    assert (seen.taken, seen.status) == (taken, status)


@pytest.mark.parametrize(
    "jupyter_config",
    [
        {"ServerApp": {"allow_remote_access": True}},
        {"ServerApp": {"local_hostnames": ["models.example"]}},
    ],
)
async def test_a_host_that_is_allowed_may_be_far(served: Server) -> None:
    seen = await both(served, ask(served, GOOD, host="models.example:8888"))
    assert (seen.taken, seen.status) == (True, 200)


TARGETS = [
    MODEL,
    PREDICT,
    f"{MODEL}/metadata",
    f"{MODEL}/versions/1",
    f"{MODEL}/versions/1:predict",
    f"{MODEL}/versions/9",
    f"{MODEL}/versions/{2**63}",
    f"{MODEL}/labels/none",
    f"{MODEL}/labels/none:predict",
    "/V1/Models/m:predict",
    "/v1/models/%6D:predict",
    "/v1/models/m%2F:predict",
    "/v1/models/%FF%00:predict",
    "/v1/models/\xe4:predict",
    "/v1/models/unknown",
    "/v1/models/unknown:predict",
    "/v1/models",
    "/v1/models/",
    "/v1/",
    "/v1",
    "/v1//models/m",
    "//v1/models/m",
    "/v1/models/m#f",
    "/v1/models/m?x=1",
    f"{MODEL}:PREDICT",
    f"{MODEL}:classify",
    f"{MODEL}%zz",
    "/v1/../v1/models/m",
    "/tfserve/api/pools",
]


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "BREW"])
@pytest.mark.parametrize("target", TARGETS)
async def test_every_request_line_is_answered_alike(
    served: Server, method: str, target: str
) -> None:
    seen = await both(served, ask(served, GOOD, method=method, target=target))
    assert not seen.taken or method in ("GET", "POST")
    if (method, target) in (("POST", PREDICT), ("GET", MODEL), ("GET", f"{MODEL}/versions/9")):
        assert seen.taken


async def test_options_are_the_ordinary_lanes(served: Server) -> None:
    data = ask(served, "Access-Control-Request-Headers: authorization", method="OPTIONS", body=b"")
    assert not (await both(served, data)).taken


@pytest.mark.parametrize(
    "jupyter_config",
    [
        {"ServerApp": {"base_url": "/user/x%20y/"}},
        {"ServerApp": {"base_url": "/user/a.b+c/"}},
        {"ServerApp": {"base_url": "/"}},
        {"ServerApp": {"base_url": "/a/"}, "TFServeExtension": {"url_prefix": "tf/serving"}},
    ],
)
async def test_every_base_url_is_known(
    pools: Pools, jupyter_config: dict[str, dict[str, Any]]
) -> None:
    base_url = jupyter_config["ServerApp"]["base_url"]
    prefix = jupyter_config.get("TFServeExtension", {}).get("url_prefix", "")
    async with running_server(jupyter_config) as server:
        await server.manager.load(ModelConfig("m", "/models/m"))
        for target in (f"/{prefix}{PREDICT}" if prefix else PREDICT, f"/x{PREDICT}", PREDICT):
            await both(server, ask(server, GOOD, target=target, base_url=base_url))
        path = f"{base_url.rstrip('/')}{f'/{prefix}' if prefix else ''}"
        seen = await both(server, ask(server, GOOD, base_url=path))
        matches = re.fullmatch(base_url, base_url) is not None  # Jupyter takes it as a pattern
        assert seen.taken is matches
        assert seen.status == (200 if matches else 404)


HEADER_NAMES = ["Authorization", "Cookie", "Origin", "Host", "Expect", "Content-Encoding", "X-A"]
HEADER_VALUES = [
    "",
    f"token {TOKEN}",
    f"Bearer {TOKEN}",
    "token x",
    "localhost",
    "evil.example",
    "gzip",
    "https://page.example",
    "a=b",
]


async def test_any_mix_of_headers_is_answered_alike(served: Server) -> None:
    loop = asyncio.get_running_loop()
    mixes = st.lists(
        st.builds("{}: {}".format, st.sampled_from(HEADER_NAMES), st.sampled_from(HEADER_VALUES)),
        max_size=4,
    )
    lines = st.tuples(
        st.sampled_from(["GET", "POST", "PUT"]), st.sampled_from(TARGETS), st.booleans(), mixes
    )

    @given(lines)
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    def check(line: tuple[str, str, bool, list[str]]) -> None:
        method, target, with_token, headers = line
        token = [GOOD] if with_token else []
        data = ask(served, *token, *headers, method=method, target=target)
        asyncio.run_coroutine_threadsafe(both(served, data), loop).result(20)

    await asyncio.to_thread(check)


# The body and the connection


@pytest.mark.parametrize(
    ("lines", "body", "taken"),
    [
        ([], b"", True),
        ([], BODY, True),
        ([], bytes(200_000), True),
        ([], bytes(1 << 20), True),
        ([], bytes((1 << 20) + 1), False),
        (["Content-Encoding: gzip", "X-TFServe-Options: hints"], BODY, True),
        (["Content-Length: 0"], b"", True),
        (["Content-Length: x"], b"", False),
        (["Content-Length: -1"], b"", False),
        (["Content-Length: 0, 0"], b"", False),
        (["Content-Length: 99999999999999999999999"], b"", False),
        (["Transfer-Encoding: chunked"], b"", False),
        (["Content-Type: application/x-www-form-urlencoded"], b"token=x&a=b", True),
        (["Content-Type: multipart/form-data"], BODY, True),
    ],
)
async def test_every_body_is_received_alike(
    served: Server, pools: Pools, lines: list[str], body: bytes, taken: bool
) -> None:
    data = ask(served, GOOD, *lines, body=body)
    if "Transfer-Encoding: chunked" in lines:
        data += b"2\r\n{}\r\n0\r\n\r\n"
    seen = await both(served, data)
    assert seen.taken is taken
    requests = [(r.method, r.target, bytes(r.body), r.options) for r in pools.pool.requests]
    assert requests[: len(requests) // 2] == requests[len(requests) // 2 :]


@pytest.mark.parametrize("jupyter_config", [{"PoolManager": {"max_body_bytes": 10}}])
async def test_a_body_over_the_limit_is_refused_alike(served: Server) -> None:
    seen = await both(served, ask(served, GOOD))
    assert (seen.taken, seen.status) == (False, 413)


async def test_expect_is_the_ordinary_lanes(served: Server) -> None:
    seen = await both(served, ask(served, GOOD, "Expect: 100-continue"))
    assert (seen.taken, seen.status) == (False, 100)


@pytest.mark.parametrize("connection", ["", "Connection: keep-alive\r\n", "Connection: close\r\n"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_connection_is_kept_or_ended_alike(
    served: Server, version: str, connection: str
) -> None:
    data = ask(served, GOOD, version=version)
    one = data.replace(b"Connection: close\r\n", connection.encode())
    four = one * 3 + data
    fast = await raw(served, four)
    with closed_lane():
        ordinary = await raw(served, four)
    assert re.sub(rb"Date: .*", b"", fast) == re.sub(rb"Date: .*", b"", ordinary)
    keeps = "close" not in connection and (version == "1.1" or "keep-alive" in connection)
    assert fast.count(b" 200 OK") == (4 if keeps else 1)
    assert lane_of(served).taken >= 1


async def test_one_connection_may_change_lanes(served: Server) -> None:
    fast = ask(served, GOOD).replace(b"Connection: close\r\n", b"")
    ordinary = ask(served, GOOD, "Origin: x").replace(b"Connection: close\r\n", b"")
    answer = await raw(served, fast + ordinary + fast + ask(served, GOOD, "Origin: x"))
    assert answer.count(b" 200 OK") == 4
    assert lane_of(served).taken == 2


@pytest.mark.parametrize("size", [(1 << 20) + 256, 5 << 20])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_large_answer_is_passed_on_alike(
    served: Server, pools: Pools, version: str, size: int
) -> None:
    answer = bytes(range(256)) * (size // 256)
    pools.pool.answer = lambda _: Response(200, answer, "text/special")
    lane = lane_of(served)
    fast = await raw(served, ask(served, GOOD, version=version))
    with closed_lane():
        ordinary = await raw(served, ask(served, GOOD, version=version))
    assert lane.taken == 1
    assert comparable(fast)[:2] == comparable(ordinary)[:2]
    whole = comparable(fast)[2]
    assert len(whole) >= len(answer)
    assert whole.endswith(answer) if version == "1.0" else whole.endswith(b"0\r\n\r\n")
    small = await both(served, ask(served, GOOD, target=MODEL, method="GET"))
    assert small.taken
    assert any(line.startswith("Content-Length") for line in small.headers)


async def test_an_answer_broken_off_does_not_look_whole(served: Server, pools: Pools) -> None:
    pools.pool.answer = lambda _: Response(200, bytes(64 << 20))
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1 << 16)
    await write_request(writer, served.port, "POST", PREDICT, b"{}")
    await reader.readuntil(b"\r\n\r\n")
    assert lane_of(served).taken == 1
    await pools.hosts[0].die()
    rest = await reader.read()
    assert not rest.endswith(b"\r\n0\r\n\r\n")
    writer.close()


# When things go wrong


def refused(_request: Request) -> Response:
    raise ServingError(Code.UNIMPLEMENTED, "not in this model")


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: Response(418, b"as it was", "text/special"),
        lambda _: Response(503, b"later"),
        lambda _: Response(429, b"later"),
        lambda _: Response(500, b"broken"),
        lambda _: Response(299, b"odd"),
        lambda _: Response(200, b"", "text/\r\nX-Evil: 1"),
        refused,
    ],
)
async def test_every_answer_of_a_pool_is_relayed_and_logged_alike(
    served: Server,
    pools: Pools,
    answer: Callable[[Request], Response],
    log_lines: list[str],
) -> None:
    pools.pool.answer = answer
    seen = await both(served, ask(served, GOOD, "Referer: http://x/?token=y", "User-Agent: z"))
    assert seen.taken
    lines = [masked(line) for line in log_lines if "Traceback" not in line]
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert bool(lines) == (seen.status >= 300)


@pytest.fixture
def log_lines(server: Server) -> Iterator[list[str]]:
    """What the server logs from warnings on, in Jupyter's words."""
    lines: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info is None:
                lines.append(record.getMessage())

    keeper = Keeper(logging.WARNING)
    server.app.log.addHandler(keeper)
    yield lines
    server.app.log.removeHandler(keeper)


def masked(line: str) -> str:
    return re.sub(r"\([0-9a-f]{32}@([^)]*)\) [0-9.]+ms", r"(USER@\1) TIMEms", line)


async def test_a_refusal_is_logged_with_user_and_address(
    served: Server, pools: Pools, log_lines: list[str]
) -> None:
    pools.pool.answer = refused
    seen = await both(served, ask(served, GOOD))
    assert seen.taken
    assert [masked(line) for line in log_lines if "ms" in line] == [
        f"501 POST {BASE_URL.rstrip('/')}{PREDICT} (USER@127.0.0.1) TIMEms referer=None"
    ] * 2


async def test_a_lost_pool_ends_waiting_requests_at_once(served: Server, pools: Pools) -> None:
    pools.pool.held = asyncio.Event()
    waiting = asyncio.create_task(served.send("POST", PREDICT, b"{}"))
    await until(lambda: pools.pool.requests)
    assert lane_of(served).taken == 1
    await pools.hosts[0].die()
    reply = await waiting
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"
    assert "ended while the request was under way" in reply.json["error"]


async def test_while_the_pool_is_down_both_lanes_say_why(served: Server, pools: Pools) -> None:
    pools.gate = asyncio.Event()
    await pools.hosts[0].die()
    await until(lambda: served.manager.managed.mirror.client is None)
    for method, target in (("POST", PREDICT), ("GET", MODEL)):
        seen = await both(served, ask(served, GOOD, method=method, target=target))
        assert seen.taken
        assert seen.status == (503 if method == "POST" else 200)
    pools.gate.set()


async def test_a_client_that_leaves_cancels_its_request(served: Server, pools: Pools) -> None:
    pools.pool.held = asyncio.Event()
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    await write_request(writer, served.port, "POST", PREDICT, b"{}")
    await until(lambda: pools.pool.requests)
    assert lane_of(served).taken == 1
    writer.close()
    await until(lambda: pools.pool.cancelled)
    client = served.manager.managed.mirror.client
    assert client is not None
    assert client.admission.in_flight == 0


async def test_a_client_that_leaves_amid_its_body_is_forgotten(
    served: Server, pools: Pools
) -> None:
    data = ask(served, GOOD)
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(data[:-5])
    await until(lambda: lane_of(served).taken == 1)
    writer.close()
    await writer.wait_closed()
    assert pools.pool.requests == []
    assert (await both(served, data)).status == 200


@pytest.mark.parametrize("jupyter_config", [{"PoolManager": {"max_in_flight_per_model": 2}}])
async def test_beyond_the_in_flight_limit_both_lanes_refuse(served: Server, pools: Pools) -> None:
    pools.pool.held = asyncio.Event()
    waiting = [asyncio.create_task(served.send("POST", PREDICT, b"{}")) for _ in range(2)]
    await until(lambda: len(pools.pool.requests) >= 2)
    fast = await raw(served, ask(served, GOOD))
    with closed_lane():
        ordinary = await raw(served, ask(served, GOOD))
    assert comparable(fast) == comparable(ordinary)
    assert fast.startswith(b"HTTP/1.1 429")
    assert lane_of(served).taken == 3
    pools.pool.held.set()
    assert [reply.status for reply in await asyncio.gather(*waiting)] == [200, 200]


# The switch


@pytest.mark.parametrize("jupyter_config", [{"TFServeExtension": {"fast_lane": False}}])
async def test_the_lane_can_be_switched_off(served: Server) -> None:
    assert served.app.web_app.settings["jupyter_tfserve"].lane is None
    assert (await served.send("POST", PREDICT, BODY, AUTH)).status == 200


async def chunked() -> AsyncIterator[bytes]:
    yield BODY


async def test_a_streamed_body_is_the_ordinary_lanes(served: Server) -> None:
    assert (await served.send("POST", PREDICT, chunked())).json["size"] == len(BODY)
    assert lane_of(served).taken == 0
