"""The line ``%tfserve record``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError

from jupyter_tfserve.notebook.record_line import parse_record, run_record


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("m", ("m", "start", {})),
        ("m start --version 3 --limit 7", ("m", "start", {"version": 3, "limit": 7})),
        ("m stop", ("m", "stop", {})),
        ("m status", ("m", "status", {})),
        ("m save", ("m", "save", {})),
        (
            "m save --to warm --replace",
            ("m", "save", {"path": str(Path.cwd() / "warm"), "replace": True}),
        ),
    ],
)
def test_a_line_is_read(line: str, parsed: tuple[str, str, dict[str, Any]]) -> None:
    assert parse_record(line.split()) == parsed


@pytest.mark.parametrize(
    "line",
    ["", "m begin", "m start --to x", "m stop --limit 3", "m save --version 1", "m --limit x"],
)
def test_a_line_of_another_form_shows_the_usage(line: str) -> None:
    with pytest.raises(UsageError, match="Usage: %tfserve record NAME"):
        parse_record(line.split())


class Recorded:
    """Stands for a client."""

    def __init__(self, *, recording: bool) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._recording = recording

    def record(self, name: str, action: str, **options: Any) -> dict[str, Any]:
        self.asked.append((name, action, options))
        return {
            "model": name,
            "version": 3,
            "recording": self._recording,
            "recorded": 2,
            "limit": 100,
            "bytes": 60,
            "file": "/m/3/file",
        }


@pytest.mark.parametrize(
    ("line", "recording", "asked", "words"),
    [
        ("m", True, "start", "● recording m version 3: 2 of at most 100 calls."),
        ("m status", True, "state", "● recording m version 3"),
        ("m stop", False, "stop", "□ recorded m version 3: 2 of at most 100 calls."),
        ("m save", False, "save", "□ 2 calls of m version 3 are in /m/3/file;"),
    ],
)
def test_a_line_tells_how_it_stands(line: str, recording: bool, asked: str, words: str) -> None:
    client: Any = Recorded(recording=recording)
    assert run_record(client, line.split()).startswith(words)
    assert client.asked == [("m", asked, {})]
