"""Who holds the memory of which device, as an output of a cell."""

from __future__ import annotations

from html import escape
from typing import Any

from .display import NONE, count, output, size, text_lines

_COLUMNS = ("Device", "Free", "Total", "Held by", "PID", "Memory", "Models")
_RIGHT = {"Free", "Total", "PID", "Memory"}
_MAX_MODELS = 3


class Devices:
    """The devices of the server's machine and who holds them, as an output."""

    def __init__(self, ledger: dict[str, Any]) -> None:
        """``ledger`` is the management API's."""
        self._devices = ledger["devices"]
        self._problem = ledger["nvml"]["problem"] or ""

    def _headline(self) -> str:
        gpus = sum(device["kind"] == "GPU" for device in self._devices)
        return f"{count(gpus, 'GPU')} and the CPU"

    def __repr__(self) -> str:
        headline = f"{self._headline()} · {self._problem}" if self._problem else self._headline()
        rows = [cells for device in self._devices for cells in _rows(device)]
        return "\n".join([headline, *text_lines([_COLUMNS, *rows], _RIGHT)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th{_align(column)}>{column}</th>" for column in _COLUMNS)
        body = "".join(_html_row(cells) for device in self._devices for cells in _rows(device))
        why = f' <span class="dim">· {escape(self._problem)}</span>' if self._problem else ""
        return output(
            f"{self._headline()}{why}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def _rows(device: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each holder; a device that nobody holds has one as well."""
    holders = [_pool(pool) for pool in device["pools"] if pool["pid"] is not None]
    holders += [
        (p["name"] or NONE, str(p["pid"]), size(p["used_bytes"]), NONE) for p in device["processes"]
    ]
    name = f"{device['name']} {device['product']}" if device["product"] else device["name"]
    first = (name, size(device["free_bytes"]), size(device["total_bytes"]))
    later = ("", "", "")
    return [
        (*(later if number else first), *holder)
        for number, holder in enumerate(holders or [(NONE,) * 4])
    ]


def _pool(pool: dict[str, Any]) -> tuple[str, str, str, str]:
    names = sorted({model["name"] for model in pool["models"]})
    models = ", ".join(names[:_MAX_MODELS])
    if len(names) > _MAX_MODELS:
        models += f" and {len(names) - _MAX_MODELS} more"
    limit = pool["memory_limit_mb"]
    used = size(pool["used_bytes"])
    if limit:
        used = f"{used} of {size(limit << 20)}"
    return pool["name"], str(pool["pid"]), used, models or NONE


def _html_row(cells: tuple[str, ...]) -> str:
    row = "".join(
        f"<td{_align(column)}>{escape(text)}</td>"
        for column, text in zip(_COLUMNS, cells, strict=True)
    )
    css = "" if cells[0] else ' class="sub"'
    return f"<tr{css}>{row}</tr>"


def _align(column: str) -> str:
    return ' class="r"' if column in _RIGHT else ""
