"""TensorFlow Serving's parameters file, its defaults and its refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.batching.parameters import BatchingParameters
from jupyter_tfserve.pool.batching.parameters_text import (
    load_parameters,
    load_version_parameters,
)

ALL = """
max_batch_size { value: 128 }
batch_timeout_micros { value: 5000 }
max_enqueued_batches { value: 7 }
num_batch_threads { value: 3 }
thread_pool_name { value: "pool" }
allowed_batch_sizes: 8
allowed_batch_sizes: [32, 128]
pad_variable_length_inputs: true
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 64 }
"""


def test_every_field_is_read(tmp_path: Path) -> None:
    file = tmp_path / "batching.txt"
    file.write_text(ALL)
    assert load_parameters(str(file)) == BatchingParameters(
        max_batch_size=128,
        batch_timeout_micros=5000,
        max_enqueued_batches=7,
        num_batch_threads=3,
        thread_pool_name="pool",
        allowed_batch_sizes=(8, 32, 128),
        pad_variable_length_inputs=True,
        enable_large_batch_splitting=True,
        max_execution_batch_size=64,
    )


def test_what_is_not_set_has_tensorflow_servings_default(tmp_path: Path) -> None:
    file = tmp_path / "batching.txt"
    file.write_text("")
    read = load_parameters(str(file))
    assert read == BatchingParameters()
    assert (read.max_batch_size, read.batch_timeout_micros, read.max_enqueued_batches) == (
        1000,
        0,
        10,
    )
    assert read.num_batch_threads > 0
    assert read.thread_pool_name == "batch_threads"


def test_a_zero_that_is_written_is_a_zero(tmp_path: Path) -> None:
    file = tmp_path / "batching.txt"
    file.write_text("num_batch_threads { value: 0 } max_enqueued_batches { }")
    read = load_parameters(str(file))
    assert (read.num_batch_threads, read.max_enqueued_batches) == (0, 0)


@pytest.mark.parametrize(
    ("text", "place", "field"),
    [
        ("max_batch_size { value: 128 }\nbatch_timeout_micros: 5", "2:23", "batch_timeout_micros"),
        ("max_batch_size { value: many }", "1:25", "many"),
        ("\n\nmax_batch: 1", "3:1", '"max_batch"'),
    ],
)
def test_a_refusal_names_file_line_and_field(
    tmp_path: Path, text: str, place: str, field: str
) -> None:
    file = tmp_path / "batching.txt"
    file.write_text(text)
    with pytest.raises(ServingError) as refused:
        load_parameters(str(file))
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message.startswith(f"Invalid protobuf file: '{file}': {place}")
    assert field in refused.value.message


def test_a_version_without_a_file_has_no_parameters(tmp_path: Path) -> None:
    assert load_version_parameters(str(tmp_path)) is None
    (tmp_path / "batching_params.pbtxt").write_text("max_batch_size { value: 3 }")
    read = load_version_parameters(str(tmp_path))
    assert read is not None
    assert read.max_batch_size == 3


def test_the_last_allowed_size_has_to_be_the_largest_batch() -> None:
    with pytest.raises(ServingError) as refused:
        BatchingParameters(
            max_batch_size=9, allowed_batch_sizes=(2, 8), enable_large_batch_splitting=True
        ).check_queue()
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message == (
        "Last entry in allowed_batch_sizes must match max_batch_size; last entry was 8; expected 9"
    )
    BatchingParameters(max_batch_size=8, allowed_batch_sizes=(2, 8)).check_queue()


def test_there_has_to_be_a_thread() -> None:
    with pytest.raises(ServingError, match="num_batch_threads must be positive; was 0"):
        BatchingParameters(num_batch_threads=0).check_threads()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_batch_size": 0},
        {"batch_timeout_micros": -1},
        {"max_enqueued_batches": 0, "enable_large_batch_splitting": True},
        {"max_execution_batch_size": 1001, "enable_large_batch_splitting": True},
    ],
    ids=str,
)
def test_values_without_a_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ServingError) as refused:
        BatchingParameters(**wrong).check_queue()
    assert refused.value.code is Code.INVALID_ARGUMENT


def test_no_waiting_batches_are_one_unless_requests_are_split() -> None:
    assert BatchingParameters(max_enqueued_batches=0).queue_length == 1
    assert BatchingParameters(max_execution_batch_size=5).execution_size == 1000
    split = BatchingParameters(enable_large_batch_splitting=True, max_execution_batch_size=5)
    assert split.execution_size == 5
