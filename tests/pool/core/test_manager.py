"""The manager against a fake loader: what is aspired becomes what can be requested."""

import threading
import time

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.core.policy import preserve_availability, preserve_resources
from jupyter_tfserve.servable import ServableId
from jupyter_tfserve.state import ManagerState

LOADED = "START LOADING AVAILABLE"
UNLOADED = f"{LOADED} UNLOADING END"


def wait_until_gone(manager, name, version):
    """A version is withdrawn right after UNLOADING is published, but not before."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            manager.acquire(name, version).release()
        except ServingError:
            return
        time.sleep(0.001)
    pytest.fail(f"{name} {version} can still be requested")


def latest(manager, name="m"):
    with manager.acquire(name) as handle:
        return handle.id.version


class TestStates:
    def test_a_version_goes_through_all_states_in_order(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        manager.set_aspired("m", [])
        events.wait("m", 1, "END")
        assert events.trail("m", 1) == UNLOADED
        assert all(state.code is Code.OK for state in events.states)

    def test_handles_can_be_had_from_available_until_unloading(self, manager, loaders, bus, events):
        served = []

        def request(state):
            if state.state in {ManagerState.AVAILABLE, ManagerState.UNLOADING}:
                with manager.acquire("m", 1) as handle:
                    served.append((state.state.name, handle.servable.unloaded))

        bus.subscribe(request)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        manager.set_aspired("m", [])
        events.wait("m", 1, "END")
        assert served == [("AVAILABLE", False), ("UNLOADING", False)]

    def test_a_failing_subscriber_does_not_stop_the_manager(self, manager, loaders, bus, events):
        def fail(_state):
            raise RuntimeError("subscriber")

        bus.subscribe(fail)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        assert latest(manager) == 1

    def test_any_exception_of_a_loader_becomes_a_status(self, manager, loaders, events):
        loaders.fail("m", 1, error=KeyError("serve"))
        manager.set_aspired("m", loaders.aspired("m", 1))
        state = events.wait("m", 1, "END")
        assert (state.code, state.message) == (Code.UNKNOWN, "KeyError: 'serve'")

    def test_even_an_exit_in_a_loader_does_not_leave_it_loading(self, manager, loaders, events):
        loaders.fail("m", 1, error=SystemExit(3))
        manager.set_aspired("m", loaders.aspired("m", 1))
        assert events.wait("m", 1, "END").message == "SystemExit: 3"


class TestLookUp:
    def test_unknown_names_and_versions_are_not_found(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 0))
        events.wait("m", 0, "AVAILABLE")
        assert latest(manager) == 0
        for name, version, text in [("n", None, "Latest(n)"), ("m", 7, "Specific(m, 7)")]:
            with pytest.raises(ServingError) as caught:
                manager.acquire(name, version)
            assert caught.value.code is Code.NOT_FOUND
            assert caught.value.message == f"Servable not found for request: {text}"

    def test_a_version_that_is_loading_is_not_found(self, manager, loaders, events):
        loaders.block("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "LOADING")
        with pytest.raises(ServingError):
            manager.acquire("m", 1)

    def test_a_handle_tells_its_version_and_forgets_its_servable(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 3))
        events.wait("m", 3, "AVAILABLE")
        handle = manager.acquire("m")
        assert handle.id == handle.servable.id == ServableId("m", 3)
        handle.release()
        handle.release()
        with pytest.raises(AttributeError):
            _ = handle.servable


class TestSwap:
    def test_the_old_version_serves_until_the_new_one_is_ready(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        gate = loaders.block("m", 2)
        manager.set_aspired("m", loaders.aspired("m", 2))
        events.wait("m", 2, "LOADING")
        assert latest(manager) == 1
        gate.set()
        events.wait("m", 1, "END")
        assert latest(manager) == 2
        order = [(state.id.version, state.state.name) for state in events.states]
        assert order.index((2, "AVAILABLE")) < order.index((1, "UNLOADING"))

    def test_latest_moves_to_the_higher_version_once_it_is_ready(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        with manager.acquire("m", 1):
            manager.set_aspired("m", loaders.aspired("m", 2))
            events.wait("m", 2, "AVAILABLE")
            assert latest(manager) == 2

    def test_latest_stays_on_the_higher_version_until_a_rollback_is_done(
        self, manager, loaders, events
    ):
        manager.set_aspired("m", loaders.aspired("m", 1, 2))
        events.wait("m", 1, "AVAILABLE")
        events.wait("m", 2, "AVAILABLE")
        manager.set_aspired("m", loaders.aspired("m", 2))
        events.wait("m", 1, "END")
        gate = loaders.block("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "LOADING", times=2)
        assert latest(manager) == 2
        gate.set()
        events.wait("m", 2, "END")
        assert latest(manager) == 1

    def test_a_failed_new_version_leaves_the_old_one_serving(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        loaders.fail("m", 2)
        manager.set_aspired("m", loaders.aspired("m", 2))
        assert events.wait("m", 2, "END").message == "bad m 2"
        assert latest(manager) == 1
        # Rolling back takes the old one back without loading it again.
        manager.set_aspired("m", loaders.aspired("m", 1))
        manager.set_aspired("m", loaders.aspired("m", 1, 3))
        events.wait("m", 3, "AVAILABLE")
        assert events.trail("m", 1) == LOADED

    def test_resources_are_preserved_on_request(self, make_manager, loaders, events):
        manager = make_manager(policy=preserve_resources)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        manager.set_aspired("m", loaders.aspired("m", 2))
        events.wait("m", 2, "AVAILABLE")
        order = [(state.id.version, state.state.name) for state in events.states]
        assert order.index((1, "END")) < order.index((2, "LOADING"))

    def test_the_same_number_from_elsewhere_takes_the_place_of_the_old_one(
        self, manager, loaders, events
    ):
        manager.set_aspired("m", loaders.aspired("m", 1, origin="/old"))
        events.wait("m", 1, "AVAILABLE")
        manager.set_aspired("m", loaders.aspired("m", 1, origin="/new"))
        events.wait("m", 1, "AVAILABLE", times=2)
        assert events.trail("m", 1) == f"{UNLOADED} {LOADED}"

    def test_what_is_aspired_again_unchanged_stays_as_it_is(self, manager, loaders, events):
        for _ in range(3):
            manager.set_aspired("m", loaders.aspired("m", 1))
            events.wait("m", 1, "AVAILABLE")
        assert loaders.num_loads[ServableId("m", 1)] == 1


class TestUnload:
    def test_waits_for_running_handles(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        first, second = manager.acquire("m"), manager.acquire("m", 1)
        manager.set_aspired("m", [])
        wait_until_gone(manager, "m", 1)
        servable = first.servable
        first.release()
        assert not servable.unloaded
        assert events.trail("m", 1) == f"{LOADED} UNLOADING"
        second.release()
        events.wait("m", 1, "END")
        assert servable.unloaded

    def test_a_version_aspired_again_meanwhile_is_loaded_afresh(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        handle = manager.acquire("m")
        manager.set_aspired("m", [])
        wait_until_gone(manager, "m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        assert events.trail("m", 1) == f"{LOADED} UNLOADING"
        handle.release()
        events.wait("m", 1, "AVAILABLE", times=2)
        assert events.trail("m", 1) == f"{UNLOADED} {LOADED}"
        assert loaders.num_unloads[ServableId("m", 1)] == 1

    def test_a_failing_unload_still_ends_the_version(self, manager, loaders, events):
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        loaders.num_unloads = None  # makes FakeLoader.unload raise
        manager.set_aspired("m", [])
        assert events.wait("m", 1, "END").code is Code.OK


class TestFailure:
    def test_a_slow_load_of_one_model_holds_up_no_other(self, manager, loaders, events):
        loaders.block("slow", 1)
        manager.set_aspired("slow", loaders.aspired("slow", 1))
        events.wait("slow", 1, "LOADING")
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        manager.set_aspired("m", [])
        events.wait("m", 1, "END")
        assert events.trail("slow", 1) == "START LOADING"

    def test_no_more_versions_load_at_a_time_than_there_are_load_threads(
        self, make_manager, loaders, events
    ):
        manager = make_manager(num_load_threads=1)
        gate = loaders.block("a", 1)
        manager.set_aspired("a", loaders.aspired("a", 1))
        events.wait("a", 1, "LOADING")
        manager.set_aspired("b", loaders.aspired("b", 1))
        events.wait("b", 1, "START")
        assert events.trail("b", 1) == "START"
        gate.set()
        events.wait("b", 1, "AVAILABLE")
        trail = [(state.id.name, state.state.name) for state in events.states]
        assert trail.index(("a", "AVAILABLE")) < trail.index(("b", "LOADING"))

    def test_a_failed_load_is_retried_and_stays_loading(self, make_manager, loaders, events):
        manager = make_manager(max_num_load_retries=5, load_retry_interval_micros=1000)
        loaders.fail("m", 1, times=3)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        assert events.trail("m", 1) == LOADED
        assert loaders.num_loads[ServableId("m", 1)] == 4

    def test_after_the_last_retry_the_version_ends_with_its_error(
        self, make_manager, loaders, events
    ):
        manager = make_manager(max_num_load_retries=2, load_retry_interval_micros=1000)
        loaders.fail("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        state = events.wait("m", 1, "END")
        assert (state.code, state.message) == (Code.DATA_LOSS, "bad m 1")
        assert loaders.num_loads[ServableId("m", 1)] == 3

    def test_waiting_for_a_retry_occupies_no_load_thread(self, make_manager, loaders, events):
        manager = make_manager(num_load_threads=1, max_num_load_retries=1)
        loaders.fail("bad", 1)
        manager.set_aspired("bad", loaders.aspired("bad", 1))
        events.wait("bad", 1, "LOADING")
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")
        assert events.trail("bad", 1) == "START LOADING"

    def test_a_retry_that_is_due_waits_for_a_load_thread_without_spinning(
        self, make_manager, loaders, events
    ):
        rounds = []

        def policy(snapshots):
            rounds.append(snapshots)
            return preserve_availability(snapshots)

        manager = make_manager(
            policy=policy,
            num_load_threads=1,
            max_num_load_retries=1,
            load_retry_interval_micros=0,
        )
        gate = loaders.block("bad", 1)
        loaders.fail("bad", 1)
        manager.set_aspired("bad", loaders.aspired("bad", 1))
        events.wait("bad", 1, "LOADING")
        loaders.block("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "START")
        gate.set()
        events.wait("m", 1, "LOADING")  # m has the load thread, the retry of bad is due
        before = len(rounds)
        time.sleep(0.05)
        assert len(rounds) - before < 20

    def test_retries_are_cancelled_when_the_version_is_no_longer_aspired(
        self, make_manager, loaders, events
    ):
        manager = make_manager(num_load_threads=1, max_num_load_retries=5)
        loaders.fail("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "LOADING")
        manager.set_aspired("other", loaders.aspired("other", 1))
        events.wait("other", 1, "AVAILABLE")  # the one load thread is free: m waits for its retry
        manager.set_aspired("m", [])
        assert events.wait("m", 1, "END").message == "bad m 1"
        assert loaders.num_loads[ServableId("m", 1)] == 1

    def test_a_load_that_is_cancelled_meanwhile_is_undone(self, manager, loaders, events):
        gate = loaders.block("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "LOADING")
        manager.set_aspired("m", [])
        gate.set()
        state = events.wait("m", 1, "END")
        assert (state.code, state.message) == (Code.CANCELLED, "Loading of servable cancelled")
        assert events.trail("m", 1) == "START LOADING END"
        assert loaders.num_unloads[ServableId("m", 1)] == 1

    def test_a_cancelled_load_that_is_aspired_again_is_loaded_afresh(
        self, manager, loaders, events
    ):
        gate = loaders.block("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "LOADING")
        manager.set_aspired("m", [])
        manager.set_aspired("m", loaders.aspired("m", 1))
        gate.set()
        events.wait("m", 1, "AVAILABLE")
        assert events.trail("m", 1) == f"START LOADING END {LOADED}"

    def test_a_version_that_never_came_to_load_ends_cancelled(self, make_manager, loaders, events):
        manager = make_manager(num_load_threads=1)
        loaders.block("a", 1)
        manager.set_aspired("a", loaders.aspired("a", 1))
        events.wait("a", 1, "LOADING")
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "START")
        manager.set_aspired("m", [])
        assert events.wait("m", 1, "END").code is Code.CANCELLED
        assert loaders.num_loads[ServableId("m", 1)] == 0

    def test_a_failed_version_is_tried_again_only_when_its_content_changes(
        self, make_manager, loaders, events
    ):
        manager = make_manager(num_load_threads=1)
        content = ["half"]
        loaders.fail("m", 1, times=1)

        def aspire():
            manager.set_aspired("m", loaders.aspired("m", 1, fingerprint=lambda: content[0]))

        def load_another(name):
            # The one load thread comes free only after the failure has been settled.
            manager.set_aspired(name, loaders.aspired(name, 1))
            events.wait(name, 1, "AVAILABLE")

        aspire()
        events.wait("m", 1, "END")
        load_another("a")
        aspire()
        load_another("b")
        assert loaders.num_loads[ServableId("m", 1)] == 1

        content[0] = "whole"
        aspire()
        events.wait("m", 1, "AVAILABLE")
        assert events.trail("m", 1) == f"START LOADING END {LOADED}"

    def test_a_failed_version_is_tried_again_when_it_was_gone_in_between(
        self, manager, loaders, events
    ):
        loaders.fail("m", 1, times=1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "END")
        manager.set_aspired("m", [])
        manager.set_aspired("other", loaders.aspired("other", 1))
        events.wait("other", 1, "AVAILABLE")
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "AVAILABLE")


class TestClose:
    def test_unloads_everything(self, manager, loaders, events):
        manager.set_aspired("a", loaders.aspired("a", 1, 2))
        manager.set_aspired("b", loaders.aspired("b", 1))
        for name, version in [("a", 1), ("a", 2), ("b", 1)]:
            events.wait(name, version, "AVAILABLE")
        manager.close()
        assert sum(loaders.num_unloads.values()) == 3
        with pytest.raises(ServingError):
            manager.acquire("a")

    def test_forgets_failed_versions_at_once(self, manager, loaders, events):
        loaders.fail("m", 1)
        manager.set_aspired("m", loaders.aspired("m", 1))
        events.wait("m", 1, "END")
        started = time.monotonic()
        manager.close(timeout=10)
        assert time.monotonic() - started < 5
        assert events.trail("m", 1) == "START LOADING END"

    def test_aspires_nothing_afterwards(self, manager, loaders, events):
        manager.close()
        manager.set_aspired("m", loaders.aspired("m", 1))
        assert events.states == []

    def test_ends_in_time_whatever_hangs(self, manager, loaders, events):
        gate = loaders.block("hung", 1)
        manager.set_aspired("hung", loaders.aspired("hung", 1))
        manager.set_aspired("leaked", loaders.aspired("leaked", 1))
        events.wait("hung", 1, "LOADING")
        events.wait("leaked", 1, "AVAILABLE")
        handle = manager.acquire("leaked")
        started = time.monotonic()
        manager.close(timeout=0.05)
        assert time.monotonic() - started < 10
        assert events.wait("hung", 1, "END").code is Code.CANCELLED
        assert events.wait("leaked", 1, "END").code is Code.CANCELLED
        assert "tfserve-manager" not in [thread.name for thread in threading.enumerate()]
        # What ends later is undone and told to nobody.
        before = len(events.states)
        workers = [t for t in threading.enumerate() if t.name.startswith("tfserve-")]
        assert len(workers) == 2
        gate.set()
        handle.release()
        for worker in workers:
            worker.join(20)
        assert loaders.num_unloads == {ServableId("hung", 1): 1, ServableId("leaked", 1): 1}
        assert len(events.states) == before
