"""Measure this project, bare Tornado, and others on the same work, in one run.

By itself all works, the memory of large requests, what the notebook feels meanwhile, and profiles.
Results are written as JSON, tables and plots.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import environments
import frames
import machine
import memory
import profiles
import report
import responsiveness
import throughput
from contenders import CONTENDERS, PEER_CONTENDERS, Contender
from load import find_wrk
from plan import Plan
from results import Results
from works import WORKS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PARTIAL = ROOT / ".bench" / "results"

PARTS: dict[str, Callable[[Path, Path, Plan, Results], None]] = {
    frames.NAME: frames.run,
    "memory": memory.run,
    "responsiveness": responsiveness.run,
    "profiles": profiles.run,
}
"""What is measured beside the works."""

NAMES = (*(work.name for work in WORKS), *PARTS)
SERVERS = tuple(contender.name for contender in CONTENDERS + PEER_CONTENDERS)


def names(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A list on the command line, of names that are known."""

    def parse(text: str) -> list[str]:
        given = [name.strip() for name in text.split(",")]
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return given

    return parse


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks", description=__doc__)
    add = parser.add_argument
    add("--peers", action="store_true", help="let Python's other servers take part")
    add("--rounds", type=int, default=5, help="how often everything is measured (%(default)s)")
    add("--seconds", type=int, default=2, help="how long each load lasts (%(default)s)")
    add(
        "--connections",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[1, 8, 32, 128],
        help="numbers of connections, separated by commas (1,8,32,128)",
    )
    add("--only", type=names(NAMES), help=f"some of {', '.join(NAMES)}; separated by commas")
    add("--servers", type=names(SERVERS), help=f"some of {', '.join(SERVERS)}; the works for these")
    add("--models", type=Path, help="folder with the models; made in .bench/models unless given")
    add("--output", type=Path, help="where results go; tests/benchmarks/results if all is measured")
    add("--redraw", type=Path, help="only write tables and plots anew, of a folder with results")
    return parser.parse_args()


def ready_models(folder: Path) -> Path:
    """The folder of the models, made where they are missing."""
    wanted = {work.model.folder(tf1=tf1) for work in WORKS for tf1 in (True, False)}
    wanted.add(frames.MODEL)
    missing = sorted(name for name in wanted if not (folder / name).exists())
    if missing:
        command = [sys.executable, str(ROOT / "tests" / "models"), str(folder), *missing]
        subprocess.run(command, check=True, capture_output=True)
    return folder.resolve()


def taking_part(given: argparse.Namespace, results: Results) -> list[Contender]:
    """Those that were asked for and are there; the others are said to be skipped."""
    contenders = []
    for contender in CONTENDERS + (PEER_CONTENDERS if given.peers else ()):
        if given.servers is not None and contender.name not in given.servers:
            continue
        if missing := contender.missing():
            results.skipped[contender.name] = missing
            print(f"Skipping {contender.name}: {missing}", file=sys.stderr)
        else:
            contenders.append(contender)
    return contenders


def main() -> None:
    """Read the command line and measure."""
    given = options()
    if given.redraw is not None:
        report.write(Results.read(given.redraw / "results.json"), given.redraw)
        return
    if find_wrk() is None:
        sys.exit("The benchmarks are driven by wrk: apt-get install wrk")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    models = ready_models(given.models or ROOT / ".bench" / "models")
    output: Path = given.output or (PARTIAL if given.only or given.servers else HERE / "results")
    output.mkdir(parents=True, exist_ok=True)
    results = Results(
        machine.invocation(given.rounds, given.seconds),
        machine.machine(),
        machine.versions(environments.PEERS if given.peers else ()),
    )
    only = given.only or NAMES
    plan = Plan(given.rounds, given.seconds, given.connections)
    works = [work for work in WORKS if work.name in only]
    with tempfile.TemporaryDirectory(prefix="tfserve-bench-") as scratch:
        if works:
            contenders = taking_part(given, results)
            throughput.run(works, contenders, models, Path(scratch), plan, results)
        for name, part in PARTS.items():
            if name in only:
                part(models, Path(scratch) / name, plan, results)
        report.write(results, output)
    print(output / "results.md")


if __name__ == "__main__":
    main()
