"""What lines of the magic ask of the server."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from jupyter_tfserve.notebook import magics
from jupyter_tfserve.notebook.magics import TFServeMagics
from jupyter_tfserve.notebook.servers import Server

MODEL = {"name": "m", "versions": [{"version": 1, "state": "AVAILABLE"}]}


class FakeClient:
    """Remembers its calls; ``unloaded`` is what became of a model's pool."""

    calls: list[tuple[Any, ...]] = []  # noqa: RUF012 - replaced by each test
    unloaded: dict[str, Any] = {}  # noqa: RUF012
    server = Server("http://localhost:8888/")

    def load(self, *arguments: Any, **options: Any) -> Any:
        self.calls.append((*arguments, options))
        return MODEL

    def unload(self, name: str, *, release: bool) -> Any:
        self.calls.append((name, release))
        return self.unloaded

    def devices(self) -> Any:
        return {"devices": [], "nvml": {"problem": None}}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[FakeClient]:
    monkeypatch.setattr(FakeClient, "calls", [])
    monkeypatch.setattr(magics, "Client", FakeClient)
    return FakeClient


@pytest.fixture
def magic() -> TFServeMagics:
    return TFServeMagics(InteractiveShell.instance())


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("load m /models/m", {}),
        ("load m /models/m --device GPU:1", {"device": "GPU:1"}),
        ("load --device=CPU m /models/m --pool 'a'", {"device": "CPU", "pool": "a"}),
    ],
)
def test_a_load_passes_on_where_to(
    magic: TFServeMagics, client: type[FakeClient], line: str, options: dict[str, str]
) -> None:
    magic.tfserve(line)
    assert client.calls == [("m", "/models/m", options)]


@pytest.mark.parametrize(
    ("line", "told", "text"),
    [
        ("unload m", {}, "□ m is no longer served"),
        (
            "unload m --release",
            {"pool": "gpu0", "released": True, "remaining": []},
            "□ m is no longer served; pool gpu0 has ended",
        ),
        (
            "unload --release m",
            {"pool": "gpu0", "released": False, "remaining": ["a", "b"]},
            "□ m is no longer served; pool gpu0 stays for a, b",
        ),
    ],
)
def test_an_unload_tells_what_became_of_the_pool(
    magic: TFServeMagics,
    client: type[FakeClient],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    told: dict[str, Any],
    text: str,
) -> None:
    monkeypatch.setattr(client, "unloaded", told)
    assert repr(magic.tfserve(line)) == text
    assert client.calls == [("m", "--release" in line)]


def test_devices_are_shown(magic: TFServeMagics, client: type[FakeClient]) -> None:
    assert repr(magic.tfserve("devices")).startswith("0 GPUs and the CPU")


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("load m /models/m --where GPU:0", "load NAME PATH"),
        ("load m /models/m --device", "load NAME PATH"),
        ("load m --device GPU:0", "load NAME PATH"),
        ("unload m --release=yes", "unload NAME"),
        ("unload m --device CPU", "unload NAME"),
        ("devices all", "devices"),
    ],
)
def test_a_line_of_another_form_shows_how_it_goes(
    magic: TFServeMagics, client: type[FakeClient], line: str, usage: str
) -> None:
    with pytest.raises(UsageError, match=f"Usage: %tfserve {usage}"):
        magic.tfserve(line)
    assert client.calls == []
