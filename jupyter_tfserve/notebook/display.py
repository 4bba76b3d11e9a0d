"""How what is served looks in a cell: plain text in a terminal, a table in a notebook.

Outputs are text that happens to be HTML: they read well with every style removed, as an untrusted
notebook or a code host shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from ..routes import model_path

NOTHING_SERVED = "Nothing is served. %tfserve load NAME PATH"
_GLYPHS = {"START": "○", "LOADING": "◔", "AVAILABLE": "●", "UNLOADING": "◒", "END": "□"}
_COLUMNS = ("Model", "Version", "State", "Labels", "Pool", "Device", "Memory", "Requests")
_RIGHT = {"Version", "Memory", "Requests"}
NONE = "–"
"""In the place of what is not known."""
_MAX_ENDED = 3
_KIB = 1024


@dataclass(frozen=True, slots=True)
class _Row:
    """One version; ``cells`` are for :data:`_COLUMNS`."""

    state: str
    failed: bool
    cells: tuple[str, ...]
    labels: tuple[str, ...]
    reason: str
    first: bool


class Status:
    """What is served, as an output."""

    def __init__(self, models: list[dict[str, Any]], url: str) -> None:
        """``models`` is the management API's list, ``url`` the server's."""
        self._models = models
        self._url = url

    def _headline(self) -> str:
        number = len(self._models)
        pools = len({(model.get("owner") or {}).get("pool") for model in self._models})
        return f"{count(number, 'model')} in {count(pools, 'pool')}"

    def _where(self) -> str:
        path = model_path(self._models[0]["name"]) if len(self._models) == 1 else "/v1/models/NAME"
        return f"{self._url.rstrip('/')}{path}"

    def __repr__(self) -> str:
        if not self._models:
            return NOTHING_SERVED
        rows = _rows(self._models)
        head, *texts = text_lines([_COLUMNS, *(row.cells for row in rows)], _RIGHT)
        lines = [f"{self._headline()} · {self._where()}", head]
        for row, text in zip(rows, texts, strict=True):
            lines.append(text)
            if row.reason:
                lines.append(f"  {row.reason}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self._models:
            return output(f"Nothing is served. <code>{escape('%tfserve load NAME PATH')}</code>")
        head = "".join(f"<th{_align(column)}>{column}</th>" for column in _COLUMNS)
        body = "".join(map(_html_row, _rows(self._models)))
        return output(
            f'{self._headline()} <span class="dim">· {escape(self._where())}</span>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class Loaded:
    """A model that has just become AVAILABLE, and where it answers."""

    def __init__(self, model: dict[str, Any], url: str, seconds: float) -> None:
        """``model`` is the management API's, ``url`` the server's."""
        self._name = model["name"]
        self._versions = [
            version["version"] for version in model["versions"] if version["state"] == "AVAILABLE"
        ]
        self._labels = sorted(model.get("labels") or {})
        self._url = f"{url.rstrip('/')}{model_path(self._name)}:predict"
        self._seconds = seconds

    def _words(self) -> str:
        plural = "s" if len(self._versions) > 1 else ""
        words = f"{self._name} version{plural} {', '.join(map(str, self._versions))}"
        return f"{words}, {_count_word(self._labels, 'label')}" if self._labels else words

    def __repr__(self) -> str:
        return f"● AVAILABLE {self._words()} · {self._seconds:.1f} s\nPOST {self._url}"

    def _repr_html_(self) -> str:
        return output(
            f'<span class="AVAILABLE">● <span class="state">AVAILABLE</span></span> '
            f'{escape(self._words())} <span class="dim">· {self._seconds:.1f} s</span><br>'
            f"<code>POST {escape(self._url)}</code>"
        )


class Labelled:
    """A label that stands for a version now, or for none any more."""

    def __init__(self, name: str, label: str, version: int | None, url: str) -> None:
        """``version`` is None for a label that was removed, ``url`` the server's."""
        self._name = name
        self._label = label
        self._version = version
        self._url = f"{url.rstrip('/')}{model_path(name, label=label)}:predict"

    def __repr__(self) -> str:
        if self._version is None:
            return f"□ {self._label} is no label of {self._name} any more"
        words = f"● {self._label} is version {self._version} of {self._name}"
        return f"{words}\nPOST {self._url}"

    def _repr_html_(self) -> str:
        label = f'<span class="label">{escape(self._label)}</span>'
        if self._version is None:
            return output(f"□ {label} is no label of {escape(self._name)} any more")
        return output(
            f'<span class="AVAILABLE">●</span> {label} is version {self._version} of '
            f"{escape(self._name)}<br><code>POST {escape(self._url)}</code>"
        )


