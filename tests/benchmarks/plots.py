"""The pictures of a run: how many times bare Tornado each contender did, and large requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from contenders import BARE, OURS
from throughput import NAIVE
from works import WORKS

if TYPE_CHECKING:
    from results import Results

CONNECTIONS = 32
"""The number of connections that is shown, or the largest below it that was measured."""

PROJECT = "jupyter_tfserve"
_COLOURS = {"ours": "#f37726", "yardstick": "#9e9e9e", "others": "#5c7f9c"}


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what was measured; returns the files, none where matplotlib is not installed."""
    try:
        import matplotlib as mpl
        from matplotlib import pyplot as plt
    except ImportError:
        results.skipped["plots"] = "`matplotlib` is not installed: `pip install '.[bench]'`"
        return []
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": PROJECT, "font.size": 9, "figure.facecolor": "white"})
    measured = [load.connections for load in results.loads]
    connections = max((n for n in measured if n <= CONNECTIONS), default=min(measured, default=0))
    ratios = {
        work.title: bars for work in WORKS if (bars := _ratios(results, work.name, connections))
    }
    trips = {
        work.title: bars for work in WORKS if work.is_large and (bars := _trips(results, work.name))
    }
    files = []
    for name, title, panels in (
        (
            "throughput",
            f"Requests per second with {connections} connections, as a multiple of bare Tornado, "
            "which computes nothing",
            ratios,
        ),
        (
            "large",
            "One request of a million floats: how many times faster than Python's json and NumPy "
            "read and write it",
            trips,
        ),
    ):
        if panels:
            figure = _figure(plt, title, panels)
            files.append(folder / f"{name}.svg")
            figure.savefig(files[-1], metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)
    return files


def _ratios(results: Results, work: str, connections: int) -> dict[str, float]:
    bars = {}
    for load in results.loads:
        if load.work == work and load.connections == connections:
            ratio = results.speed_up(work, load.contender, BARE, connections)
            if ratio is not None:
                bars[load.contender] = ratio
    return bars


def _trips(results: Results, work: str) -> dict[str, float]:
    return {
        trip.contender: ratio
        for trip in results.round_trips
        if trip.work == work and (ratio := results.faster(work, trip.contender, NAIVE))
    }


def _figure(pyplot: Any, title: str, panels: dict[str, dict[str, float]]) -> Any:
    """A panel of horizontal bars for each work, the same contender at the same height."""
    contenders = list(dict.fromkeys(name for bars in panels.values() for name in bars))
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(3.2 + 3.0 * columns, (1.0 + 0.27 * len(contenders)) * rows + 0.5),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    figure.suptitle(title)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (work, bars) in zip(axes.flat, panels.items(), strict=False):
        heights = [contenders.index(name) for name in bars]
        drawn = axis.barh(heights, bars.values(), color=[_colour(name) for name in bars])
        axis.bar_label(drawn, [_ratio(value) for value in bars.values()], padding=3)
        axis.set_title(work, fontsize=10)
        axis.set_yticks(range(len(contenders)), [_label(name) for name in contenders])
        axis.margins(x=0.2)
        axis.xaxis.set_visible(False)
        axis.spines[["top", "right", "bottom"]].set_visible(False)
    axes.flat[0].invert_yaxis()  # the axes share it
    return figure


def _ratio(value: float) -> str:
    return f"{value:.1f}×" if value >= 0.95 else f"{value:.1g}×"


def _label(contender: str) -> str:
    return f"{PROJECT} ({contender})" if contender in OURS else contender.replace("`", "")


def _colour(contender: str) -> str:
    if contender in OURS:
        return _COLOURS["ours"]
    return _COLOURS["yardstick" if contender in (BARE, NAIVE) else "others"]
