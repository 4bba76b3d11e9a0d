"""GPUs that a test makes up, in the place of what NVML would tell."""

from __future__ import annotations

from jupyter_tfserve.server.nvml import Gpu, GpuProcess, Reading

GIB = 1 << 30


def gpu(index: int, free_gib: float = 16, *processes: GpuProcess) -> Gpu:
    """One of 16 GiB."""
    free = int(free_gib * GIB)
    uuid = f"GPU-{index}{index}aa-bb"
    return Gpu(index, uuid, "Tesla T4", 16 * GIB, 16 * GIB - free, free, processes)


class FakeGpus:
    """What the driver tells; ``reading`` may be replaced at any time."""

    def __init__(self) -> None:
        self.reading = Reading(())
        self.times_read = 0

    def have(self, *gpus: Gpu) -> None:
        self.reading = Reading(gpus)

    def read(self) -> Reading:
        self.times_read += 1
        return self.reading
