"""Version policies, and the two transition policies case by case.

The cases of preserve_availability are TensorFlow Serving's nine
(core/availability_preserving_policy_test.cc).
"""

import pytest

from jupyter_tfserve.config import All, Latest, Specific
from jupyter_tfserve.pool.core.policy import (
    Action,
    Phase,
    Snapshot,
    Step,
    aspired_versions,
    preserve_availability,
    preserve_resources,
)

NEW, LOADING, READY, UNLOADING, ERROR = Phase


def versions(*entries):
    return [Snapshot(version, phase, wanted == "aspired") for version, phase, wanted in entries]


def load(version):
    return Action(Step.LOAD, version)


def unload(version):
    return Action(Step.UNLOAD, version)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Latest(), [12]),
        (Latest(0), [12]),
        (Latest(2), [12, 3]),
        (Latest(9), [12, 3, 0]),
        (All(), [12, 3, 0]),
        (Specific(frozenset({0, 3, 7})), [3, 0]),
        (Specific(), []),
    ],
)
def test_version_policy_picks_of_what_was_found(policy, expected):
    assert aspired_versions(policy, [3, 12, 0]) == expected


class TestPreserveAvailability:
    def test_loads_the_highest_new_version_when_there_is_nothing_to_unload(self):
        situation = versions(
            (1, UNLOADING, "-"),
            (2, ERROR, "-"),
            (3, READY, "aspired"),
            (4, NEW, "aspired"),
            (5, NEW, "aspired"),
        )
        assert preserve_availability(situation) == load(5)

    def test_unloads_before_it_loads_when_an_aspired_version_is_ready(self):
        situation = versions(
            (1, UNLOADING, "-"),
            (2, ERROR, "-"),
            (3, READY, "-"),
            (4, READY, "aspired"),
            (5, NEW, "aspired"),
        )
        assert preserve_availability(situation) == unload(3)

    def test_unloads_the_last_version_when_none_is_aspired(self):
        situation = versions((1, READY, "-"), (2, ERROR, "-"))
        assert preserve_availability(situation) == unload(1)

    def test_does_nothing_when_all_is_done_or_under_way(self):
        situation = versions(
            (1, READY, "aspired"),
            (2, ERROR, "aspired"),
            (3, LOADING, "aspired"),
            (4, UNLOADING, "-"),
        )
        assert preserve_availability(situation) is None

    def test_keeps_the_old_version_while_the_new_one_loads(self):
        situation = versions((1, READY, "-"), (2, LOADING, "aspired"))
        assert preserve_availability(situation) is None

    def test_keeps_the_old_version_when_the_new_one_failed(self):
        situation = versions((1, READY, "-"), (2, ERROR, "aspired"))
        assert preserve_availability(situation) is None

    @pytest.mark.parametrize("other", [LOADING, ERROR])
    def test_unloads_the_old_version_once_any_aspired_one_is_ready(self, other):
        situation = versions((1, READY, "-"), (2, other, "aspired"), (3, READY, "aspired"))
        assert preserve_availability(situation) == unload(1)

    def test_unloads_the_lowest_surplus_version_while_another_one_still_serves(self):
        situation = versions(
            (2, READY, "-"), (1, READY, "-"), (3, ERROR, "aspired"), (4, LOADING, "aspired")
        )
        assert preserve_availability(situation) == unload(1)

    def test_rolls_back_to_a_lower_version_the_same_way(self):
        assert preserve_availability(versions((2, READY, "-"), (1, NEW, "aspired"))) == load(1)
        assert preserve_availability(versions((2, READY, "-"), (1, READY, "aspired"))) == unload(2)

    def test_has_nothing_to_do_for_no_version(self):
        assert preserve_availability([]) is None


class TestPreserveResources:
    def test_unloads_the_old_version_before_the_new_one_loads(self):
        assert preserve_resources(versions((1, READY, "-"), (2, NEW, "aspired"))) == unload(1)

    @pytest.mark.parametrize("phase", [LOADING, UNLOADING])
    def test_waits_for_an_old_version_that_is_under_way(self, phase):
        assert preserve_resources(versions((1, phase, "-"), (2, NEW, "aspired"))) is None

    def test_waits_for_a_version_that_will_come_back(self):
        assert preserve_resources(versions((1, UNLOADING, "aspired"), (2, NEW, "aspired"))) is None

    def test_loads_the_highest_new_version_when_only_failed_ones_are_left(self):
        situation = versions((1, ERROR, "-"), (2, NEW, "aspired"), (3, NEW, "aspired"))
        assert preserve_resources(situation) == load(3)

    def test_keeps_what_is_aspired(self):
        assert preserve_resources(versions((1, READY, "aspired"))) is None
