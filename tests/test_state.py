"""What the monitor remembers of versions, and how a status answer is laid out."""

from __future__ import annotations

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import ModelSpec, ServableId
from jupyter_tfserve.state import (
    EventBus,
    ManagerState,
    ServableState,
    ServableStateMonitor,
    status_json,
)


def state(
    version: int, what: ManagerState = ManagerState.AVAILABLE, **rest: object
) -> ServableState:
    return ServableState(ServableId("m", version), what, **rest)  # type: ignore[arg-type]


def test_versions_are_told_highest_first() -> None:
    monitor = ServableStateMonitor()
    for version in (2, 10, 1):
        monitor.update(state(version))
    assert [s.id.version for s in monitor.status(ModelSpec("m"))] == [10, 2, 1]
    assert [s.id.version for s in monitor.status(ModelSpec("m", label="ignored"))] == [10, 2, 1]
    assert [s.id.version for s in monitor.status(ModelSpec("m", 2))] == [2]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (ModelSpec("x"), "Could not find any versions of model x"),
        (ModelSpec("x", 3), "Could not find version 3 of model x"),
        (ModelSpec("m", 3), "Could not find version 3 of model m"),
    ],
)
def test_what_was_never_seen_is_not_found(spec: ModelSpec, text: str) -> None:
    monitor = ServableStateMonitor()
    monitor.update(state(1))
    with pytest.raises(ServingError) as refused:
        monitor.status(spec)
    assert (refused.value.code, refused.value.message) == (Code.NOT_FOUND, text)


def test_only_the_last_ended_versions_stay_listed() -> None:
    """O13: hundreds of reloads leave a short status."""
    monitor = ServableStateMonitor(max_ended=3)
    for version in range(1, 301):
        monitor.update(state(version, since=version))
        monitor.update(state(version, ManagerState.END, since=version))
    monitor.update(state(301, since=301))
    assert [s.id.version for s in monitor.versions("m")] == [301, 300, 299, 298]


def test_the_newest_version_stays_listed_with_its_error_however_many_end_after_it() -> None:
    monitor = ServableStateMonitor(max_ended=2)
    failed = state(100, ManagerState.END, code=Code.INTERNAL, message="no", since=0.0)
    monitor.update(failed)
    for version in range(1, 20):
        monitor.update(state(version, ManagerState.END, since=version))
    assert monitor.get(ServableId("m", 100)) == failed
    assert len(monitor.versions("m")) == 3


def test_states_cross_the_wire_unchanged() -> None:
    sent = state(7, ManagerState.END, code=Code.DATA_LOSS, message="bad \udcff", since=1.5)
    assert ServableState.from_dict(sent.to_dict()) == sent


def test_subscribers_hear_everything_until_they_leave() -> None:
    bus, heard = EventBus(), []
    leave = bus.subscribe(heard.append)
    bus.publish(state(1))
    leave()
    bus.publish(state(2))
    assert heard == [state(1)]


def test_a_subscriber_that_fails_costs_nobody_else_the_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus, heard = EventBus(), []

    def fail(_: ServableState) -> None:
        raise RuntimeError("broken")

    bus.subscribe(fail)
    bus.subscribe(heard.append)
    bus.publish(state(1))
    assert heard == [state(1)]
    assert "broken" in caplog.text


def test_the_status_body_is_laid_out_as_the_original_prints_it() -> None:
    failed = state(2, ManagerState.END, code=Code.NOT_FOUND, message='no "é"')
    assert status_json([failed]).decode() == (
        '{\n "model_version_status": [\n  {\n   "version": "2",\n   "state": "END",\n'
        '   "status": {\n    "error_code": "NOT_FOUND",\n    "error_message": "no \\"é\\""\n'
        "   }\n  }\n ]\n}\n"
    )


def test_only_the_last_models_stay_listed_that_have_nothing_but_ended_versions() -> None:
    monitor = ServableStateMonitor(max_ended_models=2)
    live = ServableState(ServableId("live", 1), ManagerState.AVAILABLE, since=0.0)
    monitor.update(live)
    for number in range(10):
        servable = ServableId(f"m{number}", 1)
        monitor.update(ServableState(servable, ManagerState.AVAILABLE, since=number))
        monitor.update(ServableState(servable, ManagerState.END, since=number))
    assert monitor.names() == ["live", "m8", "m9"]
    monitor.update(ServableState(live.id, ManagerState.END, since=99.0))
    assert monitor.names() == ["live", "m9"]
