"""A run as a page of tables, beside its numbers, plots and profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import frames
import plots
from contenders import BARE
from targets import targets
from throughput import NAIVE
from works import WORKS

if TYPE_CHECKING:
    from results import Results

NOTHING = "–"


def write(results: Results, folder: Path) -> None:
    """Write ``results.json``, ``results.md``, the plots and the profiles."""
    for old in folder.glob("profile-*.txt"):
        old.unlink()
    for name, text in results.profiles.items():
        (folder / f"{name}.txt").write_text(text)
    pictures = plots.draw(results, folder)
    results.save(folder / "results.json")
    (folder / "results.md").write_text("\n".join(_page(results, pictures)) + "\n")


def _page(results: Results, pictures: Iterable[Path]) -> Iterator[str]:
    yield "# Results"
    yield from _facts(results)
    for picture in pictures:
        yield f"\n![{picture.stem}]({picture.name})"
    yield from _section("Targets", _targets(results))
    for work in WORKS:
        yield from _section(work.title, _loads(results, work.name))
        yield from _section(work.title, _round_trips(results, work.name, NAIVE))
    yield from _section(frames.TITLE, _round_trips(results, frames.NAME, frames.BY_HAND))
    yield from _section("Memory added at the peak of one large request", _memory(results))
    yield from _section("What the notebook feels", _latencies(results))
    if results.profiles:
        yield "\n## Profiles\n"
        for name, text in results.profiles.items():
            yield f"- [{text.partition(chr(10))[0]}]({name}.txt)"
    if results.skipped:
        yield "\n## Skipped\n"
        for what, why in results.skipped.items():
            yield f"- {what}: {' '.join(why.split())}"


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"\n## {title}\n"
        yield from lines


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _facts(results: Results) -> Iterator[str]:
    run, machine = results.run, results.machine
    yield f"\n{run['date']}, by `{run['command']}`: medians of {run['rounds']} rounds."
    yield f"\n{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_gib']} GiB,"
    yield f"{machine['system']}. The load ran on the same CPUs; load average at the start"
    yield f"{machine['load_average_at_start']:.1f}.\n"
    yield ", ".join(_versions(results)) + "."


def _versions(results: Results) -> Iterator[str]:
    for name, version in results.versions.items():
        if isinstance(version, dict):
            pins = ", ".join(f"{package} {number}" for package, number in version.items())
            yield f"{name} ({pins})"
        else:
            yield f"{name} {version}"


def _targets(results: Results) -> list[str]:
    """Only those that the run measured: a partial run is not a page of dashes."""
    answers = {True: "yes", False: "**no**"}
    rows = []
    for target in targets(results):
        if target.reached is None or target.met is None:
            continue
        sign = "≤" if target.at_most else "≥"
        wanted, reached = f"{target.wanted:g}{target.unit}", f"{target.reached:.2f}{target.unit}"
        against = target.against or NOTHING
        rows.append([target.what, against, f"{sign} {wanted}", reached, answers[target.met]])
    return _table(["what", "against", "wanted", "reached", "met"], rows)


def _loads(results: Results, work: str) -> list[str]:
    """A row for each contender; in each cell requests/s, as a multiple of bare Tornado, p50/p99."""
    loads = [load for load in results.loads if load.work == work]
    connections = sorted({load.connections for load in loads})
    rows = []
    for contender in dict.fromkeys(load.contender for load in loads):
        row = [contender]
        for number in connections:
            load = results.load(work, contender, number)
            ratio = results.speed_up(work, contender, BARE, number)
            if load is None:
                row.append(NOTHING)
                continue
            cell = f"{median(load.requests_per_s):,.0f}/s"
            cell += f" · {ratio:.2f}×" if ratio is not None else ""
            cell += f" · {median(load.p50_ms):.2f} / {median(load.p99_ms):.2f} ms"
            row.append(cell + (f" · {load.failed} failed" if load.failed else ""))
        rows.append(row)
    head = ["requests/s · × bare Tornado · p50 / p99"]
    return _table([*head, *(f"{number} conn." for number in connections)], rows)


def _round_trips(results: Results, work: str, other: str) -> list[str]:
    rows = []
    for trip in results.round_trips:
        if trip.work == work:
            ratio = results.faster(work, trip.contender, other)
            rows.append([trip.contender, f"{median(trip.ms):,.0f} ms", f"{ratio:.2g}×"])
    return _table(["one at a time", "round trip", f"faster than {other}"], rows)


def _memory(results: Results) -> list[str]:
    rows = [
        [
            f"{memory.contender}: {memory.process}",
            f"{memory.body_bytes / 1e6:.0f} MB",
            f"{memory.answer_bytes / 1e6:.0f} MB",
            f"{memory.added_bytes / 1e6:.0f} MB",
            f"{memory.ratio:.2f}×",
        ]
        for memory in results.memory
    ]
    return _table(["process", "body", "answer", "added", "of the body"], rows)


def _latencies(results: Results) -> list[str]:
    rows = [
        [
            f"{latency.probe}: {latency.condition}",
            *(f"{ms:.2f} ms" for ms in (latency.p50_ms, latency.p99_ms, latency.longest_ms)),
            f"{latency.count}",
        ]
        for latency in sorted(results.latencies, key=lambda latency: latency.probe)
    ]
    return _table(["probe", "p50", "p99", "longest", "times"], rows)
