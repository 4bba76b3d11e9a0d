"""Decisions without effects: which versions are aspired, and what is to be done next.

The rules are TensorFlow Serving's (``sources/storage_path``, ``core/*_preserving_policy.cc``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ...config import All, Latest, Specific, VersionPolicy


def aspired_versions(policy: VersionPolicy, found: Iterable[int]) -> list[int]:
    """The versions that ``policy`` picks of those found, highest first."""
    versions = sorted(found, reverse=True)
    match policy:
        case Latest(num_versions):
            return versions[: max(num_versions, 1)]
        case Specific(wanted):
            return [version for version in versions if version in wanted]
        case All():
            return versions


class Phase(Enum):
    """Where the manager stands with a version; coarser for requests than the published states."""

    NEW = auto()
    LOADING = auto()
    READY = auto()
    UNLOADING = auto()
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a model as a policy sees it."""

    version: int
    phase: Phase
    is_aspired: bool

    @property
    def is_surplus(self) -> bool:
        """Ready, but no longer aspired."""
        return self.phase is Phase.READY and not self.is_aspired


class Step(Enum):
    """What can be done to a version."""

    LOAD = auto()
    UNLOAD = auto()


@dataclass(frozen=True, slots=True)
class Action:
    """The next thing to do for a model."""

    step: Step
    version: int


TransitionPolicy = Callable[[Sequence[Snapshot]], Action | None]
"""All versions of one model in, at most one action out; pure, so that it can be asked again."""


def preserve_availability(versions: Sequence[Snapshot]) -> Action | None:
    """Load the new version before the old one goes; the default.

    The last ready version is given up only if an aspired one is ready or none is aspired. Needs
    room for two versions at a time.
    """
    surplus = [snapshot.version for snapshot in versions if snapshot.is_surplus]
    aspired = [snapshot.phase for snapshot in versions if snapshot.is_aspired]
    if surplus and (not aspired or Phase.READY in aspired or len(surplus) > 1):
        return Action(Step.UNLOAD, min(surplus))
    return _load_highest(versions)


def preserve_resources(versions: Sequence[Snapshot]) -> Action | None:
    """Unload the old version before the new one loads, for models that fit in memory only once.

    The model answers nothing in between.
    """
    for snapshot in versions:
        if snapshot.is_surplus:
            return Action(Step.UNLOAD, snapshot.version)
    if any(_is_leaving(snapshot) for snapshot in versions):
        return None
    return _load_highest(versions)


def _is_leaving(snapshot: Snapshot) -> bool:
    # A version aspired anew while it unloads still holds its memory.
    unaspired = not snapshot.is_aspired and snapshot.phase is not Phase.ERROR
    return unaspired or snapshot.phase is Phase.UNLOADING


def _load_highest(versions: Sequence[Snapshot]) -> Action | None:
    new = [s.version for s in versions if s.is_aspired and s.phase is Phase.NEW]
    return Action(Step.LOAD, max(new)) if new else None
