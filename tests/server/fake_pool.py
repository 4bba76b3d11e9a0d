"""A pool without models: the real wire on a real socket, with answers that a test chooses.

It runs in the test's own loop. ``answer`` may be replaced to answer requests in another way; it is
called with the whole request and returns a Response, or a coroutine of one.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from jupyter_tfserve.announcement import PoolInfo, announce, make_socket_dir, withdraw
from jupyter_tfserve.config import ModelServerConfig, options_to_dict, policy_to_dict
from jupyter_tfserve.errors import Code, ServingError, error_json, invalid_argument
from jupyter_tfserve.routes import parse_route
from jupyter_tfserve.servable import ServableId
from jupyter_tfserve.state import ManagerState, ServableState, ServableStateMonitor
from jupyter_tfserve.wire import (
    CHUNK_SIZE,
    STREAM_THRESHOLD,
    Connection,
    Flag,
    Kind,
    PoolHandshake,
    Request,
    Response,
)

if TYPE_CHECKING:
    from jupyter_tfserve.metrics import Family
    from jupyter_tfserve.server.pool_spec import PoolSpec

Answer = Callable[[Request], Response | Awaitable[Response]]


def echo(request: Request) -> Response:
    """Tell what arrived."""
    seen = {
        "method": request.method,
        "target": request.target,
        "size": len(request.body),
        "encoding": request.content_encoding,
        "options": request.options,
        "timeout_ms": request.timeout_ms,
    }
    return Response(200, json.dumps(seen).encode())


class FakePool:
    """Start it, tell it states, look at what it was asked.

    Attributes:
        requests: All requests that were answered.
        calls: All (method, params) of the control interface.
        configs: The configurations that were sent, newest last.
        cancelled: Exchanges that were cancelled.
        failures: Errors of models by name: their versions go to END instead of AVAILABLE.
        problems: Why models have no version to load, by name.
        refusal: What every reload is refused with.
        label_refusal: What a reload that lists labels is refused with.
        recorded: The models whose recording was started.
        late: Whether reloads are carried out but never replied to.
        published_labels: Labels of published models, by name.
        families: The metrics that it tells.
        counts: The counts of versions that it tells.
        process: What it tells of its process besides the pid.
        memory: What it tells of models by name: ``device`` and ``memory``.
    """

    def __init__(
        self, pool_id: str = "", kind: str = "managed", owner_pid: int = 0, name: str = ""
    ) -> None:
        self.name = name
        self.pool_id = pool_id or secrets.token_hex(6)
        self.kind = kind
        self.owner_pid = owner_pid or os.getpid()
        self.secret = secrets.token_hex(16)
        self.answer: Answer = echo
        self.requests: list[Request] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.configs: list[dict[str, Any]] = []
        self.cancelled: list[int] = []
        self.failures: dict[str, ServingError] = {}
        self.problems: dict[str, str] = {}
        self.refusal: ServingError | None = None
        self.label_refusal: ServingError | None = None
        self.late = False
        self.recorded: set[str] = set()
        self.families: list[Family] = []
        self.counts: list[dict[str, Any]] = []
        self.process: dict[str, Any] = {}
        self.memory: dict[str, dict[str, Any]] = {}
        self.held: asyncio.Event | None = None
        self.connections: set[Connection] = set()
        self.chunks_received = 0
        self.monitor = ServableStateMonitor()
        self.info: PoolInfo | None = None
        self.published_labels: dict[str, dict[str, int]] = {}
        self._names: set[str] = set()
        self._sequence = 0
        self._subscribers: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> PoolInfo:
        """Listen and announce."""
        path = str(make_socket_dir(self.pool_id) / "s")
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Connection(_Door(self)), path)
        self.info = PoolInfo(
            pool_id=self.pool_id,
            kind=self.kind,
            owner_pid=self.owner_pid,
            pid=os.getpid(),
            host=socket.gethostname(),
            address=f"unix:{path}",
            secret=self.secret,
            name=self.name,
        )
        announce(self.info)
        return self.info

    async def stop(self) -> None:
        """Die as a killed process does: everything is cut."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in tuple(self.connections):
            connection.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await until(lambda: not self.connections)
        if self.info is not None:
            withdraw(self.info)

    def set_state(
        self,
        name: str,
        version: int,
        state: ManagerState,
        error: ServingError | None = None,
    ) -> None:
        """Tell every subscriber."""
        told = ServableState(
            ServableId(name, version),
            state,
            error.code if error else Code.OK,
            error.message if error else "",
            time.time(),
        )
        self.monitor.update(told)
        self._sequence += 1
        self._tell({"event": "state", "state": told.to_dict()})

    def _tell(self, event: dict[str, Any]) -> None:
        event = {**event, "seq": self._sequence}
        for connection in self._subscribers:
            connection.send(Kind.EVENT, 0, json.dumps(event).encode())

    def _label(self, name: str, label: str, version: int | None) -> dict[str, int]:
        labels = self.published_labels.setdefault(name, {})
        if version is None:
            del labels[label]
        else:
            labels[label] = version
        self._sequence += 1
        self._tell({"event": "labels", "name": name, "labels": labels})
        return labels

    def run(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The control interface

    def call(self, connection: Connection, method: str, params: dict[str, Any]) -> Any:
        self.calls.append((method, params))
        match method:
            case "subscribe":
                self._subscribers.add(connection)
                states = [s.to_dict() for s in self.monitor.states()]
                return {
                    "seq": self._sequence,
                    "states": states,
                    "labels": self.published_labels,
                }
            case "reload_config":
                return self._reload(params)
            case "load_config_file":
                if params["path"] == "/no/such/file":
                    raise ServingError(Code.NOT_FOUND, "/no/such/file does not exist")
                model = {"name": "from_file", "base_path": "/models/from_file"}
                return {"config": {"models": [model]}}
            case "parse_config":
                if "oops" in params["text"]:
                    raise invalid_argument('Invalid protobuf text: 2:3 : no field named "oops"')
                return {"config": {"models": [{"name": "t", "base_path": "/models/t"}]}}
            case "config_text":
                names = [model["name"] for model in params["config"]["models"]]
                return {"text": f"# {names}"}
            case "describe":
                process = {"pid": os.getpid(), **self.process}
                return {"models": self._describe(), "process": process}
            case "metrics":
                return {"families": [family.to_dict() for family in self.families]}
            case "counts":
                return {"versions": self.counts}
            case "load_monitoring_file":
                if params["path"] == "/no/such/file":
                    raise ServingError(Code.NOT_FOUND, "/no/such/file does not exist")
                return {"metrics_path": "/metrics"}
            case "poll" | "shutdown" | "open_http":
                return {}
            case "record":
                if params["action"] != "start" and params["model"] not in self.recorded:
                    text = f"Model {params['model']} is not being recorded"
                    raise ServingError(Code.NOT_FOUND, text)
                self.recorded.add(params["model"])
                return {
                    "model": params["model"],
                    "version": params.get("version") or 1,
                    "recording": params["action"] in ("start", "state"),
                    "recorded": 0,
                    "limit": params.get("limit") or 100,
                    "bytes": 0,
                    "file": params.get("path"),
                }
            case "look":
                return {"problem": self.problems.get(params["model"]["name"])}
            case "label":
                return {"labels": self._label(**params)}
            case "unpublish":
                self.set_state(params["name"], 1, ManagerState.END)
                return {}
        raise ServingError(Code.UNIMPLEMENTED, f"no method {method}")

    def _reload(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.refusal is not None:
            raise self.refusal
        config = ModelServerConfig.from_dict(params["config"])
        if self.label_refusal is not None and any(model.labels for model in config.models):
            raise self.label_refusal
        self.configs.append(params["config"])
        names = {model.name for model in config.models}
        for name in sorted(self._names - names):
            for state in self.monitor.versions(name):
                self.set_state(name, state.id.version, ManagerState.END)
        for name in sorted(names - self._names):
            if name in self.problems:
                continue
            self.set_state(name, 1, ManagerState.START)
            self.set_state(name, 1, ManagerState.LOADING)
            if error := self.failures.get(name):
                self.set_state(name, 1, ManagerState.END, error)
            else:
                self.set_state(name, 1, ManagerState.AVAILABLE)
        self._names = names
        return {}

    def _describe(self) -> list[dict[str, Any]]:
        config = ModelServerConfig.from_dict(self.configs[-1] if self.configs else {"models": []})
        return [
            {
                "name": model.name,
                "base_path": model.base_path,
                "policy": policy_to_dict(model.policy),
                "labels": dict(model.labels),
                "options": options_to_dict(model),
                "problem": self.problems.get(model.name),
                "versions": [
                    {
                        "version": s.id.version,
                        "state": s.state.name,
                        "error": s.message or None,
                        **self.memory.get(model.name, {}),
                    }
                    for s in self.monitor.versions(model.name)
                ],
            }
            for model in config.models
        ]


class _Door:
    """One connection of a door."""

    def __init__(self, pool: FakePool) -> None:
        self._pool = pool
        self._handshake = PoolHandshake(pool.secret)
        self._trusted = False
        self._bodies: dict[int, tuple[Request, bytearray]] = {}

    def connection_made(self, connection: Connection) -> None:
        self._pool.connections.add(connection)

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        self._pool.connections.discard(connection)
        self._pool._subscribers.discard(connection)

    def frame_received(
        self,
        connection: Connection,
        kind: int,
        flags: int,
        exchange: int,
        payload: bytes | bytearray,
    ) -> None:
        pool = self._pool
        if kind == Kind.HELLO:
            connection.send(Kind.HELLO, 0, self._handshake.answer(payload))
        elif kind == Kind.PROOF:
            self._handshake.check(payload)
            self._trusted = True
            connection.trust()
        elif not self._trusted:
            raise ValueError("a frame before the handshake")
        elif kind == Kind.CALL:
            self._call(connection, exchange, json.loads(payload))
        elif kind == Kind.REQUEST:
            request = Request.decode(payload)
            if flags & Flag.MORE:
                self._bodies[exchange] = (request, bytearray(request.body))
            else:
                pool.run(self._answer(connection, exchange, request))
        elif kind == Kind.CHUNK and exchange in self._bodies:
            pool.chunks_received += 1
            request, body = self._bodies[exchange]
            body += payload
            if not flags & Flag.MORE:
                request.body = body
                del self._bodies[exchange]
                pool.run(self._answer(connection, exchange, request))
        elif kind == Kind.CANCEL:
            pool.cancelled.append(exchange)

    def _call(self, connection: Connection, exchange: int, call: dict[str, Any]) -> None:
        try:
            reply = {"result": self._pool.call(connection, call["method"], call["params"])}
        except ServingError as error:
            reply = {"error": {"code": error.code.name, "message": error.message}}
        if self._pool.late and call["method"] == "reload_config":
            return
        connection.send(Kind.REPLY, exchange, json.dumps(reply).encode())

    async def _answer(self, connection: Connection, exchange: int, request: Request) -> None:
        self._pool.requests.append(request)
        if self._pool.held is not None:
            await self._pool.held.wait()
        try:
            parse_route(request.method, request.target)
            answer = self._pool.answer(request)
            response = await answer if inspect.isawaitable(answer) else answer
        except ServingError as error:
            response = Response(error.http_status, error_json(error.message))
        if len(response.body) <= STREAM_THRESHOLD:
            connection.send(Kind.RESPONSE, exchange, response.head(), response.body)
            return
        connection.send(Kind.RESPONSE, exchange, response.head(), flags=Flag.MORE)
        body = memoryview(response.body)
        for start in range(0, len(body), CHUNK_SIZE):
            more = Flag.MORE if start + CHUNK_SIZE < len(body) else Flag.NONE
            connection.send(Kind.CHUNK, exchange, body[start : start + CHUNK_SIZE], flags=more)
            try:
                await connection.drain()
            except ConnectionError:
                return


class FakeHost:
    """Stands for the kernel process of a managed pool: holds a :class:`FakePool` for one life."""

    def __init__(
        self,
        pool: FakePool,
        error: ServingError | None = None,
        gate: asyncio.Event | None = None,
        spec: PoolSpec | None = None,
    ) -> None:
        self.pool = pool
        self.spec = spec
        self.error = error
        self._gate = gate
        self.ended = False
        self.epitaph = "it was ended by SIGKILL"
        self._dead = asyncio.Event()

    async def start(self) -> PoolInfo:
        if self._gate is not None:
            await self._gate.wait()
        if self.error is not None:
            raise self.error
        return await self.pool.start()

    async def wait_dead(self) -> None:
        await self._dead.wait()

    async def die(self) -> None:
        """End as a killed process does."""
        await self.pool.stop()
        self._dead.set()

    async def end(self) -> None:
        self.ended = True
        await self.die()


class Pools:
    """The fake processes of the managed pools, in the order in which they were started.

    ``prepare`` is called with each new fake pool before it starts; ``errors`` holds what the next
    starts fail with, None for one that does not; a start waits for ``gate``, if there is one.
    """

    def __init__(self) -> None:
        self.hosts: list[FakeHost] = []
        self.prepare: Callable[[FakePool], None] = lambda _pool: None
        self.errors: list[ServingError | None] = []
        self.gate: asyncio.Event | None = None

    def new_host(self, pool_id: str, spec: PoolSpec | None = None) -> FakeHost:
        pool = FakePool(pool_id, name=spec.name if spec else "")
        self.prepare(pool)
        host = FakeHost(pool, self.errors.pop(0) if self.errors else None, self.gate, spec)
        self.hosts.append(host)
        return host

    @property
    def pool(self) -> FakePool:
        """The newest."""
        return self.hosts[-1].pool

    def of(self, name: str) -> list[FakeHost]:
        """The processes of one pool."""
        return [host for host in self.hosts if host.spec is not None and host.spec.name == name]


async def until(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Return once ``condition`` holds; for what nobody announces."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
