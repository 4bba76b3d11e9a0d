"""Every flag of TensorFlow Serving's ModelServer is known here, in each of its spellings."""

from __future__ import annotations

import pytest

from jupyter_tfserve.server.flags import SWITCHES, UNUSED, VALUES, normalise
from jupyter_tfserve.server.standalone import StandaloneManager, TFServeApp

# Of tensorflow_model_server --help, with a value that each takes.
SWITCHED = (
    "rest_api_enable_cors_support",
    "enable_batching",
    "enable_per_model_batching_parameters",
    "allow_version_labels_for_unavailable_models",
    "flush_filesystem_caches",
    "use_alts_credentials",
    "enable_model_warmup",
    "remove_unused_fields_from_bundle_metagraph",
    "prefer_tflite_model",
    "enable_signature_method_name_check",
    "xla_cpu_compilation_enabled",
    "xla_gpu_compilation_enabled",
    "enable_profiler",
    "skip_initialize_tpu",
    "enable_grpc_healthcheck_service",
    "enable_serialization_as_tensor_content",
)
VALUED = {
    "port": "8500",
    "grpc_socket_path": "/tmp/s",
    "rest_api_port": "8501",
    "rest_api_num_threads": "8",
    "rest_api_timeout_in_ms": "30000",
    "batching_parameters_file": "/b",
    "model_config_file": "/m",
    "model_config_file_poll_wait_seconds": "5",
    "model_name": "m",
    "model_base_path": "/m",
    "num_load_threads": "2",
    "num_unload_threads": "2",
    "max_num_load_retries": "-1",
    "load_retry_interval_micros": "1",
    "file_system_poll_wait_seconds": "-1",
    "tensorflow_session_parallelism": "2",
    "tensorflow_intra_op_parallelism": "2",
    "tensorflow_inter_op_parallelism": "2",
    "tensorflow_session_config_file": "/s",
    "ssl_config_file": "/s",
    "platform_config_file": "/p",
    "per_process_gpu_memory_fraction": "0.5",
    "saved_model_tags": "serve",
    "grpc_channel_arguments": "a=1,b=2",
    "grpc_max_threads": "8",
    "num_request_iterations_for_warmup": "2",
    "monitoring_config_file": "/m",
    "num_tflite_pools": "2",
    "num_tflite_interpreters_per_pool": "2",
    "thread_pool_factory_config_file": "/t",
    "mixed_precision": "bfloat16",
}
BEFORE, AFTER = "--model_name=before", "--model_name=after"


def read(*argv: str) -> list[str]:
    """What traitlets is told of a flag between two others, which have to come through."""
    flags = normalise([BEFORE, *argv, AFTER])
    assert not [n for n in flags.notices if "Unknown" in n or "belongs to no flag" in n]
    assert (flags.argv[0], flags.argv[-1]) == (BEFORE, AFTER)
    return flags.argv[1:-1]


@pytest.mark.parametrize("flag", SWITCHED)
def test_a_switch_is_known_in_every_spelling(flag: str) -> None:
    known = flag in SWITCHES
    for spelling, value in (
        ([f"--{flag}"], "true"),
        ([f"--{flag}=true"], "true"),
        ([f"--{flag}=1"], "1"),
        ([f"--{flag}=false"], "false"),
        ([f"--{flag}", "true"], "true"),
        ([f"--{flag}", "0"], "0"),
    ):
        assert read(*spelling) == ([f"--{flag}={value}"] if known else [])


@pytest.mark.parametrize(("flag", "value"), VALUED.items())
def test_a_value_is_known_in_both_spellings(flag: str, value: str) -> None:
    for spelling in ([f"--{flag}={value}"], [f"--{flag}", value]):
        assert read(*spelling) == ([f"--{flag}={value}"] if flag in VALUES else [])


@pytest.mark.parametrize("flag", [*SWITCHED, *VALUED])
def test_a_flag_is_a_setting_of_the_same_name_or_said_to_mean_nothing(flag: str) -> None:
    settings = {**TFServeApp.class_traits(config=True), **StandaloneManager.class_traits()}
    if flag in UNUSED:
        assert flag not in settings
        (notice,) = normalise([f"--{flag}={VALUED.get(flag, 'true')}"]).notices
        assert notice == f"--{flag} has no effect here: {UNUSED[flag]}"
    else:
        assert settings[flag].metadata["config"]
        assert settings[flag].help


def test_no_flag_stands_in_two_lists() -> None:
    lists = [*VALUES, *SWITCHES, *UNUSED]
    assert len(lists) == len(set(lists))
