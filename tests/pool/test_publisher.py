"""Versions of published models: how they are numbered, replaced and withdrawn."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.options import BatchingOptions
from jupyter_tfserve.pool.batching.service import Batching
from jupyter_tfserve.pool.core.server_core import CoreOptions, ServerCore
from jupyter_tfserve.pool.publisher import Publisher
from jupyter_tfserve.pool.servables.base import Servable
from jupyter_tfserve.servable import ModelSpec, SignatureInfo, TensorInfo
from jupyter_tfserve.state import ManagerState, ServableState

M = ModelSpec("m")
ROWS = TensorInfo("float", (-1,))


class Model(Servable):
    """A servable that only tells whether it was closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def call(self, signature, inputs, outputs=None):
        raise NotImplementedError

    def debug_text(self, signature: str) -> str:
        raise NotImplementedError

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def core() -> Iterator[ServerCore[Servable]]:
    def on_disk(*_: object) -> None:
        raise AssertionError("nothing is on disk")

    with ServerCore(on_disk, CoreOptions(file_system_poll_wait_seconds=-1)) as core:
        yield core


@pytest.fixture
def publisher(core: ServerCore[Servable]) -> Publisher:
    return Publisher(core, Batching(BatchingOptions()))


def serving(core: ServerCore[Servable]) -> Servable:
    with core.handle(M) as handle:
        return handle.servable


def test_versions_count_up_and_the_new_one_is_there_before_the_old_one_goes(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    told: list[ServableState] = []
    core.bus.subscribe(told.append)
    first, second = Model(), Model()
    assert publisher.publish("m", first) == 1
    assert serving(core) is first
    assert publisher.publish("m", second) == 2
    assert serving(core) is second
    assert first.closed.wait(10)
    assert not second.closed.is_set()
    order = [(state.id.version, state.state) for state in told]
    available, leaving = (2, ManagerState.AVAILABLE), (1, ManagerState.UNLOADING)
    assert order.index(available) < order.index(leaving)


def test_a_number_is_used_once(publisher: Publisher) -> None:
    assert publisher.publish("m", Model(), 5) == 5
    with pytest.raises(ServingError, match="published before; the next is 6") as refused:
        publisher.publish("m", Model(), 5)
    assert refused.value.code is Code.ALREADY_EXISTS
    assert publisher.publish("m", Model(), 2) == 2
    publisher.unpublish("m")
    assert publisher.publish("m", Model()) == 6
    with pytest.raises(ServingError, match="whole number"):
        publisher.publish("m", Model(), -1)


def test_withdrawing_waits_for_the_calls_under_way(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    model = Model()
    publisher.publish("m", model)
    handle = core.handle(M)
    withdrawn = threading.Event()
    leaving = threading.Event()
    core.bus.subscribe(lambda s: s.state is ManagerState.UNLOADING and leaving.set())
    thread = threading.Thread(target=lambda: (publisher.unpublish("m"), withdrawn.set()))
    thread.start()
    assert leaving.wait(10)
    assert not withdrawn.is_set()
    assert not model.closed.is_set()
    handle.release()
    thread.join(10)
    assert withdrawn.is_set()
    assert model.closed.is_set()
    with pytest.raises(ServingError, match="Servable not found"):
        core.handle(M)


def test_only_what_is_published_can_be_withdrawn(publisher: Publisher) -> None:
    with pytest.raises(ServingError, match="Model m is not published here") as refused:
        publisher.unpublish("m")
    assert refused.value.code is Code.NOT_FOUND


def test_only_who_asks_for_it_is_batched(publisher: Publisher, core: ServerCore[Servable]) -> None:
    class Named(Model):
        signatures: Mapping[str, SignatureInfo] = {
            "s": SignatureInfo("s", {"x": ROWS}, {"y": ROWS})
        }

    publisher.publish("m", Named())
    assert not serving(core).batching.mergeable
    publisher.publish("m", Named(), greedy=True)
    assert serving(core).batching.mergeable == {"s"}
