"""The built extension, and how an install enables both of its halves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_tfserve import __version__

ROOT = Path(__file__).parents[2]


def test_the_version_of_the_npm_package_is_that_of_the_python_package() -> None:
    manifest = json.loads((ROOT / "labextension" / "package.json").read_text())
    assert manifest["version"] == __version__


@pytest.mark.parametrize("kind", ["server extension", "labextension"])
def test_the_install_enables_the_extension(kind: str) -> None:
    command = [sys.executable, "-m", "jupyter", *kind.split(), "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "tfserve" in line]
    listed = " ".join(lines)
    assert "enabled" in listed
    assert "OK" in listed
    assert __version__ in listed
