"""Which managed pool a model is placed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Code, ServingError, invalid_argument
from .devices import CPU
from .managed_pool import Phase

if TYPE_CHECKING:
    from ..config import ModelConfig
    from .fleet import Fleet
    from .managed_pool import ManagedPool


@dataclass(frozen=True, slots=True)
class Room:
    """What a pool has left, in bytes.

    Attributes:
        on_gpu: Whether its models come to lie on a GPU.
        free: Memory that its device and its own limit leave; None where nobody knows.
        held: What its models hold, and those that are on their way to it.
    """

    pool: ManagedPool
    on_gpu: bool
    free: int | None
    held: int


def roomiest(rooms: Sequence[Room]) -> ManagedPool:
    """The pool with most free memory, of those on GPUs where there are any.

    Where it is not known of all, the one that holds least. Pools on one device have the same: a
    running one then spares the start of another.
    """
    known = all(room.free is not None for room in rooms)

    def rank(room: Room) -> tuple[bool, bool, int, bool, int]:
        free = room.free if known and room.free is not None else -room.held
        works, runs = room.pool.phase is not Phase.FAILED, room.pool.phase is Phase.RUNNING
        return works, room.on_gpu, free, runs, -room.held

    return max(rooms, key=rank).pool  # the first of equals


def asked_for(
    model: ModelConfig, fleet: Fleet, devices: Iterable[str] | None, default: str | None
) -> list[ManagedPool]:
    """The pools that a model's own words leave to choose from; none where one has to be made.

    Args:
        model: what says where it wants to be.
        fleet: the pools.
        devices: names of all devices that there are; None where nobody knows.
        default: where models of a pool come to lie that sees all devices; None as well.

    Raises:
        ServingError: NOT_FOUND for a pool that there is not, FAILED_PRECONDITION for such a device;
            both name those that there are. INVALID_ARGUMENT where the two exclude each other.
    """
    if model.device and devices is not None and model.device not in set(devices):
        raise no_device(model.device, devices)
    if model.pool:
        pool = fleet.get(model.pool)
        if model.device and model.device != (pool.spec.device or default):
            where = f"on {pool.spec.device}" if pool.spec.device else "for all devices"
            raise invalid_argument(
                f"Model {model.name} asks for {model.device} and for pool {model.pool}, which is "
                f"{where}"
            )
        return [pool]
    return fleet.for_device(model.device, default) if model.device else list(fleet)


def no_device(device: str, devices: Iterable[str]) -> ServingError:
    """The refusal of a device that there is not."""
    text = f"There is no device {device}. There are: {', '.join(devices)}"
    return ServingError(Code.FAILED_PRECONDITION, text)


def expected_bytes(base_path: str) -> int:
    """What a model will take by the size of its newest version's files; 0 where it cannot be seen.

    It may take a moment: a folder may be far away.
    """
    try:
        folders = [path for path in Path(base_path).iterdir() if path.name.isdecimal()]
        newest = max(folders, key=lambda path: int(path.name))
        return sum(path.stat().st_size for path in newest.rglob("*") if path.is_file())
    except (OSError, ValueError):
        return 0


def is_gpu(device: str | None) -> bool:
    """Whether a device is known, and is a GPU."""
    return bool(device) and device != CPU
