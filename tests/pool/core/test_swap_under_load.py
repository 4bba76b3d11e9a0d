"""Requests from many threads while versions come and go."""

import sys
import threading

import pytest

from jupyter_tfserve.servable import ModelSpec, ServableId

NUM_THREADS = 8
NUM_SWAPS = 100


@pytest.fixture
def impatient_threads():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("impatient_threads")
def test_no_request_fails_or_meets_an_unloaded_servable(make_core, loaders):
    core, events = make_core()
    failures = []
    stop = threading.Event()
    numbers = [0] * NUM_THREADS

    def request(thread):
        spec = ModelSpec("m")
        last = 0
        try:
            while not stop.is_set():
                with core.handle(spec) as handle:
                    servable = handle.servable
                    assert servable.id == handle.id
                    assert handle.id.version >= last, "latest went back"
                    last = handle.id.version
                    assert not servable.unloaded
                numbers[thread] += 1
        except Exception as error:
            failures.append(error)

    def swap(version):
        core.aspire("m", [(version, loaders(None, ServableId("m", version), ""))])
        events.wait("m", version, "AVAILABLE")

    swap(1)
    threads = [threading.Thread(target=request, args=(n,)) for n in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for version in range(2, NUM_SWAPS + 2):
        swap(version)
        events.wait("m", version - 1, "END")
    stop.set()
    for thread in threads:
        thread.join()

    assert failures == []
    assert min(numbers) > 0
    assert sum(loaders.num_unloads.values()) == NUM_SWAPS
    # Only the bounded tail of ended versions is remembered, and the one that serves.
    states = core.status(ModelSpec("m"))
    assert [state.id.version for state in states] == list(range(NUM_SWAPS + 1, NUM_SWAPS - 20, -1))
