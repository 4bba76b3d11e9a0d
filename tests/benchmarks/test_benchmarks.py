"""The benchmarks run: one work, one second, the standalone door. No figure is asserted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk drives the benchmarks")
def test_one_work_is_measured_and_reported(model_dir: Path, tmp_path: Path) -> None:
    output = tmp_path / "results"
    command = [
        *(sys.executable, str(BENCHMARKS), "--rounds=1", "--seconds=1", "--connections=2"),
        *("--only=half_plus_three,million_flat", "--servers=standalone"),
        *(f"--models={model_dir}", f"--output={output}"),
    ]
    path = os.pathsep.join([str(BENCHMARKS.parent / "support"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads((output / "results.json").read_text())
    assert {load["contender"] for load in results["loads"]} == {"bare Tornado", "standalone"}
    assert all(load["failed"] == 0 for load in results["loads"])
    assert {trip["contender"] for trip in results["round_trips"]} > {"standalone"}
    page = (output / "results.md").read_text()
    assert "\n## half_plus_three, 3 values\n" in page
    assert "\n## 10⁶ floats, flat\n" in page
