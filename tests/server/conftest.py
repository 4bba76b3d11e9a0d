"""A Jupyter server with the extension, whose managed pools are fake ones."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfserve.server import nvml
from jupyter_tfserve.server.pool_manager import PoolManager

sys.path.insert(0, str(Path(__file__).parent))

from fake_gpus import FakeGpus
from fake_pool import FakePool, Pools
from jupyter_door import Server, running_server


@pytest.fixture(autouse=True)
def jupyter_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of Jupyter's that are this test's own; returns the runtime folder."""
    for name in ("config", "data", "runtime"):
        monkeypatch.setenv(f"JUPYTER_{name.upper()}_DIR", str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_NO_CONFIG", "1")
    return tmp_path / "runtime"


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Pools:
    pools = Pools()
    monkeypatch.setattr(
        PoolManager, "_new_host", lambda _self, spec, pool_id: pools.new_host(pool_id, spec)
    )
    return pools


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    """What NVML tells: no GPU at first. The server's environment hides none."""
    fake = FakeGpus()
    monkeypatch.setattr(nvml, "read", fake.read)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


@pytest.fixture
def jupyter_config() -> dict[str, dict[str, Any]]:
    """Traits of the server, by class; to be overridden with ``parametrize``."""
    return {}


@pytest.fixture
async def server(pools: Pools, jupyter_config: dict[str, dict[str, Any]]) -> AsyncIterator[Server]:
    """A running Jupyter server; its managed pool has not been started."""
    async with running_server(jupyter_config) as server:
        yield server


@pytest.fixture
async def fake_pool(jupyter_dirs: Path) -> AsyncIterator[FakePool]:
    """A started fake pool that no server knows."""
    pool = FakePool()
    await pool.start()
    yield pool
    await pool.stop()
