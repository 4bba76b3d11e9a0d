"""What one large request adds to the memory of the processes that serve it, at its peak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contenders import FAST_LANE, STANDALONE, jupyter, standalone
from load import Client, Target
from plan import Plan, say
from results import Memory, Results
from works import HALF_PLUS_THREE, instances, numbers

VALUES = 9_170_000
"""Random float32 in their shortest text: a body of 100 MB."""


def run(models: Path, scratch: Path, plan: Plan, results: Results) -> None:
    """Send the body ``rounds`` times to a fresh server, by each door."""
    body = instances(numbers(VALUES))
    for name, start in ((STANDALONE, standalone()), (FAST_LANE, jupyter)):
        say(f"Memory of a body of {len(body) / 1e6:.0f} MB: {name}")
        base_path = models / HALF_PLUS_THREE.name
        with start(HALF_PLUS_THREE.name, base_path, scratch / name) as targets:
            (target,) = (target for target in targets if target.name == name)
            results.memory += _peaks(target, body, plan.rounds)


def _peaks(target: Target, body: bytes, rounds: int) -> Iterator[Memory]:
    client = Client(target)
    client.call(instances(numbers(10)))
    with _added(target.pids) as added:
        answers = [len(client.call(body)) for _ in range(rounds)]
    client.close()
    for process, size in added.items():
        yield Memory(target.name, process, len(body), answers[0], size)


@contextmanager
def _added(pids: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Filled in after the block: how far above its start each process's memory ever was."""
    before = {}
    added: dict[str, int] = {}
    for name, pid in pids.items():
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
        before[name] = _status(pid, "VmRSS")
    yield added
    for name, pid in pids.items():
        added[name] = _status(pid, "VmHWM") - before[name]


def _status(pid: int, field: str) -> int:
    """A size of ``/proc/PID/status``, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)
