"""What NVIDIA's management library tells of this machine's GPUs. The only module that asks it.

``nvidia-ml-py`` is optional, and so are the driver and the GPUs: whatever is missing or broken, a
:class:`Reading` says so, and nothing is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_PATIENCE_S = 3.0
"""A driver that hangs is waited for no longer than this, in seconds."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a GPU; what the driver does not tell is None."""

    pid: int
    name: str | None = None
    used_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU; ``index`` is NVML's, by PCI bus. What the driver does not tell is None."""

    index: int
    uuid: str
    product: str | None = None
    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """All GPUs at one moment: None where nobody knows, with the ``problem`` in words."""

    gpus: tuple[Gpu, ...] | None = None
    problem: str = ""


def read() -> Reading:
    """Ask the driver now. It may take its time; see :class:`GpuReader`."""
    try:
        import pynvml
    except ImportError:
        text = "nvidia-ml-py is not installed in the server's environment"
        return Reading(problem=f"{text}: pip install 'jupyter_tfserve[gpu]'")
    except Exception as error:  # noqa: BLE001 - another module may have that name
        return Reading(problem=f"pynvml cannot be imported: {error}")
    try:
        pynvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - see the module's promise
        if type(error).__name__ in _NO_DRIVER:
            return Reading((), "There is no NVIDIA driver")
        return Reading(problem=f"NVML does not start: {error}")
    try:
        count = pynvml.nvmlDeviceGetCount()
        return Reading(tuple(_gpu(pynvml, index) for index in range(count)))
    except Exception as error:  # noqa: BLE001
        return Reading(problem=f"NVML does not answer: {error}")
    finally:
        with contextlib.suppress(Exception):
            pynvml.nvmlShutdown()


_NO_DRIVER = frozenset(("NVMLError_LibraryNotFound", "NVMLError_DriverNotLoaded"))
"""Without a driver CUDA finds no GPU either."""


def _gpu(nvml: ModuleType, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    return Gpu(
        index,
        _text(nvml.nvmlDeviceGetUUID(handle)),
        _text(_ask(nvml.nvmlDeviceGetName, handle)) or None,
        getattr(memory, "total", None),
        getattr(memory, "used", None),
        getattr(memory, "free", None),
        _processes(nvml, handle),
    )


def _processes(nvml: ModuleType, handle: Any) -> tuple[GpuProcess, ...]:
    """Compute and graphics processes; one that does both is listed twice by NVML."""
    found: dict[int, GpuProcess] = {}
    for ask in (
        nvml.nvmlDeviceGetComputeRunningProcesses,
        nvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        for process in _ask(ask, handle) or ():
            if process.pid not in found:
                name = _text(_ask(nvml.nvmlSystemGetProcessName, process.pid)) or None
                found[process.pid] = GpuProcess(process.pid, name, process.usedGpuMemory)
    return tuple(found.values())


def _ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """An answer that not every driver gives, or not to every user; None without."""
    try:
        return function(*arguments)
    except Exception:  # noqa: BLE001
        return None


def _text(value: Any) -> str:
    # Older releases give bytes.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


class GpuReader:
    """Reads in a thread of its own, so that a driver that hangs holds up nobody."""

    def __init__(self) -> None:
        self._reading: asyncio.Future[Reading] | None = None

    async def read(self) -> Reading:
        """The GPUs now; whoever comes meanwhile shares the reading under way."""
        if self._reading is None or self._reading.done():
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            # A daemon: the server's end does not wait for it.
            threading.Thread(
                target=self._run, args=(loop, self._reading), name="tfserve-nvml", daemon=True
            ).start()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.shield(self._reading)
        except TimeoutError:
            return Reading(problem=f"NVML has not answered in {_PATIENCE_S:g} s")

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop, reading: asyncio.Future[Reading]) -> None:
        told = read()
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, reading, told)


def _settle(reading: asyncio.Future[Reading], told: Reading) -> None:
    if not reading.done():
        reading.set_result(told)
