"""Fixtures for all tests: the models that they serve."""

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

MODELS = Path(__file__).parent / "models"


@pytest.fixture(scope="session")
def model_dir(pytestconfig: pytest.Config) -> Path:
    """The folder of the tests' models, ``NAME/VERSION`` each; never written to by a test.

    They are made in a process of their own, so that this one stays without TensorFlow, and kept in
    pytest's cache for as long as their sources and TensorFlow are the same.
    """
    digest = hashlib.sha256(version("tensorflow").encode())
    for source in sorted(MODELS.glob("*.py")):
        digest.update(source.read_bytes())
    cache = pytestconfig.cache
    assert cache is not None
    folder = cache.mkdir("tfserve-models") / digest.hexdigest()[:16]
    if not folder.exists():
        _make(folder)
    return folder


def _make(folder: Path) -> None:
    """Make all models; another pytest may be at it too, and the first to finish wins."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "models"
        command = [sys.executable, os.fspath(MODELS), os.fspath(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        try:
            made.rename(folder)
        except OSError:
            assert folder.exists()
