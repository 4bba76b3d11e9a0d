"""What devices are called, and how a process is given one of them.

Devices have TensorFlow's names, ``CPU`` and ``GPU:0``; GPUs are counted as this server sees them. A
process counts those that its own ``CUDA_VISIBLE_DEVICES`` leaves it, again from 0.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .nvml import Gpu

VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"
CPU = "CPU"
_HIDDEN = "-1"


def visible(value: str | None) -> tuple[str, ...] | None:
    """The GPUs that a value of ``CUDA_VISIBLE_DEVICES`` lists, as it lists them; None is all.

    As in CUDA, what follows an entry that names none does not count.
    """
    if value is None:
        return None
    found: list[str] = []
    for entry in map(str.strip, value.split(",")):
        if not (entry.isdecimal() or entry.startswith(("GPU-", "MIG-"))):
            break
        found.append(entry)
    return tuple(found)


class DeviceNames:
    """Names of GPUs, from what is known at one moment.

    Args:
        gpus: NVML's, in its order; None where nobody knows.
        environment: this server's, by default.
    """

    def __init__(
        self, gpus: Sequence[Gpu] | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._all = gpus
        self._environment = environment
        self._visible = visible(environment.get(VISIBLE))

    @property
    def gpus(self) -> dict[str, Gpu | None] | None:
        """The GPUs of this server by name; None where it is not known which there are.

        One that NVML does not list, such as a part of a GPU (MIG), is None.
        """
        if self._all is None:
            return None
        if self._visible is None:
            return {f"GPU:{i}": gpu for i, gpu in enumerate(self._all)}
        found: dict[str, Gpu | None] = {}
        for entry in self._visible:
            gpu = self._find(entry)
            if gpu is None and not entry.startswith("MIG-"):
                break  # CUDA stops here, too
            found[f"GPU:{len(found)}"] = gpu
        return found

    def environment_for(self, device: str) -> dict[str, str]:
        """What a process has to find in its environment to see ``device`` alone; empty is all.

        GPUs are numbered by their place on the bus, as NVML does it, and not by their speed.
        """
        variables = {_ORDER: self._environment.get(_ORDER, "PCI_BUS_ID")}
        if device == CPU:
            variables[VISIBLE] = _HIDDEN
        elif device:
            index = int(device.removeprefix("GPU:"))
            if self._visible is None:
                variables[VISIBLE] = str(index)
            else:  # one that is not there stays so
                entries = dict(enumerate(self._visible))
                variables[VISIBLE] = entries.get(index, _HIDDEN)
        return variables

    def of_process(self, value: str | None, device: str) -> str:
        """What a device is called here that a process with that ``CUDA_VISIBLE_DEVICES`` names.

        A GPU that this server does not see has the name that the variable gives it.
        """
        if not device.startswith("GPU:"):
            return CPU if device.startswith(CPU) else device
        index, listed = int(device.removeprefix("GPU:")), visible(value)
        if listed is None:
            return device
        if index >= len(listed):
            return device
        key = self._key(listed[index])
        if self._visible is None and self._all is None:
            return f"GPU:{key}" if key.isdecimal() else key
        keys = (
            [gpu.uuid for gpu in self._all or ()]
            if self._visible is None
            else [self._key(entry) for entry in self._visible]
        )
        return f"GPU:{keys.index(key)}" if key in keys else listed[index]

    def _key(self, entry: str) -> str:
        gpu = self._find(entry)
        return entry if gpu is None else gpu.uuid

    def _find(self, entry: str) -> Gpu | None:
        for gpu in self._all or ():
            if entry == str(gpu.index) or (entry[:4] == "GPU-" and gpu.uuid.startswith(entry)):
                return gpu
        return None
