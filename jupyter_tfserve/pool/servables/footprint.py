"""How much memory a load has taken: what TensorFlow's allocator says before and after it."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from . import runtime
from .base import Footprint

GPU = "GPU:0"
"""Where TensorFlow puts what asks for no device in particular."""


class LoadMeter:
    """Measures one load, from when it is made on; other loads at the time blur it.

    Args:
        used: tells the bytes in use on a device; raises where it cannot.
    """

    def __init__(self, used: Callable[[str], int] = runtime.device_memory) -> None:
        self._used = used
        self._device = GPU if tf.config.list_physical_devices("GPU") else "CPU"
        self._before = self._measure()

    def footprint(self, variable_bytes: int) -> Footprint:
        """What was taken, given the size of the model's variables; an estimate.

        What of the variables is not on the GPU is in the host's memory. Where the GPU's allocator
        does not tell, they are taken to be on it as a whole.
        """
        if self._device == "CPU":
            return Footprint("CPU", host_bytes=variable_bytes)
        after = self._measure()
        if self._before is None or after is None:
            return Footprint(self._device, device_bytes=variable_bytes)
        taken = max(0, after - self._before)
        return Footprint(self._device, max(0, variable_bytes - taken), taken)

    def _measure(self) -> int | None:
        if self._device == "CPU":
            return None
        try:
            return self._used(self._device)
        except Exception:  # noqa: BLE001 - no figure is worth a model
            return None
