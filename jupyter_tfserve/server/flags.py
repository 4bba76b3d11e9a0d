"""TensorFlow Serving's command-line flags, in all their spellings, made ready for traitlets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

VALUES = (
    "model_name",
    "model_base_path",
    "model_config_file",
    "rest_api_port",
    "rest_api_host",
    "rest_api_timeout_in_ms",
    "file_system_poll_wait_seconds",
    "max_num_load_retries",
    "load_retry_interval_micros",
    "num_load_threads",
    "saved_model_tags",
    "monitoring_config_file",
    "batching_parameters_file",
    "num_request_iterations_for_warmup",
    "num_tflite_pools",
    "per_process_gpu_memory_fraction",
    "kernel_name",
)
"""Flags that take a value, in the order in which --help tells them."""

SWITCHES = (
    "rest_api_enable_cors_support",
    "allow_version_labels_for_unavailable_models",
    "enable_signature_method_name_check",
    "enable_greedy_batching",
    "enable_batching",
    "enable_per_model_batching_parameters",
    "enable_model_warmup",
    "prefer_tflite_model",
    "strict_start",
)
"""Flags that are on or off; bare is on."""

UNUSED = frozenset(
    (
        "port",
        "grpc_socket_path",
        "rest_api_num_threads",
        "model_config_file_poll_wait_seconds",
        "num_unload_threads",
        "flush_filesystem_caches",
        "tensorflow_session_parallelism",
        "tensorflow_intra_op_parallelism",
        "tensorflow_inter_op_parallelism",
        "tensorflow_session_config_file",
        "use_alts_credentials",
        "ssl_config_file",
        "platform_config_file",
        "grpc_channel_arguments",
        "grpc_max_threads",
        "remove_unused_fields_from_bundle_metagraph",
        "num_tflite_interpreters_per_pool",
        "xla_cpu_compilation_enabled",
        "xla_gpu_compilation_enabled",
        "enable_profiler",
        "thread_pool_factory_config_file",
        "mixed_precision",
        "skip_initialize_tpu",
        "enable_grpc_healthcheck_service",
        "enable_serialization_as_tensor_content",
    )
)
"""Flags of TensorFlow Serving that change nothing here."""

_JUPYTER = frozenset(
    ("help", "help-all", "version", "debug", "config", "log-level", "generate-config",
     "show-config", "show-config-json")
)  # fmt: skip
_OFF = ("0", "false", "")


@dataclass(frozen=True, slots=True)
class Flags:
    """Arguments that traitlets understands, and what is to be said about the others."""

    argv: list[str]
    notices: list[str]


def normalise(argv: Sequence[str]) -> Flags:
    """Rewrite ``--x``, ``--x=1``, ``--x value``; leave out, with a notice, what has no meaning.

    An unknown flag stops nothing, as in TensorFlow Serving.
    """
    flags = Flags([], [])
    arguments = list(argv)
    while arguments:
        argument = arguments.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("-"):
            flags.notices.append(f"Argument {argument!r} belongs to no flag and is ignored")
        elif not argument.startswith("--") or name in _JUPYTER or "." in name:
            flags.argv.extend([argument] if equals else [argument, *_take_value(arguments)])
        elif name in SWITCHES:
            flags.argv.append(f"--{name}={value if equals else 'true'}")
        elif name in VALUES:
            values = [value] if equals else _take_value(arguments)
            flags.argv.append("=".join([f"--{name}", *values]))
        elif name in UNUSED:
            values = [value] if equals else _take_value(arguments)
            if not values or values[0].lower() not in _OFF:
                flags.notices.append(f"--{name} has no effect here")
        else:
            flags.notices.append(f"Unknown flag {argument} is ignored; --help lists the known ones")
    return flags


def _take_value(arguments: list[str]) -> list[str]:
    """The value after a flag that is written without ``=``; nothing where another flag follows."""
    return [arguments.pop(0)] if arguments and not arguments[0].startswith("--") else []
