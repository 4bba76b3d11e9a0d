"""TensorFlow Serving's command-line flags, in all their spellings, made ready for traitlets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

VALUES = (
    "model_name",
    "model_base_path",
    "model_config_file",
    "model_config_file_poll_wait_seconds",
    "rest_api_port",
    "rest_api_host",
    "rest_api_timeout_in_ms",
    "rest_api_num_threads",
    "file_system_poll_wait_seconds",
    "max_num_load_retries",
    "load_retry_interval_micros",
    "num_load_threads",
    "saved_model_tags",
    "tensorflow_session_parallelism",
    "tensorflow_intra_op_parallelism",
    "tensorflow_session_config_file",
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
    "resource_preserving",
    "strict_start",
)
"""Flags that are on or off; bare is on."""

_GRPC = "gRPC is not served"
_TPU = "TPUs are not served"
UNUSED = {
    "port": _GRPC,
    "grpc_socket_path": _GRPC,
    "grpc_channel_arguments": _GRPC,
    "grpc_max_threads": _GRPC,
    "use_alts_credentials": _GRPC,
    "ssl_config_file": f"{_GRPC}, which alone it secures",
    "enable_grpc_healthcheck_service": _GRPC,
    "enable_profiler": f"{_GRPC}, by which alone a profiler connects",
    "enable_serialization_as_tensor_content": f"{_GRPC}, whose answers alone it changes",
    "num_unload_threads": "each version is unloaded in a thread of its own",
    "flush_filesystem_caches": "the operating system gives back the memory of its caches by itself",
    "tensorflow_inter_op_parallelism": "a call runs in one thread, beside others",
    "platform_config_file": "the only platform is tensorflow",
    "remove_unused_fields_from_bundle_metagraph": "what a model's metadata needs is kept, no more",
    "num_tflite_interpreters_per_pool": "an interpreter runs one call at a time",
    "xla_cpu_compilation_enabled": "models run as they were saved",
    "xla_gpu_compilation_enabled": "models run as they were saved",
    "mixed_precision": "models run as they were saved",
    "thread_pool_factory_config_file": "a factory of thread pools is C++ linked into the original",
    "skip_initialize_tpu": _TPU,
}
"""Flags of TensorFlow Serving that change nothing here, and why."""

_JUPYTER = frozenset(
    ("help", "help-all", "version", "debug", "config", "log-level", "generate-config",
     "show-config", "show-config-json")
)  # fmt: skip
_OFF = ("0", "false", "")
_TRUTHS = ("true", "false", "1", "0")


class FlagError(ValueError):
    """A flag that cannot be read; the text is for the user."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Arguments that traitlets understands, and what is to be said about the others."""

    argv: list[str]
    notices: list[str]


def normalise(argv: Sequence[str]) -> Flags:
    """Rewrite ``--x``, ``--x=1``, ``--x value``; leave out, with a notice, what has no meaning.

    An unknown flag stops nothing, as in TensorFlow Serving.

    Raises:
        FlagError: for a flag that lacks its value.
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
            values = [value] if equals else _take_truth(arguments)
            flags.argv.append(f"--{name}={values[0] if values else 'true'}")
        elif name in VALUES:
            values = [value] if equals else _take_value(arguments)
            if not values:
                raise FlagError(f"--{name} needs a value: --{name}=VALUE")
            flags.argv.append(f"--{name}={values[0]}")
        elif name in UNUSED:
            values = [value] if equals else _take_value(arguments)
            if not values or values[0].lower() not in _OFF:
                flags.notices.append(f"--{name} has no effect here: {UNUSED[name]}")
        else:
            flags.notices.append(f"Unknown flag {argument} is ignored; --help lists the known ones")
    return flags


def _take_value(arguments: list[str]) -> list[str]:
    """The value after a flag that is written without ``=``; nothing where another flag follows."""
    return [arguments.pop(0)] if arguments and not arguments[0].startswith("--") else []


def _take_truth(arguments: list[str]) -> list[str]:
    """The same for a switch, which takes nothing but a truth value."""
    is_truth = bool(arguments) and arguments[0].lower() in _TRUTHS
    return [arguments.pop(0)] if is_truth else []
