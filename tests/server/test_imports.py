"""What a Jupyter server has to carry for having the extension."""

import json
import subprocess
import sys

FORBIDDEN = (
    "tensorflow",
    "numpy",
    "pandas",
    "google.protobuf",
    "grpc",
    "pynvml",
    "orjson",
    "simdjson",
    "jupyter_tfserve.codec",
    "jupyter_tfserve.pool",
    "jupyter_tfserve.notebook",
    "jupyter_tfserve.http",
)

SERVER = """
import asyncio, json, sys

async def main():
    from jupyter_server.serverapp import ServerApp
    app = ServerApp.instance(open_browser=False, allow_root=True, log_level="ERROR", port=0)
    app.config.ServerApp.jpserver_extensions = {"jupyter_tfserve": len(sys.argv) > 1}
    app.initialize(argv=[], find_extensions=False)
    await app.extension_manager.start_all_extensions()
    children = open("/proc/self/task/%d/children" % __import__("os").getpid()).read().split()
    print(json.dumps({"modules": sorted(sys.modules), "children": children}))
    await app._cleanup()

asyncio.run(main())
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_itself_imports_nothing_heavy() -> None:
    code = "import json, sys, jupyter_tfserve; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(run(code))
    assert "jupyter_tfserve" in modules
    assert not [m for m in modules if m.startswith((*FORBIDDEN, "jupyter_server", "IPython"))]


def test_a_server_with_the_extension_loads_no_tensors_and_starts_no_kernel() -> None:
    # jupyter_client loads orjson where there is one: only what the extension adds counts.
    without = json.loads(run(SERVER).splitlines()[-1])
    seen = json.loads(run(SERVER, "extension").splitlines()[-1])
    added = set(seen["modules"]) - set(without["modules"])
    assert "jupyter_tfserve.server.app" in added
    assert [m for m in sorted(added) if m.startswith(FORBIDDEN)] == []
    assert seen["children"] == []
