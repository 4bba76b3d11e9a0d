import pytest

from jupyter_tfserve.config import Latest, ModelConfig, Specific
from jupyter_tfserve.pool.core.source import FileSystemSource


class Recorder:
    def __init__(self):
        self.calls = []

    def __call__(self, model, paths):
        self.calls.append((model.name, sorted(paths)))

    def take(self):
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def aspired():
    return Recorder()


@pytest.fixture
def source(aspired):
    return FileSystemSource(aspired)


def test_each_poll_aspires_what_the_policy_picks(tmp_path, add_version, source, aspired):
    add_version(tmp_path, 1)
    source.set_models([ModelConfig("m", str(tmp_path), policy=Latest(2))])
    source.poll()
    add_version(tmp_path, 2)
    add_version(tmp_path, 3)
    source.poll()
    assert aspired.take() == [("m", [1]), ("m", [2, 3])]


def test_a_missing_base_path_holds_up_only_its_own_model(tmp_path, add_version, source, aspired):
    add_version(tmp_path / "b", 1)
    gone = tmp_path / "a"
    source.set_models([ModelConfig("a", str(gone)), ModelConfig("b", str(tmp_path / "b"))])
    source.poll()
    assert aspired.take() == [("b", [1])]
    assert source.problems() == {
        "a": f"Could not find base path {gone} for servable a with error No such file or directory"
    }
    assert source.starved("a") == source.problem("a")
    assert source.starved("b") is None

    add_version(gone, 1)
    source.poll()
    assert ("a", [1]) in aspired.take()
    assert source.problem("a") is None


def test_a_base_path_that_vanishes_leaves_its_versions_alone(
    tmp_path, add_version, source, aspired
):
    base = tmp_path / "m"
    add_version(base, 1)
    source.set_models([ModelConfig("m", str(base))])
    source.poll()
    base.rename(tmp_path / "away")
    source.poll()
    assert aspired.take() == [("m", [1])]
    assert "Could not find base path" in source.problem("m")
    assert source.starved("m") is None


def test_the_last_version_directory_gone_aspires_none(tmp_path, add_version, source, aspired):
    version = add_version(tmp_path, 1)
    source.set_models([ModelConfig("m", str(tmp_path))])
    source.poll()
    version.rename(tmp_path / "1.denied")
    source.poll()
    assert aspired.take() == [("m", [1]), ("m", [])]
    assert source.problem("m").endswith("Found 1.denied.")


def test_an_incomplete_version_is_not_aspired_until_it_is_complete(
    tmp_path, add_version, source, aspired
):
    add_version(tmp_path, 1)
    add_version(tmp_path, 2, "variables.index")
    source.set_models([ModelConfig("m", str(tmp_path))])
    source.poll()
    assert f"{tmp_path}/2 holds no complete model" in source.problem("m")
    add_version(tmp_path, 2)
    source.poll()
    assert aspired.take() == [("m", [1]), ("m", [2])]
    assert source.problem("m") is None


@pytest.mark.parametrize(
    ("wanted", "found", "text"),
    [
        ({1, 5, 4}, [1], "Version(s) 4, 5 of servable m not found under base path {}, which holds"),
        ({5}, [], "Version(s) 5 of servable m not found"),
        ((), [], "The version policy of servable m lists no version"),
    ],
)
def test_a_specific_policy_names_what_it_missed(
    tmp_path, add_version, source, aspired, wanted, found, text
):
    add_version(tmp_path, 1)
    add_version(tmp_path, 2)
    source.set_models([ModelConfig("m", str(tmp_path), policy=Specific(frozenset(wanted)))])
    source.poll()
    assert aspired.take() == [("m", found)]
    assert source.problem("m").startswith(text.format(tmp_path))


def test_models_left_out_are_aspired_no_more_at_once(tmp_path, add_version, source, aspired):
    add_version(tmp_path, 1)
    source.set_models([ModelConfig("a", str(tmp_path)), ModelConfig("b", str(tmp_path))])
    source.poll()
    aspired.take()
    source.set_models([ModelConfig("b", str(tmp_path))])
    assert aspired.take() == [("a", [])]
    assert source.starved("a") is None


def test_a_model_not_looked_at_yet_says_so(tmp_path, source):
    source.set_models([ModelConfig("m", str(tmp_path))])
    assert source.starved("m") == f"Base path {tmp_path} of servable m was not looked at yet"
    assert source.problem("m") is None


def test_a_problem_is_logged_once(tmp_path, source, caplog):
    source.set_models([ModelConfig("m", str(tmp_path))])
    source.poll()
    source.poll()
    assert len(caplog.records) == 1
