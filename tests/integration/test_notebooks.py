"""A notebook on a real server: the magic in a real shell, and the tutorials in real kernels."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from servers import TOKEN, Server, jupyter

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def shell(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("JUPYTER_TFSERVE_URL", server.url)
    monkeypatch.setenv("JUPYTER_TOKEN", TOKEN)
    shell = InteractiveShell.instance()
    shell.run_cell("%load_ext jupyter_tfserve").raise_error()
    yield shell
    InteractiveShell.clear_instance()


def output(shell: InteractiveShell, line: str) -> str:
    """All that a cell with this magic shows."""
    with capture_output() as captured:
        result = shell.run_cell(line).result
    shown = [rich.data["text/plain"] for rich in captured.outputs]
    if result is not None:
        shown.append(repr(result))
    return "\n".join([captured.stdout, captured.stderr, *shown])


def test_the_magic_loads_shows_and_unloads(
    shell: InteractiveShell, model_dir: Path, server: Server
) -> None:
    loaded = output(shell, f"%tfserve load m {model_dir / 'half_plus_three'}")
    assert "● AVAILABLE m version 123" in loaded
    assert f"POST {server.url}v1/models/m:predict" in loaded
    assert server.predict("m", [1.0, 2.0, 5.0]) == (200, {"predictions": [3.5, 4.0, 5.5]})
    assert "● AVAILABLE" in output(shell, "%tfserve status")
    assert "● AVAILABLE" in output(shell, "%tfserve status m")
    again = f"%tfserve load m {model_dir / 'half_plus_three'} --batching"
    for line, mode in ((f"{again} greedy", "greedy"), (f"{again}=off", "off")):
        assert "● AVAILABLE m" in output(shell, line)
        (model,) = json.loads(server.ask("GET", "/tfserve/api/models")[1])["models"]
        assert model["options"] == {"batching": mode}
        assert model["versions"][0]["batching"]["mode"] == mode
    refused = output(shell, "%tfserve load m /nowhere/at/all")
    assert "Could not find base path /nowhere/at/all" in refused
    assert server.predict("m", [1.0, 2.0, 5.0]) == (200, {"predictions": [3.5, 4.0, 5.5]})
    output(shell, "%tfserve unload m")
    assert server.predict("m", [1.0])[0] == 404


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%tfserve load m /nowhere/at/all", ["/nowhere/at/all"]),
        ("%tfserve load m", ["Usage: %tfserve load NAME PATH"]),
        ("%tfserve load m /m --batch greedy", ["Usage: %tfserve load NAME PATH"]),
        ("%tfserve load m /m --batching", ["--batching", "Usage: %tfserve load NAME PATH"]),
        ("%tfserve load m /m --batching much", ["--batching", "much", "greedy"]),
        ("%tfserve unload nobody", ["nobody"]),
        ("%tfserve status nobody", ["nobody"]),
        ("%tfserve frobnicate", ["no subcommand 'frobnicate'", "load", "status"]),
        ('%tfserve load "m', ["quotation"]),
    ],
)
def test_bad_input_is_answered_in_a_line_or_two(
    shell: InteractiveShell, line: str, words: list[str]
) -> None:
    shown = output(shell, line)
    for word in words:
        assert word in shown
    assert "Traceback" not in shown


def test_without_a_server_the_magic_says_how_to_get_one(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JUPYTER_TFSERVE_URL")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert "Start one with: jupyter lab" in output(shell, "%tfserve status")


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_tutorial_runs_from_its_first_cell_to_its_last(
    path: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel finds the server as a user's does, by its file in the runtime directory.
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(server.folder / "runtime"))
    copy = Path(shutil.copy(path, tmp_path))
    notebook = nbformat.read(copy, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": tmp_path}}).execute()
    kept = nbformat.read(path, as_version=4)
    for ran, before in zip(notebook.cells, kept.cells, strict=True):
        assert bool(_shown(ran)) == bool(_shown(before)), before.source


def _shown(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """A cell's outputs without what libraries say on the side."""
    return [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]


def test_the_quickstart_learns_a_line_and_serves_it() -> None:
    kept = nbformat.read(NOTEBOOKS / "01-quickstart.ipynb", as_version=4)
    shown = str([cell.outputs for cell in kept.cells if cell.cell_type == "code"])
    assert "● AVAILABLE line version 1" in shown
    assert "predictions" in shown
