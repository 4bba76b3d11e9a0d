"""A pool learns at once that its owner has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jupyter_tfserve.pool.owner import owner_ended


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(params=["told", "polled"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "polled":
        monkeypatch.delattr(os, "pidfd_open", raising=False)


@pytest.mark.usefixtures("how")
async def test_the_end_of_the_owner_is_noticed_even_before_it_is_reaped(
    sleeper: subprocess.Popen[bytes],
) -> None:
    watching = asyncio.create_task(owner_ended(sleeper.pid))
    done, _ = await asyncio.wait({watching}, timeout=0.2)
    assert not done
    os.kill(sleeper.pid, signal.SIGKILL)
    await asyncio.wait_for(watching, 20)


@pytest.mark.usefixtures("how")
async def test_an_owner_that_is_gone_already_is_noticed(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()
    await asyncio.wait_for(owner_ended(sleeper.pid), 20)
