"""A pool: its core, its loop in a thread of its own, and the ways in.

The thread is the pool's own, so that it answers while the kernel runs a cell.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import secrets
import socket
import threading
from functools import partial
from typing import TYPE_CHECKING

from ..announcement import PoolInfo, announce, make_socket_dir, withdraw
from ..errors import Code, ServingError
from ..http.limits import Limits
from ..http.server import HttpServer
from ..wire import Connection
from .batching.metrics import BatchMetrics
from .batching.service import Batching
from .control import Control
from .core.server_core import ServerCore
from .http_door import HttpDoor
from .metrics import PoolMetrics
from .owner import owner_ended
from .publisher import Publisher
from .recorder import Recorder
from .rest_api import RestApi
from .scheduler import Scheduler
from .servables import runtime
from .servables.loaders import PathLoader
from .statistics import Statistics
from .transport import DoorConnection
from .warmup import WarmingLoader
from .warmup_metrics import WarmupMetrics

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ..config import ModelConfig
    from ..servable import ServableId
    from .core.loader import Loader
    from .options import PoolOptions
    from .servables.base import Servable

log = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0
_HTTP_GRACE_S = 5.0


class Pool:
    """One process's pool; made and started once, in any thread.

    Attributes:
        publisher: Serves models of this process's memory.
        metrics: Its numbers; parts of the pool register what they count.
        ended: Whether it has gone for good.
    """

    def __init__(self, options: PoolOptions) -> None:
        self._options = options
        batches = BatchMetrics(options.pool_id)
        self._batching = batching = Batching(options.batching, batches.record)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tfserve-pool", daemon=True)
        self._warmup_metrics = WarmupMetrics()
        self._core: ServerCore[Servable] = ServerCore(
            self._loader, options.core, on_config=batching.configure
        )
        statistics = Statistics(lambda name: bool(self._core.monitor.versions(name)))
        self._scheduler = Scheduler(
            self._loop,
            timeout_s=options.inference.rest_api_timeout_in_ms / 1000,
            max_in_flight=options.inference.max_in_flight,
            max_in_flight_per_model=options.inference.max_in_flight_per_model,
            has_queues=batching.has_queues,
            num_threads=options.inference.rest_api_num_threads,
        )
        recorder = Recorder(self._core)
        self._rest = RestApi(
            self._core,
            self._scheduler,
            statistics,
            recorder,
            check_method_name=options.inference.enable_signature_method_name_check,
        )
        self.metrics = PoolMetrics(
            options.pool_id, self._core, self._scheduler, statistics, runtime.device_memory
        )
        self.metrics.register(self._warmup_metrics.families)
        self.metrics.register(partial(batches.families, batching.thread_pool_name))
        self.publisher = Publisher(self._core, batching)
        self._control = Control(
            self._loop,
            self._core,
            statistics,
            metrics=self.metrics,
            recorder=recorder,
            publisher=self.publisher,
            runtime=runtime.describe,
            open_http=self._open_http,
            shut_down=self._shut_down,
        )
        self._secret = secrets.token_hex(32)
        self._info: PoolInfo | None = None
        self._listener: asyncio.Server | None = None
        self._http: HttpServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended = False

    @property
    def pool_id(self) -> str:
        """The name of its announcement."""
        return self._options.pool_id

    @property
    def owner_pid(self) -> int:
        """The process of the Jupyter server whose doors it serves."""
        return self._options.owner_pid

    def _loader(self, model: ModelConfig, _servable: ServableId, path: str) -> Loader[Servable]:
        options = self._options.load
        plain = PathLoader(
            path,
            tags=tuple(options.saved_model_tags.split(",")),
            prefer_tflite=options.prefer_tflite_model,
            interpreters=options.num_tflite_pools,
        )
        loader = self._batching.loader(model.name, path, plain)
        if not options.enable_model_warmup:
            return loader
        iterations = max(options.num_request_iterations_for_warmup, 1)
        return WarmingLoader(loader, path, iterations, self._warmup_metrics.record)

    # Life

    def start(self) -> None:
        """Listen and announce; returns when doors can connect.

        Raises:
            OSError: where the runtime directory takes no socket or file.
            ServingError: FAILED_PRECONDITION where its device is not there.
        """
        if self._options.kind == "managed":
            runtime.quiet()
            runtime.configure(self._options.session)
            runtime.use(self._options.devices)
            # TensorFlow's own objects are there for good; without this, every full collection
            # goes through hundreds of thousands of them, and holds up all calls meanwhile.
            gc.freeze()
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(_START_TIMEOUT_S)
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            raise

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _open(self) -> None:
        address = await self._listen()
        self._info = PoolInfo(
            pool_id=self._options.pool_id,
            kind=self._options.kind,
            owner_pid=self._options.owner_pid,
            pid=os.getpid(),
            host=socket.gethostname(),
            address=address,
            secret=self._secret,
            kernel_id=self._options.kernel_id,
            name=self._options.name,
        )
        atexit.register(withdraw, self._info)
        try:
            announce(self._info)
        except BaseException:
            withdraw(self._info)
            raise
        self._in_background(self._watch_owner())

    async def _listen(self) -> str:
        if not hasattr(socket, "AF_UNIX"):
            self._listener = await self._loop.create_server(self._door, "127.0.0.1", 0)
            host, port = self._listener.sockets[0].getsockname()
            return f"tcp:{host}:{port}"
        path = make_socket_dir(self._options.pool_id) / "s"
        self._listener = await self._loop.create_unix_server(self._door, str(path))
        return f"unix:{path}"

    def _door(self) -> Connection:
        limit = self._options.inference.max_body_bytes
        return Connection(
            DoorConnection(self._secret, self._rest, self._control, limit),
            before_turn=self._scheduler.gather,
            after_turn=self._scheduler.run_gathered,
        )

    def _open_http(self, metrics_path: str | None) -> None:
        """Answer on the inherited socket from now on; its owner asks once models are there."""
        options = self._options.http
        if options is None:
            raise ServingError(Code.FAILED_PRECONDITION, "This pool has inherited no socket")
        if self._http is None:
            limits = Limits(max_body_bytes=self._options.inference.max_body_bytes)
            door = HttpDoor(
                self._rest, cors=options.cors, metrics=self.metrics, metrics_path=metrics_path
            )
            self._http = HttpServer(
                door,
                limits,
                before_turn=self._scheduler.gather,
                after_turn=self._scheduler.run_gathered,
            )
            self._in_background(self._serve_http(self._http, options.fd))

    async def _serve_http(self, server: HttpServer, fd: int) -> None:
        await server.start(socket.socket(fileno=fd))

    # End

    async def _watch_owner(self) -> None:
        """A pool serves its owner's doors: without the owner it has no reason to stay."""
        await owner_ended(self._options.owner_pid)
        log.warning("The Jupyter server that owned this pool is gone; so is the pool")
        if self._options.kind == "managed":
            self._leave()
        else:
            await self._close()

    def _shut_down(self) -> None:
        self._in_background(self._close())

    async def _close(self) -> None:
        self.ended = True
        if self._http is not None:
            await self._http.close(_HTTP_GRACE_S)
        if self._listener is not None:
            self._listener.close()
        await asyncio.to_thread(self._core.close)
        await asyncio.to_thread(self._batching.close)
        self._scheduler.close()
        self._control.close()
        self._leave()

    def _leave(self) -> None:
        """Take back all that shows the pool; a process that is only a pool ends with it."""
        if self._info is not None:
            withdraw(self._info)
        if self._options.kind == "managed":
            os._exit(0)
        self._loop.stop()

    def _in_background(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
