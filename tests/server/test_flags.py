"""TensorFlow Serving's flags in all their spellings."""

import pytest

from jupyter_tfserve.server.flags import FlagError, normalise


@pytest.mark.parametrize(
    ("argv", "normal"),
    [
        (["--rest_api_port=8501"], ["--rest_api_port=8501"]),
        (["--model_name", "m"], ["--model_name=m"]),
        (["--model_name="], ["--model_name="]),
        (["--model_base_path=/a=b"], ["--model_base_path=/a=b"]),
        (["--strict_start"], ["--strict_start=true"]),
        (["--strict_start=1"], ["--strict_start=1"]),
        (["--strict_start", "--model_name=m"], ["--strict_start=true", "--model_name=m"]),
        (["--max_num_load_retries", "-1"], ["--max_num_load_retries=-1"]),
        (
            ["--PoolManager.start_timeout=5", "--debug"],
            ["--PoolManager.start_timeout=5", "--debug"],
        ),
        (["--log-level", "DEBUG"], ["--log-level", "DEBUG"]),
        (["--port", "0", "--enable_profiler", "false", "--strict_start"], ["--strict_start=true"]),
        (["--enable_model_warmup=false"], ["--enable_model_warmup=false"]),
        (
            ["--prefer_tflite_model", "--num_tflite_pools", "2"],
            ["--prefer_tflite_model=true", "--num_tflite_pools=2"],
        ),
        (["--strict_start", "False", "--debug"], ["--strict_start=False", "--debug"]),
    ],
)
def test_each_spelling_becomes_one_that_traitlets_reads(argv: list[str], normal: list[str]) -> None:
    flags = normalise(argv)
    assert flags.argv == normal
    assert flags.notices == []


def test_flags_without_a_meaning_here_are_taken_with_a_notice() -> None:
    flags = normalise(["--mixed_precision", "--port=0", "--enable_profiler=false", "--port=8500"])
    assert flags.argv == []
    assert [notice.partition(":")[0] for notice in flags.notices] == [
        "--mixed_precision has no effect here",
        "--port has no effect here",
    ]


def test_what_belongs_to_no_flag_is_told() -> None:
    flags = normalise(["m", "--strict_start", "no", "--model_name=n"])
    assert flags.argv == ["--strict_start=true", "--model_name=n"]
    assert flags.notices == [
        "Argument 'm' belongs to no flag and is ignored",
        "Argument 'no' belongs to no flag and is ignored",
    ]


@pytest.mark.parametrize("rest", [[], ["--debug"]])
def test_a_flag_without_its_value_is_named_as_it_was_written(rest: list[str]) -> None:
    with pytest.raises(FlagError, match=r"^--model_name needs a value: --model_name=VALUE$"):
        normalise(["--model_name", *rest])


def test_an_unknown_flag_is_told_and_stops_nothing() -> None:
    flags = normalise(["--modle_name=m", "--model_name=n"])
    assert flags.argv == ["--model_name=n"]
    assert flags.notices == ["Unknown flag --modle_name=m is ignored; --help lists the known ones"]
