"""What is aspired, what is there, and what can be requested: the manager's book."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from ...servable import ServableId
from .harness import AspiredVersion, Harness
from .policy import Phase, Snapshot

T = TypeVar("T")


class Roster(Generic[T]):
    """Every version in the manager's care beside every version that sources want.

    The manager's lock guards all of it but ``serving``, which requests read without one: it is
    never changed in place, only replaced as a whole.

    Attributes:
        aspired: What sources want, by name and version.
        harnesses: What is there, by name and version; no name without a version.
        serving: What can be requested, by name and version; the key None is the latest version.
    """

    def __init__(self) -> None:
        self.aspired: dict[str, Mapping[int, AspiredVersion[T]]] = {}
        self.harnesses: dict[str, dict[int, Harness[T]]] = {}
        self.serving: dict[str, Mapping[int | None, Harness[T]]] = {}

    def __iter__(self) -> Iterator[Harness[T]]:
        for harnesses in self.harnesses.values():
            yield from harnesses.values()

    def aspire(self, name: str, aspired: Mapping[int, AspiredVersion[T]]) -> bool:
        """Replace what is aspired for ``name``; tells whether that changes what is to be done."""
        before = self.aspired.pop(name, {})
        if aspired:
            self.aspired[name] = aspired
        self.cancel_lapsed(name)
        return _origins(before) != _origins(aspired)

    def is_aspired(self, harness: Harness[T]) -> bool:
        """Whether a source still wants this very servable."""
        aspired = self.aspired.get(harness.id.name, {}).get(harness.id.version)
        if aspired is None:
            return False
        # One that is being unloaded comes back afterwards, from wherever it is aspired now.
        return harness.phase is Phase.UNLOADING or aspired.origin == harness.aspired.origin

    def snapshots(self, name: str) -> list[Snapshot]:
        """The versions of a model as a policy sees them."""
        return [
            Snapshot(version, harness.phase, self.is_aspired(harness))
            for version, harness in self.harnesses[name].items()
        ]

    def cancel_lapsed(self, name: str) -> None:
        """Mark the loads that nobody wants any more.

        The mark stays, so that a version aspired anew while it loads is loaded afresh.
        """
        for harness in self.harnesses.get(name, {}).values():
            if harness.phase is Phase.LOADING and not self.is_aspired(harness):
                harness.cancelled = True

    def take_lapsed(self) -> Harness[T] | None:
        """Remove and return a version that is not wanted and that no thread is busy with."""
        for harness in self:
            resting = harness.phase in {Phase.NEW, Phase.ERROR} or harness.retry_at is not None
            if resting and (harness.cancelled or not self.is_aspired(harness)):
                self.remove(harness)
                return harness
        return None

    def add_aspired(self) -> Harness[T] | None:
        """Take a version in that is aspired and not there yet."""
        for name, aspired in self.aspired.items():
            harnesses = self.harnesses.get(name, {})
            for version in aspired:
                if version not in harnesses:
                    harness = Harness(ServableId(name, version), aspired[version])
                    self.harnesses.setdefault(name, {})[version] = harness
                    return harness
        return None

    def remove(self, harness: Harness[T]) -> None:
        """Forget a version."""
        harnesses = self.harnesses[harness.id.name]
        del harnesses[harness.id.version]
        if not harnesses:
            del self.harnesses[harness.id.name]

    def set_serving(self, harness: Harness[T], *, serving: bool) -> None:
        """Let requests find a version, or no longer."""
        harness.serving = serving
        name = harness.id.name
        ready: dict[int | None, Harness[T]] = {}
        for version, each in sorted(self.harnesses[name].items()):
            if each.serving:
                ready[version] = ready[None] = each
        table = {key: versions for key, versions in self.serving.items() if key != name}
        if ready:
            table[name] = ready
        self.serving = table


def _origins(aspired: Mapping[int, AspiredVersion[T]]) -> dict[int, object]:
    return {version: entry.origin for version, entry in aspired.items()}
