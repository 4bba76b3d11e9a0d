"""What is made of NVML's answers, of its errors, and of its absence."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfserve.server import nvml
from jupyter_tfserve.server.nvml import Gpu, GpuProcess, GpuReader, Reading


class NVMLError(Exception):
    pass


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801, N818 - as in the package
    pass


class FakeNvml:
    """The package's functions, for one GPU; ``broken`` names those that raise."""

    def __init__(self) -> None:
        self.broken: dict[str, Exception] = {}
        self.started = 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            if name in self.broken:
                raise self.broken[name]
            return self._answer(name, *arguments)

        return call

    def _answer(self, name: str, *arguments: Any) -> Any:
        match name:
            case "nvmlInit":
                self.started += 1
            case "nvmlShutdown":
                self.started -= 1
            case "nvmlDeviceGetCount":
                return 1
            case "nvmlDeviceGetHandleByIndex":
                return f"handle {arguments[0]}"
            case "nvmlDeviceGetUUID":
                return b"GPU-12ab"
            case "nvmlDeviceGetName":
                return "Tesla T4"
            case "nvmlDeviceGetMemoryInfo":
                return SimpleNamespace(total=16, used=5, free=11)
            case "nvmlDeviceGetComputeRunningProcesses":
                return [
                    SimpleNamespace(pid=7, usedGpuMemory=3),
                    SimpleNamespace(pid=8, usedGpuMemory=None),
                ]
            case "nvmlDeviceGetGraphicsRunningProcesses":
                return [SimpleNamespace(pid=7, usedGpuMemory=3)]
            case "nvmlSystemGetProcessName":
                return f"/bin/p{arguments[0]}"
            case _:
                raise NotImplementedError(name)
        return None


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)  # type: ignore[arg-type]
    return fake


def test_a_gpu_is_read_with_its_memory_and_processes(fake: FakeNvml) -> None:
    processes = (GpuProcess(7, "/bin/p7", 3), GpuProcess(8, "/bin/p8", None))
    assert nvml.read() == Reading((Gpu(0, "GPU-12ab", "Tesla T4", 16, 5, 11, processes),))
    assert fake.started == 0


@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetName",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
        "nvmlSystemGetProcessName",
    ],
)
def test_what_a_driver_does_not_tell_is_left_out(fake: FakeNvml, function: str) -> None:
    fake.broken[function] = NVMLError("Not Supported")
    (gpu,) = nvml.read().gpus or ()
    assert gpu.uuid == "GPU-12ab"
    assert (gpu.product is None) == (function == "nvmlDeviceGetName")
    assert (gpu.free_bytes is None) == (function == "nvmlDeviceGetMemoryInfo")


def test_a_driver_that_is_lost_is_told_and_asked_again(fake: FakeNvml) -> None:
    fake.broken["nvmlDeviceGetHandleByIndex"] = NVMLError("GPU is lost")
    assert nvml.read() == Reading(None, "NVML does not answer: GPU is lost")
    assert fake.started == 0
    fake.broken.clear()
    assert nvml.read().gpus


def test_without_a_driver_there_is_no_gpu(fake: FakeNvml) -> None:
    fake.broken["nvmlInit"] = NVMLError_LibraryNotFound()
    assert nvml.read() == Reading((), "There is no NVIDIA driver")


def test_a_driver_that_does_not_start_leaves_it_open(fake: FakeNvml) -> None:
    fake.broken["nvmlInit"] = OSError("version mismatch")
    assert nvml.read() == Reading(None, "NVML does not start: version mismatch")


def test_without_the_package_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    reading = nvml.read()
    assert reading.gpus is None
    assert "pip install 'jupyter_tfserve[gpu]'" in reading.problem


def test_another_module_of_that_name_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace())  # type: ignore[arg-type]
    assert nvml.read().gpus is None


async def test_readers_share_one_reading_and_wait_for_no_driver_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go, times = threading.Event(), []

    def read() -> Reading:
        times.append(1)
        go.wait(10)
        return Reading(())

    monkeypatch.setattr(nvml, "read", read)
    monkeypatch.setattr(nvml, "_PATIENCE_S", 0.05)
    reader = GpuReader()
    assert "has not answered" in (await reader.read()).problem
    reading = asyncio.ensure_future(reader.read())
    await asyncio.sleep(0)
    go.set()
    assert await reading == Reading(())
    assert len(times) == 1
    assert await reader.read() == Reading(())
    assert len(times) == 2
