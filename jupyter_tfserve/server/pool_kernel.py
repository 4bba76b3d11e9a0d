"""One kernel process with a pool in it: from its launch to its last trace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from traitlets.log import get_logger

from ..announcement import PoolInfo, kernel_connection_path, read_announcement, withdraw
from ..errors import Code, ServingError
from .last_words import LastWords

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from jupyter_client.asynchronous.client import AsyncKernelClient
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

_POLL_S = 0.2
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How pools are started.

    ``pool`` holds what the pool itself is told besides its id and owner: ``name``, ``core``,
    ``inference``, ``devices`` and ``http``. ``pass_fds`` are the files that the kernel process
    inherits, ``environment`` the variables that it has besides this process's.
    """

    kernel_name: str = "python3"
    start_timeout_s: float = 120.0
    pool: Mapping[str, Any] = field(default_factory=dict)
    pass_fds: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class PoolKernel:
    """A kernel that belongs to this process alone: it is in no list, so nobody culls it.

    Used once: :meth:`start`, :meth:`wait_dead`, :meth:`end`.
    """

    def __init__(
        self, pool_id: str, options: KernelOptions, kernel_specs: KernelSpecManager | None = None
    ) -> None:
        self._pool_id = pool_id
        self._options = options
        self._kernel_specs = kernel_specs
        self._manager: AsyncKernelManager | None = None
        self._exit_status: int | None = None
        self._last_words = LastWords()
        self._ending: asyncio.Future[None] | None = None

    async def start(self) -> PoolInfo:
        """Launch the kernel and start the pool in it; leaves nothing behind where that fails.

        Raises:
            ServingError: FAILED_PRECONDITION where the kernel cannot hold a pool until somebody
                acts, UNAVAILABLE where it failed this time. The text says what to do.
        """
        try:
            async with asyncio.timeout(self._options.start_timeout_s):
                await self._launch()
                await self._boot()
        except TimeoutError as error:
            await self.end()
            text = f"{self._whose} did not start its pool in {self._options.start_timeout_s:g} s"
            raise ServingError(Code.UNAVAILABLE, text) from error
        except BaseException:
            await self.end()
            raise
        info = read_announcement(self._pool_id)
        if info is None:
            await self.end()
            text = f"{self._whose} has started a pool but not announced it"
            raise ServingError(Code.UNAVAILABLE, text)
        return info

    async def wait_dead(self) -> None:
        """Return once the process has ended."""
        while not await self._dead():  # noqa: ASYNC110 - a provisioner can only be polled
            await asyncio.sleep(_POLL_S)

    @property
    def epitaph(self) -> str:
        """How the process ended, for a log line or an error."""
        status = self._exit_status
        if status is None:
            return "its connection was lost"
        if status == -signal.SIGKILL:  # which leaves no time for words
            return "it was ended by SIGKILL"
        if status < 0:
            how = f"it was ended by {signal.Signals(-status).name}"
        else:
            how = f"its process ended with exit status {status}"
        words = str(self._last_words)
        return f"{how}, having said: {words}" if words else how

    async def end(self) -> None:
        """Kill what still runs and remove every file; safe at any time.

        It goes on where its caller is cancelled, and whoever calls again waits for the same end.
        """
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        manager, self._manager = self._manager, None
        if manager is not None:
            try:
                if manager.has_kernel:  # there is nothing to shut down where none was launched
                    async with asyncio.timeout(_END_S):
                        await manager.shutdown_kernel(now=True)
            except Exception:  # noqa: BLE001 - a custom provisioner may raise anything
                get_logger().exception("%s could not be shut down", self._whose)
            finally:
                with contextlib.suppress(OSError):  # the manager forgets a half-written one
                    kernel_connection_path(self._pool_id).unlink()
                self._last_words.close()
        info = read_announcement(self._pool_id)
        if info is not None:
            withdraw(info)

    @property
    def _whose(self) -> str:
        return f"The kernel '{self._options.kernel_name}'"

    async def _dead(self) -> bool:
        if self._manager is None:
            return True
        provisioner = self._manager.provisioner
        if provisioner is None or not provisioner.has_process:
            return True
        self._exit_status = await provisioner.poll()
        return self._exit_status is not None

    async def _launch(self) -> None:
        from jupyter_client.kernelspec import NoSuchKernel
        from jupyter_client.manager import AsyncKernelManager

        self._manager = manager = AsyncKernelManager(
            kernel_name=self._options.kernel_name,
            connection_file=str(kernel_connection_path(self._pool_id)),
        )
        if manager.has_trait("transport_encryption"):  # since jupyter_client 8.9
            manager.set_trait("transport_encryption", "auto")
        if self._kernel_specs is not None:
            manager.kernel_spec_manager = self._kernel_specs
        arguments: dict[str, Any] = {"env": os.environ | self._options.environment}
        if self._options.pass_fds:
            arguments["pass_fds"] = tuple(self._options.pass_fds)
        try:
            spec = manager.kernel_spec
            if spec is None or "kernel_provisioner" not in spec.metadata:  # a process of this host
                arguments["stderr"] = subprocess.PIPE
            await manager.start_kernel(**arguments)
            process = getattr(manager.provisioner, "process", None)
            if process is not None and process.stderr is not None:
                await self._last_words.listen(process.stderr)
        except NoSuchKernel as error:
            installed = ", ".join(sorted(manager.kernel_spec_manager.find_kernel_specs()))
            text = (
                f"There is no kernel '{error.name}' to run the model pool in. Installed: "
                f"{installed}. Choose one with --PoolManager.kernel_name"
            )
            raise ServingError(Code.FAILED_PRECONDITION, text) from error
        except Exception as error:
            text = f"{self._whose} cannot be launched: {error}"
            raise ServingError(Code.UNAVAILABLE, text) from error

    async def _boot(self) -> None:
        assert self._manager is not None
        client = self._manager.client()
        # The request waits in its socket until the kernel is there; no other channel is needed.
        client.start_channels(iopub=False, stdin=False, hb=False, control=False)
        try:
            reply = await self._alive_while(_execute(client, self._boot_code()))
        finally:
            client.stop_channels()
        if reply["status"] != "ok":
            raise self._boot_error(reply.get("ename", ""), reply.get("evalue", ""))

    def _boot_code(self) -> str:
        options = {
            "pool_id": self._pool_id,
            "kind": "managed",
            "owner_pid": os.getpid(),
            **self._options.pool,
        }
        text = json.dumps(options)
        return f"import jupyter_tfserve.pool; jupyter_tfserve.pool.start({text!r})"

    async def _alive_while(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """The result of ``work``, or an error as soon as the process is dead."""
        task = asyncio.ensure_future(work)
        death = asyncio.ensure_future(self.wait_dead())
        try:
            await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            task.cancel()
            death.cancel()
        text = f"{self._whose} died while the model pool was starting: {self.epitaph}"
        raise ServingError(Code.UNAVAILABLE, text)

    def _boot_error(self, ename: str, evalue: str) -> ServingError:
        if ename == "ServingError":  # the pool's own refusal
            code, _, text = evalue.partition(": ")
            return ServingError(Code[code], text)
        missing = re.match(r"No module named '([\w.]+)'", evalue)
        if ename not in ("ImportError", "ModuleNotFoundError"):
            return ServingError(
                Code.UNAVAILABLE, f"{self._whose} could not start the model pool: {ename}: {evalue}"
            )
        what = f"has no {missing[1].partition('.')[0]}" if missing else f"fails with: {evalue}"
        return ServingError(
            Code.FAILED_PRECONDITION,
            f"{self._whose} cannot hold the model pool, as its environment {what}. "
            f"Install it there: {self._interpreter()} -m pip install jupyter_tfserve",
        )

    def _interpreter(self) -> str:
        assert self._manager is not None
        command = self._manager.format_kernel_cmd()
        return command[0] if command else "python"


async def _execute(client: AsyncKernelClient, code: str) -> dict[str, Any]:
    message = client.execute(code, silent=True, store_history=False, allow_stdin=False)
    while True:
        reply = await client.get_shell_msg()
        if reply["parent_header"].get("msg_id") == message:
            content: dict[str, Any] = reply["content"]
            return content
