"""TFLite models: what they are called by, what they take, and what is refused."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.servables.loaders import PathLoader
from jupyter_tfserve.pool.servables.tflite import TFLiteServable

Load = Callable[[str], TFLiteServable]


@pytest.fixture
def load(model_dir: Path) -> Iterator[Load]:
    loaded = []

    def load(path: str) -> TFLiteServable:
        servable = TFLiteServable(str(model_dir / path / "model.tflite"))
        loaded.append(servable)
        return servable

    yield load
    for servable in loaded:
        servable.close()


def test_inputs_and_outputs_have_the_names_of_the_signature(load: Load) -> None:
    servable = load("tflite/1")
    (signature,) = servable.signatures.values()
    assert signature.key == "serving_default"
    assert {k: (v.dtype, v.shape) for k, v in signature.inputs.items()} == {"x": ("float", (-1, 2))}
    assert {k: v.shape for k, v in signature.outputs.items()} == {"total": (), "y": (-1, 2)}


def test_inputs_are_resized_to_every_request(load: Load) -> None:
    servable = load("tflite/1")
    for rows in (1, 3, 3, 0, 2):
        x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        outputs = servable.call("serving_default", {"x": x})
        np.testing.assert_array_equal(outputs["y"], x * 2)
        assert (outputs["total"].shape, outputs["total"]) == ((), x.sum())


def test_only_the_outputs_asked_for_are_given(load: Load) -> None:
    x = np.ones((1, 2), np.float32)
    assert load("tflite/1").call("serving_default", {"x": x}, ["total"]) == {"total": 2.0}


def test_strings_are_bytes_both_ways(load: Load) -> None:
    strings = np.array([b"a\x00\xff", b"", b"c"], object)
    first = load("tflite/2").call("serving_default", {"s": strings})["first"]
    assert isinstance(first, np.ndarray)
    assert first.tolist() == [b"a\x00\xff"]


def test_quantised_dtypes_stay_what_they_are(load: Load) -> None:
    servable = load("tflite_uint8/1")
    (x,) = servable.signatures["serving_default"].inputs.items()
    assert (x[0], x[1].dtype) == ("x", "uint8")
    (output,) = servable.call("serving_default", {"x": np.ones((2, 8), np.uint8)}).values()
    assert (output.dtype, output.shape) == (np.int8, (2, 3))


def test_several_signatures_keep_their_keys(load: Load) -> None:
    servable = load("tflite_signatures/1")
    assert list(servable.signatures) == ["double", "negate"]
    negative = servable.call("negate", {"k": np.array([1, -2, 3], np.int32)})["negative"]
    np.testing.assert_array_equal(negative, np.array([-1, 2, -3]))
    assert servable.call("double", {"x": np.ones((1, 2), np.float32)})["total"] == 2.0


def test_metadata_reads_like_a_saved_models(load: Load) -> None:
    metadata = json.loads(load("tflite/1").metadata)
    default = metadata["signature_def"]["serving_default"]
    assert default["method_name"] == "tensorflow/serving/predict"
    assert default["inputs"]["x"]["dtype"] == "DT_FLOAT"
    sizes = [dim["size"] for dim in default["inputs"]["x"]["tensor_shape"]["dim"]]
    assert sizes == ["-1", "2"]


def test_an_op_that_the_interpreter_lacks_is_refused_by_its_name(load: Load) -> None:
    with pytest.raises(ServingError, match="uses the op FlexMatrixDeterminant, which") as refused:
        load("tflite_flex/1")
    assert refused.value.code is Code.UNIMPLEMENTED


def test_a_shape_that_does_not_fit_is_refused_and_spoils_nothing(load: Load) -> None:
    servable = load("tflite_uint8/1")
    with pytest.raises(ServingError, match=r"TFLite cannot run on x \[2, 3\]: ") as refused:
        servable.call("serving_default", {"x": np.ones((2, 3), np.uint8)})
    assert refused.value.code is Code.INVALID_ARGUMENT
    (output,) = servable.call("serving_default", {"x": np.ones((2, 8), np.uint8)}).values()
    assert output.shape == (2, 3)


def test_a_wrong_dtype_is_refused_in_the_words_of_a_session_run(load: Load) -> None:
    with pytest.raises(ServingError) as refused:
        load("tflite/1").call("serving_default", {"x": np.ones((1, 2))})
    assert refused.value.message == "Expects arg[0] to be float but double is provided"


@pytest.mark.parametrize("content", [b"", b"no flatbuffer", bytes(5000)])
def test_another_file_is_refused_with_its_path(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(content)
    with pytest.raises(ServingError, match=str(file)) as refused:
        TFLiteServable(str(file))
    assert refused.value.code is Code.DATA_LOSS


def test_without_litert_it_says_what_to_install(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    with pytest.raises(ServingError, match="pip install ai-edge-litert") as refused:
        load("tflite/1")
    assert refused.value.code is Code.FAILED_PRECONDITION


def test_threads_may_call_at_the_same_time(load: Load) -> None:
    servable = load("tflite/1")
    wrong: list[int] = []

    def call(rows: int) -> None:
        x = np.full((rows, 2), rows, np.float32)
        for _ in range(100):
            outputs = servable.call("serving_default", {"x": x})
            if not np.array_equal(outputs["y"], x * 2) or outputs["total"] != x.sum():
                wrong.append(rows)

    threads = [threading.Thread(target=call, args=(rows,)) for rows in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


@pytest.mark.parametrize(("prefer", "answer"), [(False, 3.0), (True, 4.0)])
def test_tflite_beside_a_saved_model_is_taken_where_it_is_preferred(
    model_dir: Path, prefer: bool, answer: float
) -> None:
    loader = PathLoader(str(model_dir / "tflite_beside" / "00000123"), prefer_tflite=prefer)
    servable = loader.load()
    x = np.full((1, 2 if prefer else 1), 2, np.float32)
    assert servable.call("serving_default", {"x": x})["y"].flat[0] == answer
    loader.unload()
