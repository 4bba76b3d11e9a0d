"""A real Jupyter server in the test's own loop, and a client that sends exactly what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jupyter_server.serverapp import ServerApp
from tornado.netutil import bind_sockets
from tornado.routing import PathMatches, Rule, RuleRouter

from jupyter_tfserve.server.base_handler import DoorHandler

if TYPE_CHECKING:
    from jupyter_tfserve.server.pool_manager import PoolManager

TOKEN = "a-token"
BASE_URL = "/a%40b/"
NO_AUTH: Mapping[str, str] = {}
AUTH: Mapping[str, str] = {"Authorization": f"token {TOKEN}"}


@dataclass
class Reply:
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A running server; targets are below its base URL unless they begin with two slashes."""

    def __init__(self, app: ServerApp, port: int) -> None:
        self.app = app
        self.port = port

    @property
    def manager(self) -> PoolManager:
        manager: PoolManager = self.app.web_app.settings["tfserve_pool_manager"]
        return manager

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] = AUTH,
    ) -> Reply:
        """One request on a connection of its own; an iterator is sent chunked."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            await write_request(writer, self.port, method, target, body, headers)
            return await read_reply(reader, method)
        finally:
            writer.close()


async def write_request(
    writer: asyncio.StreamWriter,
    port: int,
    method: str,
    target: str,
    body: bytes | AsyncIterator[bytes] | None = None,
    headers: Mapping[str, str] = AUTH,
) -> None:
    """Send a request as it stands; a ``Host`` among the headers replaces the usual one."""
    path = BASE_URL.rstrip("/") + target
    lines = {"Host": f"127.0.0.1:{port}", "Connection": "close", **headers}
    if isinstance(body, bytes):
        lines["Content-Length"] = str(len(body))
    elif body is not None:
        lines["Transfer-Encoding"] = "chunked"
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1"))
    if isinstance(body, bytes):
        writer.write(body)
    elif body is not None:
        async for chunk in body:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def read_reply(reader: asyncio.StreamReader, method: str = "GET") -> Reply:
    """Read one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    status = int(head[0].split()[1])
    if status == 100:
        return await read_reply(reader, method)
    body = b""
    if method == "HEAD":
        pass
    elif headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Reply(status, headers, body)


def mounted(server: Server) -> Iterator[tuple[str, str]]:
    """Every (method, pattern of a path) that the extension has added, below the base URL."""
    for rule in _rules(server.app.web_app.default_router):
        handler = rule.target
        if isinstance(handler, type) and issubclass(handler, DoorHandler):
            assert isinstance(rule.matcher, PathMatches)
            path = rule.matcher.regex.pattern.removeprefix(BASE_URL.rstrip("/")).rstrip("$")
            path = path.replace(r"\.", ".")
            for method in handler.SUPPORTED_METHODS:
                verb = getattr(handler, method.lower())
                if method != "OPTIONS" and verb is not DoorHandler._unimplemented_method:
                    yield method, path


def _rules(router: RuleRouter) -> Iterator[Rule]:
    for rule in router.rules:
        if isinstance(rule.target, RuleRouter):
            yield from _rules(rule.target)
        else:
            yield rule


@asynccontextmanager
async def running_server(config: Mapping[str, Mapping[str, Any]]) -> AsyncIterator[Server]:
    """A Jupyter server with the extension, on a free port; ended with all that belongs to it."""
    ServerApp.clear_instance()
    app = ServerApp.instance(
        base_url=BASE_URL,
        token=TOKEN,
        port=0,  # it binds one of its own, which no other test's server may want
        open_browser=False,
        allow_root=True,
        log_level="WARN",
    )
    app.init_signal = lambda: None
    for section, traits in config.items():
        app.config[section].update(traits)
    app.config.ServerApp.jpserver_extensions = {"jupyter_tfserve": True}
    app.initialize(argv=[], find_extensions=False)
    (socket,) = bind_sockets(0, "127.0.0.1")
    app.http_server.add_sockets([socket])
    await app.extension_manager.start_all_extensions()
    try:
        yield Server(app, socket.getsockname()[1])
    finally:
        await app._cleanup()
        app.kernel_manager.context.destroy()
        ServerApp.clear_instance()
