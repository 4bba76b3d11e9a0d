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


# Labels -------------------------------------------------------------------------------------------


def by_label(core: ServerCore[Servable], label: str) -> int:
    with core.handle(ModelSpec("m", label=label)) as handle:
        return handle.id.version


def test_a_version_with_a_label_stays_until_the_label_moves(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    first, second, third = Model(), Model(), Model()
    publisher.publish("m", first, labels={"stable": None})
    publisher.publish("m", second)
    publisher.publish("m", third, labels={"canary": None})
    assert second.closed.wait(10)
    assert not first.closed.is_set()
    assert (by_label(core, "stable"), by_label(core, "canary")) == (1, 3)
    assert serving(core) is third
    assert publisher.label("m", "stable", 3) == {"stable": 3, "canary": 3}
    assert first.closed.wait(10)
    assert by_label(core, "stable") == 3


def test_a_label_that_is_removed_lets_its_version_go(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    first = Model()
    publisher.publish("m", first, labels={"stable": None})
    publisher.publish("m", Model())
    assert publisher.label("m", "stable", None) == {}
    assert first.closed.wait(10)
    with pytest.raises(ServingError, match="Unrecognized servable version label: stable"):
        by_label(core, "stable")
    with pytest.raises(ServingError, match="Model m has no label stable") as refused:
        publisher.label("m", "stable", None)
    assert refused.value.code is Code.NOT_FOUND


def test_publishing_moves_a_label_only_once_the_new_version_answers(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    publisher.publish("m", Model(), labels={"stable": None})
    seen: list[int] = []
    core.bus.subscribe(lambda _state: seen.append(by_label(core, "stable")))
    publisher.publish("m", Model(), labels={"stable": None, "old": 1})
    assert set(seen) <= {1, 2}
    assert (by_label(core, "stable"), by_label(core, "old")) == (2, 1)


def test_a_label_of_a_version_that_is_not_there_is_refused_and_changes_nothing(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    text = "Request to assign label to version 9 of model m, which is not currently available"
    with pytest.raises(ServingError, match=text) as refused:
        publisher.publish("m", Model(), labels={"stable": 9})
    assert refused.value.code is Code.FAILED_PRECONDITION
    assert core.monitor.versions("m") == []
    with pytest.raises(ServingError, match="Model m is not published here"):
        publisher.label("m", "stable", 1)
    publisher.publish("m", Model(), labels={"stable": None})
    for change in (
        lambda: publisher.label("m", "stable", 9),
        lambda: publisher.publish("m", Model(), labels={"stable": 9}),
    ):
        with pytest.raises(ServingError, match=text):
            change()
    assert by_label(core, "stable") == 1
    assert [state.id.version for state in core.monitor.versions("m")] == [1]


def test_changes_of_labels_are_told_and_end_with_the_model(
    core: ServerCore[Servable], publisher: Publisher
) -> None:
    told: list[tuple[str, dict[str, int]]] = []
    publisher.on_labels = lambda name, labels: told.append((name, dict(labels)))
    publisher.publish("m", Model(), labels={"stable": None})
    publisher.publish("m", Model())
    publisher.label("m", "stable", 2)
    assert publisher.labels() == {"m": {"stable": 2}}
    publisher.unpublish("m")
    assert told == [("m", {"stable": 1}), ("m", {"stable": 2}), ("m", {})]
    assert publisher.labels() == {}
    publisher.publish("m", Model())
    with pytest.raises(ServingError, match="Unrecognized servable version label"):
        by_label(core, "stable")
