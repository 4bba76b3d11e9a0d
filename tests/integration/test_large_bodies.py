"""What one large request takes of a server's memory, in both of its processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest
from servers import Server, jupyter, standalone

MODEL = "half_plus_three"
SIZE = 9_000_000
"""Numbers of a body, which is some 100 MB."""

CLEAR_REFS = Path("/proc/self/clear_refs")

pytestmark = pytest.mark.skipif(not CLEAR_REFS.exists(), reason="peaks are reset through /proc")


@pytest.fixture(params=["standalone", "jupyter"])
def server(request: pytest.FixtureRequest, tmp_path: Path, model_dir: Path) -> Iterator[Server]:
    """A server of each kind with one model, once it is AVAILABLE."""
    path = model_dir / MODEL
    if request.param == "standalone":
        running = standalone(tmp_path, f"--model_name={MODEL}", f"--model_base_path={path}")
    else:
        flags = f"--PoolManager.model_name={MODEL}", f"--PoolManager.model_base_path={path}"
        running = jupyter(tmp_path, *flags)
    with running as made:
        made.wait_for(MODEL)
        assert made.predict(MODEL, [1.0, 2.0, 5.0])[0] == 200
        yield made


def memory(pid: int, what: str) -> int:
    """A line of the process's status, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))


def test_a_large_request_takes_less_than_two_bodies_of_memory(server: Server) -> None:
    (pool,) = server.pool_pids()
    processes = pool, server.process.pid
    before = {pid: memory(pid, "VmRSS") for pid in processes}
    for shape in [(SIZE,), (SIZE, 1), (SIZE // 1000, 1000)]:
        array = np.random.default_rng(1).random(SIZE, np.float32).reshape(shape)
        body = b'{"instances":%b}' % orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY)
        for pid in processes:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        status, answer = server.ask("POST", f"/v1/models/{MODEL}:predict", body)
        assert status == 200
        taken = [(memory(pid, "VmHWM") - before[pid]) / len(body) for pid in processes]
        assert taken[0] <= 2
        assert taken[1] <= 0.3
        got = np.array(orjson.loads(answer)["predictions"], np.float32)
        assert np.array_equal(got, array / 2 + 3)
