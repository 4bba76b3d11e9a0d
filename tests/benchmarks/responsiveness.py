"""What the notebook feels while its server serves models.

A kernel's round trip goes over one open websocket, with TCP_NODELAY on both sides, as long as a
notebook's cell that does nothing: ``pass`` is executed, and its reply awaited. The other probe is a
call of ``/api/status``. The two alternate, from a process that does nothing else.
"""

from __future__ import annotations

import json
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import websocket
from contenders import FAST_LANE, ORDINARY_LANE, jupyter
from load import Client, Target, hammer
from memory import VALUES
from plan import Plan, say
from results import Latency, Results
from works import HALF_PLUS_THREE, WORKS, instances, numbers

KERNEL = "kernel round trip"
STATUS = "/api/status"
IDLE = "idle"
LARGE_BODY = "100 MB bodies pass"
CONNECTIONS = 32
PAUSE_S = 0.005
"""Between two probes, so that they are no load themselves."""
_TIMEOUT_S = 60


def saturated(lane: str) -> str:
    """The condition in which a lane has all the work it can do."""
    return f"{CONNECTIONS} connections predict, {lane}"


def run(models: Path, scratch: Path, plan: Plan, results: Results) -> None:
    """Probe an idle server, one that predicts by each lane, and one that large bodies pass."""
    (scratch / "config").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("jupyter_server_config.py"), scratch / "config")
    base_path = models / HALF_PLUS_THREE.name
    with jupyter(HALF_PLUS_THREE.name, base_path, scratch) as targets:
        fast, ordinary = targets
        assert (fast.name, ordinary.name) == (FAST_LANE, ORDINARY_LANE)
        small, large = WORKS[0].body, instances(numbers(VALUES))

        def load(target: Target, body: bytes | None, connections: int) -> Load:
            return lambda: hammer(target, body, connections, 3600)

        conditions: dict[str, Load] = {
            IDLE: nullcontext,
            saturated(FAST_LANE): load(fast, small, CONNECTIONS),
            saturated(ORDINARY_LANE): load(ordinary, small, CONNECTIONS),
            LARGE_BODY: load(fast, large, 1),
        }
        results.latencies += _probe(fast, conditions, plan)


Load = Callable[[], AbstractContextManager[object]]


def _probe(target: Target, conditions: dict[str, Load], plan: Plan) -> Iterator[Latency]:
    prefix = target.status.partition("/v1/")[0]
    status = Client(Target(STATUS, target.port, "", f"{prefix}{STATUS}", target.headers))
    taken: dict[tuple[str, str], list[float]] = {}
    with _kernel(target, prefix) as round_trip:
        probes: dict[str, Callable[[], float]] = {
            KERNEL: round_trip,
            STATUS: lambda: status.timed(None),
        }
        for number in range(plan.rounds):
            for condition, load in conditions.items():
                say(f"Responsiveness, round {number + 1} of {plan.rounds}: {condition}")
                with load():
                    time.sleep(0.5)
                    end = time.monotonic() + plan.seconds
                    while time.monotonic() < end:
                        for name, probe in probes.items():
                            taken.setdefault((name, condition), []).append(1e3 * probe())
                            time.sleep(PAUSE_S)
    status.close()
    for (name, condition), times in taken.items():
        p50, p99 = np.percentile(times, [50, 99])
        yield Latency(name, condition, len(times), float(p50), float(p99), max(times))


@contextmanager
def _kernel(target: Target, prefix: str) -> Iterator[Callable[[], float]]:
    """A function that lets a real kernel execute nothing and returns how many seconds it took."""
    kernels = Client(Target("kernels", target.port, f"{prefix}/api/kernels", "", target.headers))
    kernel = json.loads(kernels.call(b'{"name": "python3"}', status=201))["id"]
    session = uuid.uuid4().hex
    url = f"ws://127.0.0.1:{target.port}{prefix}/api/kernels/{kernel}/channels"
    connect: Any = websocket.create_connection  # of untyped code
    channel = connect(
        f"{url}?session_id={session}",
        header=[f"{name}: {value}" for name, value in target.headers.items()],
        sockopt=((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),),
        timeout=_TIMEOUT_S,
    )

    def round_trip() -> float:
        message = _execute(session)
        start = time.perf_counter()
        channel.send(json.dumps(message))
        while True:
            reply = json.loads(channel.recv())
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if reply["channel"] == "shell":
                return time.perf_counter() - start

    try:
        round_trip()  # the first waits for the kernel to start
        yield round_trip
    finally:
        channel.close()
        kernels.close()


def _execute(session: str) -> dict[str, Any]:
    """A message that lets a kernel do nothing."""
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "execute_request",
        "session": session,
        "username": "",
        "version": "5.3",
    }
    return {
        "channel": "shell",
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": {"code": "pass", "silent": True, "store_history": False},
        "buffers": [],
    }
