"""What happens to pools, and to those who call them, when processes end.

Real servers, real kernels, a real model. Every test ends by looking for what is left over.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import Server, jupyter, standalone, until

from jupyter_tfserve.announcement import is_alive

MODEL = "half_plus_three"
REASONS = "ended|is gone|is being restarted: it was ended by SIGKILL|.*is loading"
ANSWER = (200, {"predictions": [3.5, 4.0, 5.5]})


@pytest.fixture(params=["standalone", "jupyter"])
def server(request: pytest.FixtureRequest, tmp_path: Path, model_dir: Path) -> Iterator[Server]:
    """A server of each kind with one model, once it is AVAILABLE."""
    if request.param == "standalone":
        flags = (f"--model_name={MODEL}", f"--model_base_path={model_dir / MODEL}")
        running = standalone(tmp_path, *flags)
    else:
        flags = (
            f"--PoolManager.model_name={MODEL}",
            f"--PoolManager.model_base_path={model_dir / MODEL}",
        )
        running = jupyter(tmp_path, *flags)
    with running as made:
        made.wait_for(MODEL)
        assert made.predict(MODEL, [1.0, 2.0, 5.0]) == ANSWER
        yield made


def test_a_server_that_is_closed_takes_its_pool_along_and_leaves_nothing(server: Server) -> None:
    (pool,) = server.pool_pids()
    assert server.terminate() == 0
    assert not is_alive(pool)
    assert server.leftovers() == []


def test_the_pool_of_a_server_that_crashed_ends_by_itself_and_leaves_nothing(
    server: Server,
) -> None:
    (pool,) = server.pool_pids()
    server.kill()
    until(lambda: not is_alive(pool), "the pool ends")
    assert server.leftovers() == []


def test_a_pool_that_was_killed_is_replaced_and_serves_what_it_served(server: Server) -> None:
    (pool,) = server.pool_pids()
    os.kill(pool, signal.SIGKILL)
    seen = set()

    def back() -> bool:
        try:
            status, answer = server.predict(MODEL, [1.0, 2.0, 5.0])
        except OSError:  # only a request inside the killed process may end like this
            return False
        seen.add(status)
        if status == 503:
            assert re.search(f"model pool ({REASONS})", answer["error"])
        else:
            assert (status, answer) == ANSWER
        return status == 200 and server.pool_pids() != [pool]

    until(back, "the model answers again")
    assert seen <= {200, 503}
    assert 503 in seen
    assert not is_alive(pool)
    assert server.terminate() == 0
    assert server.leftovers() == []


def test_a_pool_that_cannot_be_replaced_at_once_ends_with_its_server(server: Server) -> None:
    (pool,) = server.pool_pids()
    os.kill(pool, signal.SIGKILL)
    until(lambda: server.predict(MODEL, [1.0])[0] == 503, "the death is noticed")
    assert server.terminate() == 0
    assert server.leftovers() == []


def test_two_crashes_at_once_are_cleared_up_by_the_next_server(
    server: Server, tmp_path: Path
) -> None:
    (pool,) = server.pool_pids()
    os.kill(pool, signal.SIGSTOP)  # so that it cannot clear up after its server
    server.kill()
    os.kill(pool, signal.SIGKILL)
    until(lambda: not is_alive(pool), "the pool is dead")
    assert server.leftovers() != []
    with jupyter(tmp_path) as following:
        until(lambda: following.leftovers() == [], "the dead are cleared away")


def test_reading_starts_nothing(tmp_path: Path) -> None:
    with jupyter(tmp_path) as server:
        assert server.ask("GET", "/v1/models/nobody")[0] == 404
        assert server.ask("GET", "/v1/models/nobody/metadata")[0] == 404
        assert server.ask("GET", "/tfserve/api/models") == (200, b'{"models": []}')
        pools = json.loads(server.ask("GET", "/tfserve/api/pools")[1])["pools"]
        assert [pool["phase"] for pool in pools] == ["stopped"]
        status, body = server.ask("POST", "/v1/models/nobody:predict", {"instances": [1.0]})
        assert status == 404
        assert b"Servable not found for request: Latest(nobody)" in body
        assert server.leftovers() == []


def test_a_killed_pool_ends_no_notebook(tmp_path: Path, model_dir: Path) -> None:
    with jupyter(tmp_path) as server:
        status, kernel = server.ask("POST", "/api/kernels", {})
        assert status == 201
        body = {"name": "m", "base_path": str(model_dir / MODEL)}
        assert server.ask("POST", "/tfserve/api/models", body)[0] == 201
        assert server.predict("m", [1.0, 2.0, 5.0]) == ANSWER
        (pool,) = server.pool_pids()
        os.kill(pool, signal.SIGKILL)
        until(lambda: server.pool_pids() not in ([], [pool]), "a new pool is announced")
        server.wait_for("m")
        kernels = json.loads(server.ask("GET", "/api/kernels")[1])
        assert [k["id"] for k in kernels] == [json.loads(kernel)["id"]]
        assert kernels[0]["execution_state"] != "dead"
