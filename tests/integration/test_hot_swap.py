"""One version takes over from another while the model is called; real servers, real models."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from numbered import Callers, Numbered
from servers import Server, jupyter, standalone, until

SWAPS = 50
CONNECTIONS = 32
MIB = 1 << 20


@pytest.fixture
def model(model_dir: Path, tmp_path: Path) -> Numbered:
    return Numbered(model_dir / "numbered" / "1", tmp_path / "models" / "m")


@contextmanager
def serving(kind: str, folder: Path, base: Path, *flags: str) -> Iterator[Server]:
    """A server with the model ``m``, once it answers; it looks for versions all the time."""
    flags = (
        "model_name=m",
        f"model_base_path={base}",
        "file_system_poll_wait_seconds=0.02",
        *flags,
    )
    if kind == "standalone":
        running = standalone(folder, *(f"--{flag}" for flag in flags))
    else:
        running = jupyter(folder, *(f"--PoolManager.{flag}" for flag in flags))
    with running as server:
        server.wait_for("m")
        yield server
        server.must_run()


def states(server: Server) -> dict[int, str]:
    """The state of every version that is listed."""
    status, body = server.ask("GET", "/v1/models/m")
    assert status == 200
    told = json.loads(body)["model_version_status"]
    return {int(version["version"]): version["state"] for version in told}


def resident_bytes(server: Server) -> int:
    """Memory of the pool's process."""
    (pid,) = server.pool_pids()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def swap(server: Server, model: Numbered, callers: Callers, version: int) -> tuple[float, float]:
    """Replace the version before by this one, which has answered on return.

    Tells when the new one was seen to be available, and when the old one was seen to have ended.
    """
    model.add(version)
    until(lambda: states(server).get(version) == "AVAILABLE", f"version {version} is AVAILABLE")
    available = time.monotonic()
    model.remove(version - 1)
    until(lambda: states(server)[version - 1] == "END", f"version {version - 1} ends")
    ended = time.monotonic()
    until(lambda: version in callers.versions, f"version {version} answers")
    return available, ended


@pytest.mark.parametrize("kind", ["standalone", "jupyter"])
def test_fifty_swaps_under_load_fail_no_call_and_leave_memory_as_it_is(
    kind: str, tmp_path: Path, model: Numbered
) -> None:
    model.add(1)
    available: dict[int, float] = {}
    ended: dict[int, float] = {}
    memory: dict[int, int] = {}
    with serving(kind, tmp_path, model.base) as server:
        callers = Callers(server, "m", CONNECTIONS)
        with callers.calling():
            for version in range(2, SWAPS + 2):
                available[version], ended[version - 1] = swap(server, model, callers, version)
                memory[version - 1] = resident_bytes(server)
    assert callers.failures == []
    assert {(call.status, call.error) for call in callers.calls} == {(200, "")}
    assert {call.version for call in callers.calls} == set(range(1, SWAPS + 2))
    for call in callers.calls:
        # No version answers once it is known to have ended, and none below the newest that was
        # known to be available when the call was sent.
        assert call.start <= ended.get(call.version, call.start)
        assert call.start <= available.get(call.version + 1, call.start)
    # The graph of a version that is not freed takes more than a MiB.
    assert memory[SWAPS] - memory[10] < 20 * MIB


@pytest.mark.parametrize("kind", ["standalone", "jupyter"])
def test_a_resource_preserving_swap_has_a_gap_that_is_answered_with_404(
    kind: str, tmp_path: Path, model: Numbered
) -> None:
    model.add(1)
    with serving(kind, tmp_path, model.base, "resource_preserving=true") as server:
        callers = Callers(server, "m", 8)
        with callers.calling():
            for version in range(2, 12):
                swap(server, model, callers, version)
    assert callers.failures == []
    refusals = {call.error for call in callers.calls if call.status != 200}
    assert refusals == {"Servable not found for request: Latest(m)"}
    assert {call.status for call in callers.calls} == {200, 404}
    assert callers.versions == set(range(1, 12))
