"""SavedModels run through a session: what it takes, and in whose words it refuses."""

from __future__ import annotations

import json
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.servables.saved_model import SavedModelServable

Load = Callable[[str], SavedModelServable]


@pytest.fixture
def load(model_dir: Path) -> Iterator[Load]:
    loaded = []

    def load(path: str) -> SavedModelServable:
        servable = SavedModelServable(str(model_dir / path))
        loaded.append(servable)
        return servable

    yield load
    for servable in loaded:
        servable.close()


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_shapes_beyond_the_placeholders_static_one_are_passed_on(load: Load) -> None:
    servable = load("half_plus_three/00000123")
    for x in (floats(1, 2, 5), np.float32(1).reshape(()), np.ones((2, 3), np.float32)):
        (y,) = servable.call("serving_default", {"x": x}).values()
        assert isinstance(y, np.ndarray)
        np.testing.assert_array_equal(y, x / 2 + 3)


def test_reference_variables_keep_their_state_between_calls(load: Load) -> None:
    servable = load("counter/123")
    start = servable.call("get_counter", {})["output"]
    servable.call("incr_counter_by", {"delta": np.float32(3)})
    assert servable.call("get_counter", {})["output"] == start + 3


def test_only_the_outputs_asked_for_are_computed(load: Load) -> None:
    servable = load("multi_io/1")
    inputs = {"a": floats(1, 2), "b": floats(3, 4)}
    assert servable.call("serving_default", inputs).keys() == {"sum", "diff"}
    (only,) = servable.call("serving_default", inputs, ["diff"]).items()
    assert only[0] == "diff"
    np.testing.assert_array_equal(only[1], floats(-2, -2))


def test_strings_are_bytes_both_ways_and_scalars_are_arrays(load: Load) -> None:
    servable = load("scalar_out/1")
    strings = np.array([b"a\x00\xff", b""], object)
    joined = servable.call("scalar_str", {"x": strings})["s_bytes"]
    assert joined.shape == ()
    assert joined.item().startswith(b"a\x00\xff")
    total = servable.call("serving_default", {"x": floats(1, 2)})["s"]
    assert (total.shape, total.dtype, total.item()) == ((), np.float32, 3.0)


def test_a_wrong_dtype_is_refused_in_the_words_of_a_session_run(load: Load) -> None:
    with pytest.raises(ServingError) as refused:
        load("multi_io/1").call("serving_default", {"a": floats(1), "b": np.array([b"x"], object)})
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message == "Expects arg[1] to be float but string is provided"


def test_a_damaged_file_is_another_thing_than_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match="does not exist at") as missing:
        SavedModelServable(str(tmp_path))
    assert missing.value.code is Code.NOT_FOUND
    (tmp_path / "saved_model.pb").write_bytes(b"half a mod")
    with pytest.raises(ServingError, match="Cannot parse file") as damaged:
        SavedModelServable(str(tmp_path))
    assert damaged.value.code is Code.DATA_LOSS


def test_an_op_that_fails_says_why_with_its_code(load: Load) -> None:
    with pytest.raises(ServingError) as refused:
        load("fails/1").call("serving_default", {"x": floats(float("nan"))})
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert "Tensor had NaN values" in refused.value.message


def test_metadata_lists_every_signature_in_the_protos_own_order(load: Load) -> None:
    metadata = json.loads(load("half_plus_two/00000123").metadata)
    default = metadata["signature_def"]["serving_default"]
    assert list(default) == ["inputs", "outputs", "method_name", "defaults"]
    assert default["inputs"]["x"] == {
        "name": "x:0",
        "dtype": "DT_FLOAT",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "1", "name": ""}],
            "unknown_rank": False,
        },
    }


@pytest.mark.parametrize("content", [None, b"", b"not a protobuf \xff\xff"])
def test_what_is_no_saved_model_is_refused_with_its_path(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises(ServingError, match=r"\S") as refused:
        SavedModelServable(str(tmp_path))
    if content != b"":
        assert str(tmp_path) in refused.value.message


def test_missing_tags_are_named(model_dir: Path) -> None:
    with pytest.raises(ServingError, match="gpu"):
        SavedModelServable(str(model_dir / "half_plus_two/00000123"), ("serve", "gpu"))


def test_threads_may_call_at_the_same_time(load: Load) -> None:
    servable = load("mlp/1")
    signature = servable.signatures["serving_default"]
    (alias,) = signature.inputs
    rng = np.random.default_rng(0)
    batches = [rng.random((n, 16), np.float32) for n in range(1, 9)]
    alone = [servable.call("serving_default", {alias: batch}) for batch in batches]
    wrong: list[int] = []

    def call(index: int) -> None:
        for _ in range(50):
            together = servable.call("serving_default", {alias: batches[index]})
            if any(not np.array_equal(together[k], alone[index][k]) for k in together):
                wrong.append(index)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_version_that_is_closed_leaves_no_graph_behind(model_dir: Path) -> None:
    servable = SavedModelServable(str(model_dir / "half_plus_two" / "00000123"))
    servable.call("serving_default", {"x": np.ones((1, 1), np.float32)})
    assert servable.metadata
    graph = weakref.ref(servable._session.graph)
    servable.close()
    assert graph() is None


@pytest.mark.parametrize("moved", [False, True])
def test_tables_are_filled_from_the_models_own_files(
    model_dir: Path, tmp_path: Path, moved: bool
) -> None:
    """O15: the init operation is run, with the paths of assets where the model lies now."""
    path = model_dir / "vocabulary" / "1"
    if moved:
        path = shutil.copytree(path, tmp_path / "elsewhere" / "7")
    servable = SavedModelServable(str(path))
    words = np.array([b"two", b"one", b"none"], object)
    answer = servable.call("serving_default", {"word": words})["id"]
    servable.close()
    assert isinstance(answer, np.ndarray)
    np.testing.assert_array_equal(answer, [1, 0, -1])
