"""Warm-up: what is replayed before a version is available, and what fails its load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tensorflow_serving.apis import prediction_log_pb2

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.servables.loaders import PathLoader
from jupyter_tfserve.pool.servables.records import read_records, write_records
from jupyter_tfserve.pool.tensor_proto import fill
from jupyter_tfserve.pool.warmup import WARMUP_FILE, WarmingLoader, Warmup

if TYPE_CHECKING:
    from jupyter_tfserve.pool.servables.base import Servable

Log = prediction_log_pb2.PredictionLog
Prepare = Callable[[str, Sequence[Any] | bytes], Path]


@pytest.fixture
def prepare(model_dir: Path, tmp_path: Path) -> Prepare:
    """A copy of a version with a warm-up file of messages, or of these very bytes."""

    def prepare(version: str, content: Sequence[Any] | bytes) -> Path:
        copy = tmp_path / "version"
        copytree(model_dir / version, copy)
        file = copy / WARMUP_FILE
        file.parent.mkdir()
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            write_records(str(file), [message.SerializeToString() for message in content])
        return copy

    return prepare


def load(path: Path, iterations: int = 1) -> tuple[Servable, list[Warmup]]:
    told: list[Warmup] = []
    loader = WarmingLoader(PathLoader(str(path)), str(path), iterations, told.append)
    return loader.load(), told


def predict(signature: str = "", **inputs: Any) -> Any:
    log = Log()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    for alias, array in inputs.items():
        fill(request.inputs[alias], np.asarray(array))
    return log


def example(request: Any, x: float) -> None:
    added = request.input.example_list.examples.add()
    added.features.feature["x"].float_list.value.append(x)


def classify(signature: str = "classify_x_to_y") -> Any:
    log = Log()
    log.classify_log.request.model_spec.signature_name = signature
    example(log.classify_log.request, 2.0)
    return log


def regress(signature: str = "regress_x_to_y") -> Any:
    log = Log()
    log.regress_log.request.model_spec.signature_name = signature
    example(log.regress_log.request, 2.0)
    return log


def multi_inference(*tasks: tuple[str, str], examples: int = 1) -> Any:
    log = Log()
    request = log.multi_inference_log.request
    for signature, method in tasks:
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name = "m"
        task.model_spec.signature_name = signature
    for _ in range(examples):
        example(request, 2.0)
    return log


def test_every_record_is_replayed_in_its_order_as_often_as_asked(prepare: Prepare) -> None:
    path = prepare(
        "counter/123",
        [predict("incr_counter_by", delta=np.float32(2)), Log(), predict("incr_counter")],
    )
    servable, (warmup,) = load(path, iterations=3)
    assert servable.call("get_counter", {})["output"] == 9.0
    assert (warmup.path, warmup.records, warmup.error) == (str(path), 3, None)
    assert warmup.seconds > 0
    assert servable.warmup == warmup
    servable.close()


def test_all_four_kinds_are_replayed(prepare: Prepare) -> None:
    both = multi_inference(("regress_x_to_y", "regress"), ("classify_x_to_y", "classify"))
    logs = [predict(x=np.ones((1, 1), np.float32)), classify(), regress(), both]
    servable, (warmup,) = load(prepare("half_plus_two/00000123", logs))
    assert warmup.records == 4
    servable.close()


def test_nothing_to_replay_is_fine(model_dir: Path, prepare: Prepare) -> None:
    servable, told = load(model_dir / "half_plus_two" / "00000123")
    assert told == []
    servable.close()
    servable, (warmup,) = load(prepare("half_plus_two/00000123", b""))
    assert warmup.records == 0
    servable.close()


def test_a_failing_request_fails_the_load_and_is_named(prepare: Prepare) -> None:
    good = predict(x=np.ones((1, 1), np.float32))
    path = prepare("half_plus_two/00000123", [good, predict(x=np.ones((1, 1)))])
    told: list[Warmup] = []
    loader = WarmingLoader(PathLoader(str(path)), str(path), 1, told.append)
    for _ in range(2):  # a failed load may be tried again on the same loader
        with pytest.raises(ServingError) as refused:
            loader.load()
        assert refused.value.code is Code.INVALID_ARGUMENT
        assert refused.value.message == (
            "Expects arg[0] to be float but double is provided "
            f"(warm-up record 2 of {path / WARMUP_FILE})"
        )
    assert [(each.records, each.error is None) for each in told] == [(1, False)] * 2


@pytest.mark.parametrize(
    ("log", "code", "text"),
    [
        (
            predict(**{"image:0": np.float32(1)}),
            Code.INVALID_ARGUMENT,
            "Signature input alias: x(feed name: x:0) not found in request and no default value "
            "provided. Inputs expected to be in the request {image:0}, or default input alias set: "
            "{}",
        ),
        (
            predict(),
            Code.INVALID_ARGUMENT,
            "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}. "
            "Missing but required: {x}.",
        ),
        (
            predict("gone"),
            Code.FAILED_PRECONDITION,
            'Serving signature key "gone" not found.',
        ),
        (classify("gone"), Code.INVALID_ARGUMENT, "No signature was found with the name: gone"),
        (regress("serving_default"), Code.INVALID_ARGUMENT, "No regression inputs found in"),
        (
            multi_inference(("gone", "regress")),
            Code.INVALID_ARGUMENT,
            "Requested signature not found in model graph: gone",
        ),
        (
            multi_inference(("regress_x_to_y", "regress"), ("regress_x_to_y", "regress")),
            Code.INVALID_ARGUMENT,
            "Duplicate evaluation of signature: regress_x_to_y",
        ),
        (
            multi_inference(("serving_default", "predict")),
            Code.UNIMPLEMENTED,
            "Unsupported signature method_name: tensorflow/serving/predict",
        ),
        (
            multi_inference(("regress_x_to_y", "regress"), examples=0),
            Code.INVALID_ARGUMENT,
            "Input is empty.",
        ),
        (
            Log(session_run_log=prediction_log_pb2.SessionRunLog()),
            Code.UNIMPLEMENTED,
            "Unsupported log_type for warmup: 5",
        ),
        (
            Log(predict_streamed_log=prediction_log_pb2.PredictStreamedLog()),
            Code.UNIMPLEMENTED,
            "Unsupported log_type for warmup: 7",
        ),
    ],
)
def test_a_request_is_refused_in_tensorflow_servings_words(
    prepare: Prepare, log: Any, code: Code, text: str
) -> None:
    path = prepare("half_plus_two/00000123", [log])
    with pytest.raises(ServingError) as refused:
        load(path)
    assert refused.value.code is code
    assert refused.value.message.startswith(text)


def test_a_thousand_records_are_the_limit(prepare: Prepare) -> None:
    path = prepare("half_plus_two/00000123", [Log()] * 1001)
    file = path / WARMUP_FILE
    with pytest.raises(ServingError) as refused:
        load(path)
    assert refused.value.code is Code.INVALID_ARGUMENT
    text = f"Number of warmup records exceeds the maximum (1000) at {file}"
    assert refused.value.message == text
    records = list(read_records(str(file)))
    write_records(str(file), records[:1000])
    servable, (warmup,) = load(path)
    assert warmup.records == 1000
    servable.close()


def test_a_record_that_is_no_prediction_log_is_quoted(prepare: Prepare) -> None:
    path = prepare("half_plus_two/00000123", [])
    write_records(str(path / WARMUP_FILE), [b"no proto\xff"])
    with pytest.raises(ServingError) as refused:
        load(path)
    assert refused.value.code is Code.INVALID_ARGUMENT
    quoted = b"no proto\xff".decode("utf-8", "surrogateescape")
    assert refused.value.message == (
        f"Failed to parse warmup record: {quoted} from {path / WARMUP_FILE}"
    )


@pytest.mark.parametrize("damage", ["other format", "cut", "flipped bit"])
def test_a_file_that_is_no_tfrecord_is_data_loss(prepare: Prepare, damage: str) -> None:
    path = prepare("half_plus_two/00000123", [predict(x=np.ones((1, 1), np.float32))])
    file = path / WARMUP_FILE
    content = bytearray(file.read_bytes())
    if damage == "other format":
        content[:] = b"these are no records at all, but a text"
    elif damage == "cut":
        del content[-5:]
    else:
        content[20] ^= 1
    file.write_bytes(content)
    with pytest.raises(ServingError) as refused:
        load(path)
    assert refused.value.code is Code.DATA_LOSS
    assert refused.value.message.endswith(". Please verify your warmup data is in TFRecord format.")


def test_a_file_of_nearly_the_right_name_is_told(
    prepare: Prepare, caplog: pytest.LogCaptureFixture
) -> None:
    path = prepare("half_plus_two/00000123", b"")
    file = path / WARMUP_FILE
    file.rename(file.with_name("tf_serving_warmup_request"))
    with caplog.at_level(logging.WARNING):
        load(path)[0].close()
    assert "tf_serving_warmup_request looks like a warm-up file" in caplog.text
