"""The core as a whole: configurations in, handles out, on real directories."""

import shutil
import threading
import time
from dataclasses import replace

import pytest

from jupyter_tfserve.config import All, ModelConfig, ModelServerConfig, Specific
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import ModelSpec, ServableId

LOADED = "START LOADING AVAILABLE"
TIMEOUT = 20.0


def version_of(core, name="m", **spec):
    with core.handle(ModelSpec(name, **spec)) as handle:
        return handle.id.version


def refused(call, *args, **more):
    with pytest.raises(ServingError) as caught:
        call(*args, **more)
    return caught.value


class TestHandles:
    def test_a_request_names_a_version_a_label_or_neither(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core(allow_version_labels_for_unavailable_models=True)
        add_version(tmp_path, "00000001")
        add_version(tmp_path, 2)
        core.reload_config(configure(m=tmp_path, policy=All(), labels={"stable": 1, "lost": 9}))
        events.wait("m", 1, "AVAILABLE")
        events.wait("m", 2, "AVAILABLE")
        assert version_of(core) == 2
        assert version_of(core, version=1) == 1
        assert version_of(core, label="stable") == 1
        assert core.labels("m") == {"stable": 1, "lost": 9}
        with core.handle(ModelSpec("m", 1)) as handle:
            assert handle.servable.path == str(tmp_path / "00000001")

    @pytest.mark.parametrize(
        ("spec", "code", "text"),
        [
            (ModelSpec(""), Code.INVALID_ARGUMENT, "ModelSpec has no name specified."),
            (ModelSpec("n"), Code.NOT_FOUND, "Servable not found for request: Latest(n)"),
            (ModelSpec("m", 3), Code.NOT_FOUND, "Servable not found for request: Specific(m, 3)"),
            (
                ModelSpec("m", label="Stable"),
                Code.INVALID_ARGUMENT,
                "Unrecognized servable version label: Stable",
            ),
            (
                ModelSpec("n", label="stable"),
                Code.INVALID_ARGUMENT,
                "Unrecognized servable version label: stable",
            ),
            (
                ModelSpec("m", label="lost"),
                Code.NOT_FOUND,
                "Servable not found for request: Specific(m, 9)",
            ),
        ],
    )
    def test_what_cannot_be_found_is_refused_in_tf_servings_words(
        self, make_core, tmp_path, add_version, configure, spec, code, text
    ):
        core, _ = make_core(allow_version_labels_for_unavailable_models=True)
        add_version(tmp_path, 1)
        core.reload_config(configure(m=tmp_path, labels={"stable": 1, "lost": 9}))
        error = refused(core.handle, spec)
        assert (error.code, error.message) == (code, text)

    def test_a_replayed_configuration_brings_its_labels_before_their_versions(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        config = configure(m=tmp_path, labels={"stable": 1})
        assert refused(core.reload_config, config).code is Code.FAILED_PRECONDITION
        core.reload_config(config, replay=True)
        events.wait("m", 1, "AVAILABLE")
        assert version_of(core, label="stable") == 1

    def test_labels_are_unavailable_before_the_first_configuration(self, make_core):
        core, _ = make_core()
        error = refused(core.handle, ModelSpec("m", label="stable"))
        assert error.code is Code.UNAVAILABLE
        assert error.message == "Model labels does not init yet.stable"


class TestReload:
    def test_waits_until_new_models_can_be_requested(
        self, make_core, tmp_path, add_version, configure
    ):
        core, _ = make_core()
        add_version(tmp_path, 1)
        core.reload_config(configure(a=tmp_path, b=tmp_path))
        assert version_of(core, "a") == version_of(core, "b") == 1

    def test_replaces_the_whole_list(self, make_core, loaders, tmp_path, add_version, configure):
        core, events = make_core()
        add_version(tmp_path, 1)
        core.reload_config(configure(a=tmp_path, b=tmp_path))
        core.reload_config(configure(b=tmp_path, c=tmp_path))
        assert version_of(core, "c") == 1
        events.wait("a", 1, "END")
        assert events.trail("b", 1) == LOADED
        assert loaders.num_loads[ServableId("b", 1)] == 1
        assert [state.state.name for state in core.status(ModelSpec("a"))] == ["END"]

        core.reload_config(ModelServerConfig())
        events.wait("b", 1, "END")
        events.wait("c", 1, "END")

    def test_an_identical_configuration_changes_nothing(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        for _ in range(2):
            core.reload_config(configure(m=tmp_path))
        assert events.trail("m", 1) == LOADED

    def test_a_model_removed_and_added_again_is_loaded_afresh(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        core.reload_config(configure(m=tmp_path))
        with core.handle(ModelSpec("m")):
            core.reload_config(ModelServerConfig())
            events.wait("m", 1, "UNLOADING")
            core.reload_config(configure(m=tmp_path), wait=False)
        events.wait("m", 1, "AVAILABLE", times=2)
        assert version_of(core) == 1

    def test_a_version_that_is_wanted_again_before_it_left_counts_as_it_is(
        self, make_core, loaders, tmp_path, add_version, configure, monkeypatch
    ):
        core, events = make_core()
        good, bad = tmp_path / "good", tmp_path / "bad"
        add_version(good, 1)
        add_version(bad, 2)
        loaders.fail("bad", 2)
        with pytest.raises(ServingError):
            core.reload_config(configure(good=good, bad=bad))
        # The manager does not get round to it between the two configurations.
        monkeypatch.setattr(core._manager, "_policy", lambda _: None)
        monkeypatch.setattr(core._manager._roster, "take_lapsed", lambda: None)
        core.reload_config(ModelServerConfig())
        core.reload_config(configure(good=good), wait=TIMEOUT)
        error = refused(core.reload_config, configure(good=good, bad=bad), wait=TIMEOUT)
        assert error.code is Code.UNKNOWN
        assert "bad bad 2" in error.message
        assert events.trail("good", 1) == LOADED

    def test_the_versions_of_a_life_before_do_not_count(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core()
        old, new = tmp_path / "old", tmp_path / "new"
        add_version(old, 1)
        add_version(new, 2)
        gate = loaders.block("m", 1)
        core.reload_config(configure(m=old), wait=False)
        events.wait("m", 1, "LOADING")
        core.reload_config(ModelServerConfig())
        second = loaders.block("m", 2)
        reload = threading.Thread(target=core.reload_config, args=(configure(m=new),))
        reload.start()
        events.wait("m", 2, "LOADING")
        gate.set()
        assert events.wait("m", 1, "END").code is Code.CANCELLED
        second.set()
        reload.join(20)
        assert version_of(core) == 2

    def test_changes_of_a_models_policy_and_path_are_applied(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core()
        for version in (1, 2):
            add_version(tmp_path / "a", version)
        add_version(tmp_path / "b", 3)
        core.reload_config(configure(m=tmp_path / "a"))
        core.reload_config(configure(m=tmp_path / "a", policy=Specific(frozenset({1}))))
        events.wait("m", 2, "END")
        assert version_of(core) == 1
        core.reload_config(configure(m=tmp_path / "b"))
        events.wait("m", 1, "END")
        assert version_of(core) == 3

    def test_failures_are_named_and_the_others_are_served(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, _ = make_core()
        add_version(tmp_path, 1)
        loaders.fail("a", 1)
        loaders.fail("b", 1, error=ServingError(Code.NOT_FOUND, "no graph"))
        error = refused(core.reload_config, configure(a=tmp_path))
        assert error.code is Code.UNKNOWN
        assert error.message == (
            "1 servable(s) did not become available: "
            "{{name: a version: 1} due to error: DATA_LOSS: bad a 1}, }"
        )
        error = refused(core.reload_config, configure(a=tmp_path, b=tmp_path, m=tmp_path))
        assert error.message == (
            "1 model(s) did not become available: "
            "{{name: b version: 1} due to error: NOT_FOUND: no graph}, }"
        )
        assert version_of(core, "m") == 1
        assert len(core.config().models) == 3

    def test_one_model_without_base_path_holds_up_no_other(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path / "m", 1)
        error = refused(core.reload_config, configure(a=tmp_path / "a", m=tmp_path / "m"))
        assert error.message == (
            "1 servable(s) did not become available: {{name: a} due to error: NOT_FOUND: "
            f"{core.problem('a')}}}, }}"
        )
        assert version_of(core, "m") == 1
        assert list(core.problems()) == ["a"]

        add_version(tmp_path / "a", 4)
        core.poll_now()
        events.wait("a", 4, "AVAILABLE")
        assert core.problems() == {}

    def test_waiting_can_be_bounded_or_left_out(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        gate = loaders.block("a", 1)
        error = refused(core.reload_config, configure(a=tmp_path), wait=0.01)
        assert error.code is Code.DEADLINE_EXCEEDED
        core.reload_config(configure(a=tmp_path, b=tmp_path / "gone"), wait=False)
        gate.set()
        events.wait("a", 1, "AVAILABLE")

    def test_a_reload_does_not_wait_for_the_models_of_another(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        loaders.block("slow", 1)
        errors = []

        def reload_slow():
            errors.append(refused(core.reload_config, configure(slow=tmp_path)))

        slow = threading.Thread(target=reload_slow)
        slow.start()
        events.wait("slow", 1, "LOADING")
        core.reload_config(configure(m=tmp_path))  # which removes the slow one
        slow.join(20)
        assert [error.code for error in errors] == [Code.UNKNOWN]
        assert "Model slow was removed" in errors[0].message

    @pytest.mark.parametrize(
        ("change", "code", "text"),
        [
            (
                lambda m: (m, m),
                Code.INVALID_ARGUMENT,
                "Illegal to list model m multiple times in config list",
            ),
            (
                lambda m: (replace(m, base_path="rel"),),
                Code.INVALID_ARGUMENT,
                "Expected model m to have an absolute path or URI; got base_path()=rel",
            ),
            (
                lambda m: (replace(m, platform="caffe"),),
                Code.INVALID_ARGUMENT,
                "Illegal to change a model's platform. For model m platform was tensorflow and "
                "new platform requested is caffe",
            ),
            (
                lambda m: (m, ModelConfig("n", "/n", platform="caffe")),
                Code.INVALID_ARGUMENT,
                "Model n requests unsupported platform caffe",
            ),
            (
                lambda m: (replace(m, labels={"a": 1, "b": 7}),),
                Code.FAILED_PRECONDITION,
                "Request to assign label to version 7 of model m, which is not currently "
                "available for inference",
            ),
        ],
    )
    def test_a_refused_configuration_leaves_everything_as_it_was(
        self, make_core, tmp_path, add_version, configure, change, code, text
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        config = configure(m=tmp_path)
        core.reload_config(config)
        core.reload_config(replace(config, models=(replace(config.models[0], labels={"a": 1}),)))
        before = core.config()

        error = refused(core.reload_config, ModelServerConfig(change(config.models[0])))

        assert (error.code, error.message) == (code, text)
        assert core.config() == before
        assert core.labels("m") == {"a": 1}
        core.poll_now()
        assert events.trail("m", 1) == LOADED


class TestLabels:
    @pytest.fixture
    def relabel(self, tmp_path, add_version, configure):
        for version in (1, 2):
            add_version(tmp_path, version)

        def relabel(core, **labels):
            core.reload_config(configure(m=tmp_path, policy=All(), labels=labels))

        return relabel

    def serving(self, make_core, relabel, **options):
        core, events = make_core(**options)
        relabel(core)
        events.wait("m", 1, "AVAILABLE")
        events.wait("m", 2, "AVAILABLE")
        return core

    def test_the_first_configuration_cannot_assign_any(self, make_core, relabel):
        core, events = make_core()
        assert refused(relabel, core, stable=1).code is Code.FAILED_PRECONDITION
        assert core.config() == ModelServerConfig()
        assert events.states == []

    def test_are_assigned_moved_and_removed(self, make_core, relabel):
        core = self.serving(make_core, relabel)
        relabel(core, stable=1, also=1)
        assert version_of(core, label="stable") == version_of(core, label="also") == 1
        relabel(core, stable=2)
        assert version_of(core, label="stable") == 2
        assert refused(version_of, core, label="also").code is Code.INVALID_ARGUMENT

    def test_point_at_available_versions_only(self, make_core, relabel):
        core = self.serving(make_core, relabel)
        assert refused(relabel, core, stable=3).code is Code.FAILED_PRECONDITION

    def test_in_use_may_stay_only_while_their_version_is_available(
        self, make_core, relabel, tmp_path
    ):
        core = self.serving(make_core, relabel)
        relabel(core, stable=1)
        shutil.rmtree(tmp_path / "1")
        core.poll_now()
        deadline = time.monotonic() + 20
        while core.status(ModelSpec("m", 1))[0].state.name != "END":
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert refused(relabel, core, stable=1).code is Code.FAILED_PRECONDITION

    def test_not_in_use_may_point_anywhere_when_that_is_allowed(self, make_core, relabel):
        core = self.serving(make_core, relabel, allow_version_labels_for_unavailable_models=True)
        relabel(core, canary=7)
        relabel(core, canary=7)
        assert refused(version_of, core, label="canary").code is Code.NOT_FOUND
        relabel(core, canary=2)
        assert version_of(core, label="canary") == 2

    def test_in_use_are_never_moved_to_an_unavailable_version(self, make_core, relabel):
        core = self.serving(make_core, relabel, allow_version_labels_for_unavailable_models=True)
        relabel(core, stable=1)
        assert refused(relabel, core, stable=7).code is Code.FAILED_PRECONDITION
        assert version_of(core, label="stable") == 1

    def test_stay_replaced_when_the_loads_of_their_configuration_fail(
        self, make_core, relabel, loaders, tmp_path, configure
    ):
        core = self.serving(make_core, relabel)
        loaders.fail("n", 2)
        both = configure(m=tmp_path, policy=All(), labels={"stable": 1}).models
        both += configure(n=tmp_path).models
        assert refused(core.reload_config, ModelServerConfig(both)).code is Code.UNKNOWN
        assert version_of(core, label="stable") == 1


class TestPolling:
    def test_versions_that_appear_and_vanish_are_followed(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core(file_system_poll_wait_seconds=0.005)
        refused(core.reload_config, configure(m=tmp_path))
        add_version(tmp_path, 1)
        events.wait("m", 1, "AVAILABLE")
        shutil.rmtree(tmp_path / "1")
        events.wait("m", 1, "END")

    def test_a_half_written_version_is_tried_again_when_it_is_complete(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core(num_load_threads=1)
        base = tmp_path / "m"
        add_version(base, 1)
        core.reload_config(configure(m=base))
        add_version(base, 2, "variables.index")
        core.poll_now()
        assert events.trail("m", 2) == ""

        add_version(base, 2)
        loaders.fail("m", 2)
        core.poll_now()
        events.wait("m", 2, "END")
        core.poll_now()
        assert version_of(core) == 1

        # Another load: the one load thread comes free only after the failure has been settled.
        add_version(tmp_path / "other", 1)
        core.reload_config(configure(m=base, other=tmp_path / "other"))
        loaders.mend("m", 2)
        add_version(base, 2, "fingerprint.pb")
        core.poll_now()
        events.wait("m", 1, "END")
        assert version_of(core) == 2
        assert loaders.num_loads[ServableId("m", 2)] == 2

    def test_without_polls_nothing_is_looked_at_until_asked(
        self, make_core, tmp_path, add_version, configure
    ):
        core, events = make_core(file_system_poll_wait_seconds=-1)
        add_version(tmp_path, 1)
        error = refused(core.reload_config, configure(m=tmp_path))
        assert "was not looked at yet" in error.message
        core.poll_now()
        events.wait("m", 1, "AVAILABLE")


class TestPublished:
    def test_versions_of_unconfigured_names_are_served_and_withdrawn(self, make_core, loaders):
        core, events = make_core()
        core.aspire("p", [(1, loaders(None, ServableId("p", 1), ""))])
        events.wait("p", 1, "AVAILABLE")
        assert version_of(core, "p") == 1
        core.aspire("p", [])
        events.wait("p", 1, "END")

    def test_outlive_a_configuration_without_them(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        core.aspire("p", [(1, loaders(None, ServableId("p", 1), ""))])
        events.wait("p", 1, "AVAILABLE")
        core.reload_config(configure(m=tmp_path))
        assert version_of(core, "p") == 1

    def test_configured_names_are_refused_and_taken_over(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        core.aspire("m", [(1, loaders(None, ServableId("m", 1), "published"))])
        events.wait("m", 1, "AVAILABLE")
        core.reload_config(configure(m=tmp_path))
        with core.handle(ModelSpec("m")) as handle:
            assert handle.servable.path == str(tmp_path / "1")
        error = refused(core.aspire, "m", [])
        assert error.code is Code.ALREADY_EXISTS
        assert str(tmp_path) in error.message

    def test_have_labels_of_their_own_that_a_configuration_leaves_alone(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        core, events = make_core()
        add_version(tmp_path, 1)
        core.aspire("p", [(1, loaders(None, ServableId("p", 1), ""))])
        events.wait("p", 1, "AVAILABLE")
        assert refused(version_of, core, "p", label="stable").code is Code.INVALID_ARGUMENT
        core.set_labels("p", {"stable": 1})
        core.reload_config(configure(m=tmp_path))
        assert version_of(core, "p", label="stable") == 1
        error = refused(core.set_labels, "p", {"stable": 2})
        assert error.code is Code.FAILED_PRECONDITION
        assert "label to version 2 of model p" in error.message
        assert refused(core.set_labels, "m", {"stable": 1}).code is Code.ALREADY_EXISTS
        core.reload_config(configure(p=tmp_path))  # it is the configuration's now
        assert core.labels("p") == {}


class TestClose:
    def test_unloads_everything_and_ends_its_threads(
        self, make_core, loaders, tmp_path, add_version, configure
    ):
        before = set(threading.enumerate())
        core, events = make_core(file_system_poll_wait_seconds=60)
        add_version(tmp_path, 1)
        core.reload_config(configure(m=tmp_path))
        core.close()
        assert events.trail("m", 1) == f"{LOADED} UNLOADING END"
        for thread in set(threading.enumerate()) - before:
            thread.join(20)
        assert set(threading.enumerate()) <= before

    def test_refuses_what_comes_afterwards(self, make_core, tmp_path, configure):
        core, _ = make_core()
        core.close()
        assert refused(core.reload_config, configure(m=tmp_path)).code is Code.UNAVAILABLE
        assert refused(core.aspire, "m", []).code is Code.UNAVAILABLE
        core.close()

    def test_ends_a_reload_that_waits(self, make_core, loaders, tmp_path, add_version, configure):
        core, events = make_core()
        add_version(tmp_path, 1)
        loaders.block("m", 1)
        errors = []
        reload = threading.Thread(
            target=lambda: errors.append(refused(core.reload_config, configure(m=tmp_path)))
        )
        reload.start()
        events.wait("m", 1, "LOADING")
        core.close(timeout=0.05)
        reload.join(20)
        assert [error.code for error in errors] == [Code.UNKNOWN]
