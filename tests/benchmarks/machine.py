"""On what a run was made: the machine, the versions, the date."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import environments

from jupyter_tfserve._version import __version__

PACKAGES = ("tensorflow", "numpy", "tornado", "jupyter-server", "orjson", "pysimdjson", "httptools")


def machine() -> dict[str, Any]:
    """What the run was made on, as far as the system tells."""
    return {
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "load_average_at_start": os.getloadavg()[0],
    }


def versions(peers: Iterable[str]) -> dict[str, Any]:
    """Of all that takes part."""
    return {
        "jupyter_tfserve": __version__,
        "commit": _output("git", "describe", "--always", "--dirty"),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "wrk": _output("wrk", "-v").partition(" [")[0],
        **({"tensorflow_model_server": _tf_serving()} if _tf_serving() else {}),
        **{peer: environments.installed(peer) for peer in peers},
    }


def invocation(rounds: int, seconds: int) -> dict[str, Any]:
    """How and when the run was made."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "tests/benchmarks", *sys.argv[1:]]),
        "rounds": rounds,
        "seconds": seconds,
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _tf_serving() -> str:
    if shutil.which("tensorflow_model_server") is None:
        return ""
    return _output("tensorflow_model_server", "--version").partition("\n")[0]


def _output(*command: str) -> str:
    # wrk -v ends with 1.
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return done.stdout.strip()
