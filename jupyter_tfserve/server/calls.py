"""A call of the REST API from its request to a pool's answer, whichever lane it came by."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from ..errors import Code, ServingError, invalid_argument
from ..routes import Api, Route, malformed, parse_route
from ..state import status_json
from ..wire import Request, Response
from .targets import is_uri

if TYPE_CHECKING:
    from tornado.httputil import HTTPServerRequest

    from ..servable import ModelSpec
    from .pool_client import Exchange, PoolClient
    from .pool_manager import PoolManager

OPTIONS_HEADER = "X-TFServe-Options"

_MAX_DIGITS = 18


def content_length(header: str) -> int:
    """The length of a body that a header tells, 0 where it is none; Tornado refuses a bad one."""
    # More digits are no length that any limit allows, and int() refuses very long texts.
    return int(header[:_MAX_DIGITS]) if header.isdecimal() else 0


@lru_cache(maxsize=1024)
def route_of(method: str, target: str) -> Route:
    """Understand a request line; ``target`` as :func:`~.targets.raw_target` makes it.

    Raises:
        ServingError: INVALID_ARGUMENT for one that is no call of the API.
    """
    if not is_uri(target):
        raise malformed(method, target)
    return parse_route(method, target)


def new_request(
    manager: PoolManager, request: HTTPServerRequest, target: str, body: bytes = b""
) -> Request:
    """An HTTP request as pools take it."""
    headers = request.headers
    return Request(
        request.method or "",
        target,
        body,
        headers.get("Content-Encoding", ""),
        headers.get(OPTIONS_HEADER, ""),
        max(manager.rest_api_timeout_in_ms, 0),
    )


def client_for(manager: PoolManager, route: Route) -> PoolClient:
    """The way to the model that is asked for, after it was looked for.

    Raises:
        ServingError: UNAVAILABLE where its pool is down; where there is none what TensorFlow
            Serving says to a call for a model that it does not have.
    """
    client = manager.client_for(route.spec)
    if client is None:
        raise _not_served(route.spec)
    return client


def ask(manager: PoolManager, route: Route, request: Request) -> Response | Exchange:
    """Answer from what is known here, or else send a small request to the model's pool.

    Raises:
        ServingError: as :func:`client_for`; RESOURCE_EXHAUSTED at a limit; for a status request
            NOT_FOUND.
    """
    if route.api is Api.STATUS:
        began = time.perf_counter()
        response = Response(200, status_json(manager.status(route.spec)))
        seconds = time.perf_counter() - began
        manager.requests.record(route.spec.name, "", Code.OK, seconds)
        return response
    return client_for(manager, route).request(request, route.spec.name)


def count_refusal(manager: PoolManager, name: str, error: ServingError) -> None:
    """Count a request that no pool has answered; what was cancelled, the pool counts."""
    if error.code is not Code.CANCELLED:
        manager.requests.record(name, "", error.code, 0)


def _not_served(spec: ModelSpec) -> ServingError:
    if spec.label is not None:
        return invalid_argument(f"Unrecognized servable version label: {spec.label}")
    version = f"Latest({spec.name})"
    if spec.version is not None:
        version = f"Specific({spec.name}, {spec.version})"
    return ServingError(Code.NOT_FOUND, f"Servable not found for request: {version}")
