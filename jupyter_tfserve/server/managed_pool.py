"""The server's own pool, kept alive: started on first need, restarted when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from traitlets.log import get_logger

from ..errors import Code, ServingError
from .pool_mirror import PoolMirror
from .pool_spec import PoolSpec

if TYPE_CHECKING:
    from ..announcement import PoolInfo
    from .admission import Limits
    from .pool_client import PoolClient

MAX_RESTARTS = 5
"""Restarts in a row before a pool that keeps dying is given up."""
_STABLE_S = 60.0
"""A pool that has lived so long has started well: its restarts are counted anew."""
_SHUTDOWN_S = 3.0


class Phase(StrEnum):
    """What a managed pool is doing."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILED = "failed"


class Host(Protocol):
    """A process that holds a pool for one life; see :class:`.pool_kernel.PoolKernel`."""

    async def start(self) -> PoolInfo:
        """Launch it and start the pool in it."""

    async def wait_dead(self) -> None:
        """Return once the process has ended."""

    async def end(self) -> None:
        """Kill what still runs and remove every file, even if the caller is cancelled."""

    @property
    def epitaph(self) -> str:
        """How the process ended."""


class ManagedPool:
    """One pool over all its processes.

    Args:
        new_host: makes the process of the pool with the given id.
        replay: called with each new process's client before the pool counts as running; it sends
            the aspired configuration.
        limits: in-flight limits.
        on_phase: called after each change of :attr:`phase`.
        delay_s: the wait before the n-th restart in a row, n from 1.
        spec: what it is called and may use.
    """

    def __init__(
        self,
        new_host: Callable[[str], Host],
        replay: Callable[[PoolClient], Awaitable[None]],
        *,
        limits: Limits | None = None,
        on_phase: Callable[[Phase], None] = lambda _phase: None,
        delay_s: Callable[[int], float] = lambda n: 0.0 if n == 1 else min(2.0 ** (n - 2), 30.0),
        spec: PoolSpec = PoolSpec(),  # noqa: B008 - it is frozen
    ) -> None:
        self.spec = spec
        self.mirror = PoolMirror(secrets.token_hex(6), "managed", limits, spec.name)
        self.phase = Phase.STOPPED
        self.reason = ""
        self.restarts = 0
        self.restarts_ever = 0
        self._new_host = new_host
        self._replay = replay
        self._on_phase = on_phase
        self._delay_s = delay_s
        self._host: Host | None = None
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[PoolClient] | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def explanation(self) -> str:
        """Why the pool does not answer now, in words for its callers."""
        match self.phase:
            case Phase.STARTING:
                return "The model pool is starting"
            case Phase.RESTARTING:
                return f"The model pool is being restarted: {self.reason}"
            case Phase.FAILED:
                return f"The model pool cannot start: {self.reason}"
            case Phase.STOPPED:
                return "The model pool is stopped"
            case Phase.RUNNING:
                return "The model pool is running"

    async def ensure_running(self) -> PoolClient:
        """Start the pool, or wait for the start under way, and return its client.

        Raises:
            ServingError: why it cannot start, or was given up.
        """
        if self._stopping is not None:  # a process that is ending is no process to rely on
            await asyncio.shield(self._stopping)
        if self.phase is Phase.RUNNING and self.mirror.client is not None:
            return self.mirror.client
        if self._task is None or self._task.done():
            self._started = None
            self._enter(Phase.STARTING)
            self._task = asyncio.get_running_loop().create_task(self._live())
        if self._started is None or self._started.done():
            self._started = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._started)

    async def restart(self) -> PoolClient:
        """End the process, if there is one, and start another.

        Raises:
            ServingError: as :meth:`ensure_running`.
        """
        await self.stop()
        return await self.ensure_running()

    async def stop(self) -> None:
        """End the process in bounded time; nothing of it is left. It starts again on need."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        try:
            await self._end_process()
        finally:
            self._stopping = None

    async def _end_process(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            client = self.mirror.client
            if client is not None:
                with contextlib.suppress(ServingError):
                    await client.call("shutdown", timeout_s=_SHUTDOWN_S)
            task.cancel()
            await asyncio.wait({task})
            if self._host is not None:
                await self._host.end()  # which the task may not have had the time to wait for
        self._enter(Phase.STOPPED)
        self._settle(ServingError(Code.UNAVAILABLE, self.explanation))

    # Its life, one task

    async def _live(self) -> None:
        while (error := await self._one_life()) is None:
            get_logger().warning("%s", self.explanation)
            await asyncio.sleep(self._delay_s(self.restarts))
        self.reason, self.restarts = error.message, 0
        self._enter(Phase.FAILED)
        get_logger().error("%s", self.explanation)
        self._settle(error)

    async def _one_life(self) -> ServingError | None:
        """Live once; returns why there shall be no other life, None where there shall."""
        began = time.monotonic()
        try:
            await self._run_once()
        except ServingError as error:
            self.reason = error.message
            if self.phase is Phase.STARTING:  # it has never run: another try would be the same
                return error
        except Exception as error:  # noqa: BLE001 - whoever waits has to be told
            get_logger().exception("The managed pool failed in an unforeseen way")
            return ServingError(Code.INTERNAL, f"{type(error).__name__}: {error}")
        if time.monotonic() - began > _STABLE_S:
            self.restarts = 0
        self.restarts += 1
        self.restarts_ever += 1
        if self.restarts > MAX_RESTARTS:
            text = f"it ended {self.restarts} times in a row, at last: {self.reason}"
            return ServingError(Code.UNAVAILABLE, text)
        return None

    async def _run_once(self) -> None:
        """From launch to death; raises where it does not come to run."""
        host = self._host = self._new_host(self.mirror.pool_id)
        try:
            info = await host.start()
            client = await self.mirror.attach(info)
            await self._replay(client)
            self._enter(Phase.RUNNING)
            self._settle(client)
            await self._until_dead(host, client)
            self.reason = host.epitaph
            self._enter(Phase.RESTARTING)
        finally:
            self.mirror.detach()
            await host.end()

    async def _until_dead(self, host: Host, client: PoolClient) -> None:
        death = asyncio.ensure_future(host.wait_dead())
        try:
            await asyncio.wait({client.closed, death}, return_when=asyncio.FIRST_COMPLETED)
            # A lost connection is nearly always a death that has not been seen yet: its cause
            # belongs into the log.
            await asyncio.wait({death}, timeout=0.5)
        finally:
            death.cancel()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._on_phase(phase)

    def _settle(self, outcome: PoolClient | ServingError) -> None:
        if self._started is None or self._started.done():
            return
        if isinstance(outcome, ServingError):
            self._started.set_exception(outcome)
            self._started.exception()  # whoever waited may have left
        else:
            self._started.set_result(outcome)