def _rows(models: list[dict[str, Any]]) -> list[_Row]:
    return [row for model in sorted(models, key=lambda m: m["name"]) for row in _model_rows(model)]


def _model_rows(model: dict[str, Any]) -> list[_Row]:
    owner = model.get("owner") or {}
    pool = owner.get("notebook") or owner.get("name") or owner.get("kind") or NONE
    ended = [v for v in model["versions"] if v["state"] == "END"]
    shown = [v for v in model["versions"] if v["state"] != "END"] + ended[:_MAX_ENDED]
    labels = model.get("labels") or {}
    rows: list[_Row] = []
    for version in shown or [{"version": NONE, "state": "START", "error": model.get("problem")}]:
        state, reason = version["state"], version.get("error") or ""
        failed = state == "END" and bool(reason)
        its_labels = tuple(sorted(k for k, v in labels.items() if v == version["version"]))
        first = not rows
        cells = (
            model["name"] if first else "",
            str(version["version"]),
            f"{'▲' if failed else _GLYPHS[state]} {state}{', error' if failed else ''}",
            ", ".join(its_labels),
            pool if first else "",
            version.get("device") or NONE,
            _memory(version.get("memory")),
            NONE if state == "END" else f"{version.get('requests', 0):,}",
        )
        rows.append(_Row(state, failed, cells, its_labels, reason, first))
    return rows


def _html_row(row: _Row) -> str:
    cells = []
    for column, text in zip(_COLUMNS, row.cells, strict=True):
        content = escape(text)
        if column == "State":
            glyph, _, word = content.partition(" ")
            css = "error" if row.failed else row.state
            content = f'<span class="{css}">{glyph} <span class="state">{word}</span></span>'
        elif column == "Labels":
            content = "".join(f'<span class="label">{escape(name)}</span>' for name in row.labels)
        cells.append(f"<td{_align(column)}>{content}</td>")
    css = "" if row.first else ' class="sub"'
    html = f"<tr{css}>{''.join(cells)}</tr>"
    if row.reason:
        rest = len(_COLUMNS) - 2
        html += (
            f'<tr class="sub"><td></td><td></td>'
            f'<td class="why" colspan="{rest}">{escape(row.reason)}</td></tr>'
        )
    return html


def _align(column: str) -> str:
    return ' class="r"' if column in _RIGHT else ""


def text_lines(table: Sequence[Sequence[str]], right: Collection[str]) -> list[str]:
    """The rows of a table as text; the first names the columns, of which some are flush right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(table[0], row, widths, strict=True)
        ).rstrip()
        for row in table
    ]


def size(number: int | None) -> str:
    """A size in binary units with three significant digits, such as ``34.1 KiB``."""
    if number is None:
        return NONE
    left, units = float(number), iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while left >= _KIB:
        left, unit = left / _KIB, next(units)
    return f"{left:.3g} {unit}" if left < 1000 else f"{left:.0f} {unit}"


def _memory(memory: dict[str, Any] | None) -> str:
    return size(None if memory is None else memory["host"] + memory["device"])


def count(number: int, noun: str) -> str:
    """Such as ``2 models``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _count_word(names: list[str], noun: str) -> str:
    return f"{noun if len(names) == 1 else noun + 's'} {', '.join(names)}"


@cache
def _style() -> str:
    return files(__package__).joinpath("output.css").read_text("utf-8")


def output(html: str) -> str:
    """What a notebook shows: the markup with its styles."""
    return f'<style>{_style()}</style><div class="jp-tfserve-Out">{html}</div>'
