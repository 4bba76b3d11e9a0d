"""Where the time goes: stacks of the serving process, sampled from outside while it is loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from contenders import FAST_LANE, ORDINARY_LANE, STANDALONE, jupyter, standalone
from load import hammer
from plan import Plan, say
from works import HALF_PLUS_THREE, WORKS

if TYPE_CHECKING:
    from results import Results

RATE = 200
"""Samples a second."""
SHOWN = 30
_WAITS = (
    "_worker (concurrent/futures/thread.py",
    "Condition.wait (threading.py",
    "EpollSelector.select (selectors.py",
    "OutStream._watch_pipe_fd (ipykernel/iostream.py",
    "ParentPollerUnix.run (ipykernel/parentpoller.py",
    "device (zmq/sugar/__init__.py",
)
"""Where threads wait for something to do, in the words of the sampler, which counts some of it."""
_BY_NAME = {work.name: work for work in WORKS}

CASES = (
    (STANDALONE, "half_plus_three", 32, "pool"),
    (STANDALONE, "million_flat", 1, "pool"),
    (FAST_LANE, "half_plus_three", 32, "Jupyter server"),
    (ORDINARY_LANE, "half_plus_three", 32, "Jupyter server"),
    (FAST_LANE, "million_flat", 1, "Jupyter server"),
)
"""Which work, how many connections, which process."""


def run(models: Path, scratch: Path, plan: Plan, results: Results) -> None:
    """Profile a small and a large request by each door."""
    program = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or "py-spy"
    if shutil.which(program) is None:
        results.skipped["profiles"] = "`py-spy` is not installed: `pip install '.[bench]'`"
        return
    base_path = models / HALF_PLUS_THREE.name
    name = HALF_PLUS_THREE.name
    with (
        standalone()(name, base_path, scratch / "standalone") as alone,
        jupyter(name, base_path, scratch / "jupyter") as lanes,
    ):
        targets = {target.name: target for target in alone + lanes}
        for contender, work, connections, process in CASES:
            say(f"Profile: {contender}, {work}, {process}")
            load = hammer(targets[contender], _BY_NAME[work].body, connections, 3600)
            title = f"{contender}, {_BY_NAME[work].title}, {connections} connections: {process}"
            text = _sample(program, targets[contender].pids[process], load, plan)
            slug = f"{contender} {work}".lower().replace(",", "").replace(" ", "-")
            results.profiles[f"profile-{slug}"] = f"{title}\n\n{text}"


def _sample(program: str, pid: int, load: AbstractContextManager[object], plan: Plan) -> str:
    """A table of the functions that were at work in a process while a load lasted."""
    with tempfile.NamedTemporaryFile() as file, load:
        command = [
            *(program, "record", "--pid", str(pid), "--format", "raw", "--output", file.name),
            *("--rate", str(RATE), "--duration", str(plan.rounds * plan.seconds), "--function"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"py-spy: {done.stderr.strip()}\n"
        return table(Path(file.name).read_text())


def table(stacks: str) -> str:
    """The functions with the most samples of their own, from lines of ``outer;inner COUNT``.

    What C code takes is counted for the Python function that called it.
    """
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if frames[-1].startswith(_WAITS):
            continue
        own[frames[-1]] += int(count)
        for frame in set(frames):
            total[frame] += int(count)
    all_samples = own.total() or 1
    lines = [f"{'own':>6} {'with callees':>13}  function"]
    for frame, samples in own.most_common(SHOWN):
        lines.append(f"{samples / all_samples:6.1%} {total[frame] / all_samples:13.1%}  {frame}")
    return "\n".join(lines) + f"\n\n{all_samples} samples of threads at work\n"
