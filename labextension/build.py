"""The build of the JupyterLab extension, as hatch-jupyter-builder calls it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from hatch_jupyter_builder import npm_builder

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "jupyter_tfserve"
# Written last by the bundler.
BUILT = PACKAGE / "labextension" / "package.json"
# Of the bundler, by its package's "engines".
OLDEST_NODE = 20


def build(target_name: str, version: str) -> None:
    """Build ``jupyter_tfserve/labextension`` where it is missing or older than its sources.

    An sdist holds the built files, with the same time as the sources: nothing is left to do, and
    Node.js is not needed.

    Args:
        target_name: ``wheel`` or ``sdist``.
        version: ``standard`` or ``editable``.

    Raises:
        SystemExit: Node.js is needed, and missing or too old.
    """
    if _up_to_date():
        return
    _require_node()
    _take_version()
    npm_builder(target_name, version, path=str(HERE), build_cmd="build:prod", npm=["jlpm"])


def _require_node() -> None:
    node = shutil.which("node")
    found = "there is no `node` on the PATH"
    if node is not None:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        found = f"`node` is {answer.stdout.strip()}"
        if int(answer.stdout.removeprefix("v").split(".")[0]) >= OLDEST_NODE:
            return
    raise SystemExit(
        "jupyter_tfserve: building the JupyterLab extension from source needs Node.js "
        f"{OLDEST_NODE} or newer, but {found}. Install Node.js, or a built wheel of this package."
    )


def _up_to_date() -> bool:
    if not BUILT.exists():
        return False
    sources = [
        *HERE.glob("src/**/*.ts"),
        *HERE.glob("style/*.css"),
        HERE / "package.json",
        HERE / "yarn.lock",
        HERE / "tsconfig.json",
        PACKAGE / "_version.py",
    ]
    return max(path.stat().st_mtime for path in sources) <= BUILT.stat().st_mtime


def _take_version() -> None:
    """Bring the version of the Python package, which is the one that people set, into npm's."""
    match = re.search(r'__version__ = "(.+)"', (PACKAGE / "_version.py").read_text())
    assert match is not None
    manifest = HERE / "package.json"
    text = manifest.read_text()
    if json.loads(text)["version"] != match[1]:
        manifest.write_text(re.sub(r'("version": )".*?"', rf'\1"{match[1]}"', text, count=1))
