"""What can be set about pools: traits, called as TensorFlow Serving's flags where it has one."""

from __future__ import annotations

from traitlets import Any as AnyTrait
from traitlets import Bool, Dict, Float, Int, Unicode
from traitlets.config import LoggingConfigurable

from .pool_kernel import KernelOptions


class PoolSettings(LoggingConfigurable):
    """The traits of :class:`.pool_manager.PoolManager`."""

    model_name = Unicode("default", config=True, help="Name of the model at model_base_path.")
    model_base_path = Unicode(
        "",
        config=True,
        help="Folder whose numbered sub-folders are the versions of the model to serve. "
        "Ignored where model_config_file is set.",
    )
    model_config_file = Unicode(
        "",
        config=True,
        help="File with a ModelServerConfig in protobuf text format: many models, their version "
        "policies and labels.",
    )
    file_system_poll_wait_seconds = Float(
        1,
        config=True,
        help="Time between two looks for new versions, in seconds; 0 looks once, a negative number "
        "never.",
    )
    allow_version_labels_for_unavailable_models = Bool(
        False,
        config=True,
        help="Allow labels that are not in use to be assigned to versions that are not available.",
    )
    max_num_load_retries = Int(
        0, config=True, help="How often a failed load is repeated before the version is given up."
    )
    load_retry_interval_micros = Int(
        60_000_000,
        config=True,
        help="Time between two attempts to load a version, in microseconds.",
    )
    num_load_threads = Int(
        0, config=True, help="Versions that may load at a time; 0 is one for each CPU."
    )
    rest_api_timeout_in_ms = Int(
        30_000, config=True, help="Time-out of one call, in milliseconds; 0 or less is none."
    )
    saved_model_tags = Unicode(
        "serve", config=True, help="Comma-separated tags of the graph to load from a SavedModel."
    )
    enable_signature_method_name_check = Bool(
        False, config=True, help="Refuse calls whose signature has another method name."
    )
    kernel_name = Unicode(
        "python3",
        config=True,
        help="The kernel that the model pool runs in; TensorFlow and jupyter_tfserve have to be "
        "installed in its environment.",
    )
    start_timeout = Float(
        120, config=True, help="How long the kernel may take to start its pool, in seconds."
    )
    max_in_flight = Int(1024, config=True, help="Requests that a pool may have in flight.")
    max_in_flight_per_model = Int(
        256, config=True, help="Requests that one model may have in flight."
    )
    max_body_bytes = Int(
        512 << 20, config=True, help="Largest body of a request that is accepted, in bytes."
    )

    kernel_spec_manager = AnyTrait(help="Where kernels are looked up; None is Jupyter's default.")
    http = Dict(None, allow_none=True, help="What a pool that serves HTTP itself is told, or None.")

    def kernel_options(self) -> KernelOptions:
        """How to start a pool by these settings."""
        pool = {
            "core": {
                "file_system_poll_wait_seconds": self.file_system_poll_wait_seconds,
                "max_num_load_retries": self.max_num_load_retries,
                "load_retry_interval_micros": self.load_retry_interval_micros,
                "num_load_threads": self.num_load_threads,
                "allow_version_labels_for_unavailable_models": (
                    self.allow_version_labels_for_unavailable_models
                ),
            },
            "inference": {
                "rest_api_timeout_in_ms": self.rest_api_timeout_in_ms,
                "max_in_flight": self.max_in_flight,
                "max_in_flight_per_model": self.max_in_flight_per_model,
                "max_body_bytes": self.max_body_bytes,
                "saved_model_tags": self.saved_model_tags,
                "enable_signature_method_name_check": self.enable_signature_method_name_check,
            },
            "http": self.http,
        }
        fds = (self.http["fd"],) if self.http else ()
        return KernelOptions(self.kernel_name, self.start_timeout, pool, fds)
