"""The REST door under Jupyter, with a pool that answers what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fake_pool import Pools, until
from jupyter_door import AUTH, NO_AUTH, TOKEN, Server, write_request

from jupyter_tfserve.config import ModelConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.state import ManagerState
from jupyter_tfserve.wire import Request, Response

MODEL = "/v1/models/m"
PREDICT = "/v1/models/m:predict"


@pytest.fixture
async def served(server: Server) -> Server:
    """A server with model ``m``."""
    await server.manager.load(ModelConfig("m", "/models/m"))
    return server


def error(text: str) -> bytes:
    return f'{{\n    "error": "{text}"\n}}'.encode()


async def test_predict_passes_the_request_on_and_relays_the_answer(
    served: Server, pools: Pools
) -> None:
    pools.pool.answer = lambda _: Response(418, b"as it was", "text/special")
    headers = {**AUTH, "Content-Encoding": "gzip", "X-TFServe-Options": "hints"}
    reply = await served.send("POST", PREDICT, b"{}", headers)
    assert (reply.status, reply.body) == (418, b"as it was")
    assert reply.headers["content-type"] == "text/special"
    (seen,) = pools.pool.requests
    assert (seen.method, seen.target, bytes(seen.body)) == ("POST", PREDICT, b"{}")
    assert (seen.content_encoding, seen.options, seen.timeout_ms) == ("gzip", "hints", 30_000)


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "x/y", ""]
)
async def test_the_content_type_of_a_request_does_not_matter(
    served: Server, content_type: str | None
) -> None:
    headers = {**AUTH} if content_type is None else {**AUTH, "Content-Type": content_type}
    reply = await served.send("POST", PREDICT, b'{"instances": [1.0]}', headers)
    assert reply.status == 200
    assert reply.json["size"] == 20


async def test_status_comes_from_the_mirror(served: Server, pools: Pools) -> None:
    reply = await served.send("GET", MODEL)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert "etag" not in reply.headers
    assert reply.json["model_version_status"][0]["state"] == "AVAILABLE"
    assert pools.pool.requests == []


async def test_status_follows_the_pool(served: Server, pools: Pools) -> None:
    pools.pool.set_state("m", 2, ManagerState.LOADING)
    await served.manager.poll()  # a reply after the event
    reply = await served.send("GET", f"{MODEL}/versions/2")
    assert reply.json["model_version_status"][0]["state"] == "LOADING"


async def test_metadata_is_the_pools_to_answer(served: Server) -> None:
    reply = await served.send("GET", f"{MODEL}/metadata")
    assert reply.json["target"] == f"{MODEL}/metadata"


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        ("/v1/models/team%2Fresnet:predict", "/v1/models/team%2Fresnet:predict"),
        ("/V1/Models/m:predict", "/V1/Models/m:predict"),
        ("/v1/models/%FF%00:predict", "/v1/models/%FF%00:predict"),
        (f"{PREDICT}?token={TOKEN}", PREDICT),
        (f"{MODEL}/labels/a%3Fb:predict?token=x&token={TOKEN}", f"{MODEL}/labels/a%3Fb:predict"),
    ],
)
async def test_the_raw_target_reaches_the_pool(
    served: Server, pools: Pools, target: str, seen: str
) -> None:
    reply = await served.send("POST", target, b"{}")
    assert reply.status == 200
    assert pools.pool.requests[-1].target == seen


@pytest.mark.parametrize(
    ("method", "target", "text"),
    [
        ("POST", f"{PREDICT}?x=1", f"Malformed request: POST {PREDICT}?x=1"),
        ("POST", f"{PREDICT}?token={TOKEN}&x=1", f"Malformed request: POST {PREDICT}?x=1"),
        ("GET", PREDICT, f"Malformed request: GET {PREDICT}"),
        ("GET", f"{MODEL}%zz", f"Malformed request: GET {MODEL}%zz"),
        ("PUT", MODEL, f"Malformed request: PUT {MODEL}"),
        ("DELETE", MODEL, f"Malformed request: DELETE {MODEL}"),
        ("PATCH", MODEL, f"Malformed request: PATCH {MODEL}"),
        ("GET", "/v1/models", "Missing model name in request."),
    ],
)
async def test_what_is_no_call_is_refused_as_tensorflow_serving_does(
    server: Server, pools: Pools, method: str, target: str, text: str
) -> None:
    reply = await server.send(method, target)
    assert (reply.status, reply.body) == (400, error(text))
    assert pools.hosts == []


async def test_head_is_malformed_and_has_no_body(server: Server) -> None:
    reply = await server.send("HEAD", MODEL)
    assert reply.status == 400


async def test_a_version_beyond_int64_has_an_empty_error(server: Server) -> None:
    reply = await server.send("GET", f"{MODEL}/versions/99999999999999999999")
    assert (reply.status, reply.body) == (400, b"")
    assert reply.headers["content-length"] == "0"


@pytest.mark.parametrize(
    ("method", "target", "status", "text"),
    [
        ("GET", MODEL, 404, "Could not find any versions of model m"),
        ("GET", f"{MODEL}/metadata", 404, "Servable not found for request: Latest(m)"),
        ("POST", PREDICT, 404, "Servable not found for request: Latest(m)"),
        (
            "POST",
            f"{MODEL}/versions/3:predict",
            404,
            "Servable not found for request: Specific(m, 3)",
        ),
        ("POST", f"{MODEL}/labels/l:predict", 400, "Unrecognized servable version label: l"),
    ],
)
async def test_a_model_that_nobody_has_starts_nothing(
    server: Server, pools: Pools, method: str, target: str, status: int, text: str
) -> None:
    reply = await server.send(method, target)
    assert (reply.status, reply.body) == (status, error(text))
    assert pools.hosts == []


async def test_an_unknown_name_is_the_running_pools_to_refuse(served: Server, pools: Pools) -> None:
    await served.send("POST", "/v1/models/unknown:predict", b"no json")
    assert pools.pool.requests[-1].target == "/v1/models/unknown:predict"


# Who may ask


@pytest.mark.parametrize(
    "headers", [NO_AUTH, {"Authorization": "token wrong"}, {"Authorization": f"Basic {TOKEN}"}]
)
@pytest.mark.parametrize(("method", "target"), [("POST", PREDICT), ("GET", MODEL), ("PUT", MODEL)])
async def test_without_the_token_nothing_is_told(
    served: Server, pools: Pools, method: str, target: str, headers: dict[str, str]
) -> None:
    reply = await served.send(method, target, b"{}", headers)
    assert reply.status == 403
    assert reply.headers["content-type"] == "application/json"
    assert "Authorization: token" in reply.json["error"]
    assert pools.pool.requests == []


@pytest.mark.parametrize("scheme", ["token", "Bearer"])
async def test_the_token_may_come_in_a_header(served: Server, scheme: str) -> None:
    reply = await served.send("POST", PREDICT, b"{}", {"Authorization": f"{scheme} {TOKEN}"})
    assert reply.status == 200


async def test_the_token_may_come_in_the_query(served: Server) -> None:
    assert (await served.send("GET", f"{MODEL}?token={TOKEN}", None, NO_AUTH)).status == 200


async def test_a_cookie_needs_the_xsrf_token_to_predict(served: Server) -> None:
    login = await served.send("GET", f"{MODEL}?token={TOKEN}", None, NO_AUTH)
    user = login.headers["set-cookie"].split(";")[0]
    cookie = {"Cookie": f"{user}; _xsrf=2|aaaaaaaa|bbbb|1"}
    assert (
        await served.send(
            "GET", MODEL, None, {**cookie, "Referer": f"http://127.0.0.1:{served.port}/"}
        )
    ).status == 200
    refused = await served.send("POST", PREDICT, b"{}", cookie)
    assert refused.status == 403
    assert "'_xsrf' argument missing from POST" in refused.json["error"]
    assert "header 'X-XSRFToken'" in refused.json["error"]
    wrong = await served.send("POST", PREDICT, b"{}", {**cookie, "X-XSRFToken": "2|aaaaaaaa|cc|1"})
    assert "header 'X-XSRFToken'" in wrong.json["error"]
    accepted = {**cookie, "X-XSRFToken": "2|aaaaaaaa|bbbb|1"}
    assert (await served.send("POST", PREDICT, b"{}", accepted)).status == 200


async def test_a_page_of_another_origin_learns_which_setting_keeps_it_out(
    served: Server, pools: Pools
) -> None:
    login = await served.send("GET", f"{MODEL}?token={TOKEN}", None, NO_AUTH)
    user = login.headers["set-cookie"].split(";")[0]
    headers = {
        "Cookie": f"{user}; _xsrf=2|aaaaaaaa|bbbb|1",
        "X-XSRFToken": "2|aaaaaaaa|bbbb|1",
        "Origin": "https://page.example",
    }
    reply = await served.send("POST", PREDICT, b"{}", headers)
    assert reply.status == 404  # as Jupyter answers
    assert "ServerApp.allow_origin" in reply.json["error"]
    assert pools.pool.requests == []


async def test_a_foreign_host_name_is_refused(served: Server) -> None:
    reply = await served.send("GET", MODEL, None, {**AUTH, "Host": "evil.example"})
    assert reply.status == 403
    assert "error" in reply.json


async def test_errors_keep_the_cors_headers(served: Server) -> None:
    headers = {**AUTH, "Origin": "https://page.example"}
    reply = await served.send("GET", "/v1/models/unknown", None, headers)
    assert reply.status == 404
    assert reply.headers["access-control-allow-origin"] == "https://page.example"


# Large bodies


async def chunks(number: int, size: int) -> AsyncIterator[bytes]:
    for _ in range(number):
        yield bytes(size)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_is_passed_on_as_it_comes(
    served: Server, pools: Pools, chunked: bool
) -> None:
    body = chunks(80, 1 << 16) if chunked else bytes(5 << 20)
    reply = await served.send("POST", PREDICT, body)
    assert reply.status == 200
    assert reply.json["size"] == 5 << 20
    assert pools.pool.chunks_received > 10
    assert served.manager.managed.mirror.client is not None
    assert served.manager.managed.mirror.client.admission.in_flight == 0


@pytest.mark.parametrize("request_size", [2, 2 << 20])
async def test_a_large_answer_is_passed_on_as_it_comes(
    served: Server, pools: Pools, request_size: int
) -> None:
    answer = bytes(range(256)) * 20_000
    pools.pool.answer = lambda _: Response(200, answer)
    reply = await served.send("POST", PREDICT, bytes(request_size))
    assert reply.status == 200
    assert reply.headers["transfer-encoding"] == "chunked"
    assert reply.headers["content-type"] == "application/json"
    assert reply.body == answer


@pytest.mark.parametrize("jupyter_config", [{"PoolManager": {"max_body_bytes": 3 << 20}}])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413_and_names_the_limit(
    served: Server, pools: Pools, chunked: bool
) -> None:
    body = chunks(64, 1 << 16) if chunked else bytes(4 << 20)
    reply = await served.send("POST", PREDICT, body)
    assert reply.status == 413
    assert "3145728 bytes" in reply.json["error"]
    assert pools.pool.requests == []


async def test_a_length_that_is_no_number_of_bytes_is_the_callers_fault(served: Server) -> None:
    for length in ("9" * 5000, "-1", "1e3"):
        reply = await served.send("POST", PREDICT, headers={**AUTH, "Content-Length": length})
        assert reply.status == 400


async def test_a_large_body_for_nobody_is_refused_in_the_right_form(server: Server) -> None:
    reply = await server.send("POST", PREDICT, bytes(2 << 20))
    assert reply.body == error("Servable not found for request: Latest(m)")
    reply = await server.send("POST", MODEL, chunks(32, 1 << 16))
    assert reply.body == error(f"Malformed request: POST {MODEL}")


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_without_leave_never_reaches_the_pool(
    served: Server, pools: Pools, chunked: bool
) -> None:
    authorizer = served.app.web_app.settings["authorizer"]
    authorizer.is_authorized = lambda _h, _u, action, _r: action == "read"
    body = chunks(32, 1 << 16) if chunked else bytes(2 << 20)
    reply = await served.send("POST", PREDICT, body)
    assert reply.status == 403
    assert "not authorized to execute on resource: tfserve" in reply.json["error"]
    assert pools.pool.requests == []
    assert pools.pool.chunks_received == 0


# When things go wrong


async def test_a_lost_pool_ends_waiting_requests_at_once(served: Server, pools: Pools) -> None:
    pools.pool.held = asyncio.Event()
    small = asyncio.create_task(served.send("POST", PREDICT, b"{}"))
    large = asyncio.create_task(served.send("POST", PREDICT, bytes(2 << 20)))
    await until(lambda: len(pools.pool.requests) >= 2)
    await pools.hosts[0].die()
    for reply in await asyncio.gather(small, large):
        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
        assert reply.body == error("The model pool ended while the request was under way")


async def test_a_client_that_leaves_cancels_its_request(served: Server, pools: Pools) -> None:
    pools.pool.held = asyncio.Event()
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    await write_request(writer, served.port, "POST", PREDICT, b"{}")
    await until(lambda: pools.pool.requests)
    writer.close()
    await until(lambda: pools.pool.cancelled)
    client = served.manager.managed.mirror.client
    assert client is not None
    assert client.admission.in_flight == 0


@pytest.mark.parametrize("jupyter_config", [{"PoolManager": {"max_in_flight_per_model": 2}}])
async def test_beyond_the_in_flight_limit_it_is_429(served: Server, pools: Pools) -> None:
    pools.pool.held = asyncio.Event()
    waiting = [asyncio.create_task(served.send("POST", PREDICT, b"{}")) for _ in range(2)]
    await until(lambda: len(pools.pool.requests) >= 2)
    refused = await served.send("POST", PREDICT, b"{}")
    assert refused.status == 429
    assert refused.headers["retry-after"] == "1"
    assert "Model m has 2 requests in flight" in refused.json["error"]
    pools.pool.held.set()
    assert [reply.status for reply in await asyncio.gather(*waiting)] == [200, 200]


async def test_an_error_that_the_pool_raises_is_relayed(served: Server, pools: Pools) -> None:
    def refuse(_request: Request) -> Response:
        raise ServingError(Code.UNIMPLEMENTED, "not in this model")

    pools.pool.answer = refuse
    reply = await served.send("POST", PREDICT, b"{}")
    assert (reply.status, reply.body) == (501, error("not in this model"))


async def test_an_answer_broken_off_does_not_look_whole(served: Server, pools: Pools) -> None:
    pools.pool.answer = lambda _: Response(200, bytes(64 << 20))
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1 << 16)
    await write_request(writer, served.port, "POST", PREDICT, b"{}")
    await reader.readuntil(b"\r\n\r\n")
    await pools.hosts[0].die()
    rest = await reader.read()
    assert not rest.endswith(b"\r\n0\r\n\r\n")
    writer.close()


# Activity


@pytest.mark.parametrize(
    ("method", "target", "counts"), [("POST", PREDICT, True), ("GET", MODEL, False)]
)
async def test_predictions_count_as_activity_and_status_does_not(
    served: Server, method: str, target: str, counts: bool
) -> None:
    served.app.web_app.settings.pop("api_last_activity", None)
    await served.send(method, target, b"{}")
    assert ("api_last_activity" in served.app.web_app.settings) is counts
