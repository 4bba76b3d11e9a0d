"""What can be set about pools: traits, called as TensorFlow Serving's flags where it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traitlets import Any as AnyTrait
from traitlets import Bool, Dict, Float, Int, List, Unicode
from traitlets.config import LoggingConfigurable

from ..errors import invalid_argument
from .devices import DeviceNames
from .pool_kernel import KernelOptions

if TYPE_CHECKING:
    from .pool_spec import PoolSpec


class PoolSettings(LoggingConfigurable):
    """The traits of :class:`.pool_manager.PoolManager`."""

    model_name = Unicode("default", config=True, help="Name of the model at model_base_path.")
    model_base_path = Unicode(
        "",
        config=True,
        help="Folder whose numbered sub-folders are the versions of the model to serve, or a file "
        "of Keras or TFLite. Ignored where model_config_file is set.",
    )
    model_config_file = Unicode(
        "",
        config=True,
        help="File with a ModelServerConfig in protobuf text format: many models, their version "
        "policies and labels.",
    )
    model_config_file_poll_wait_seconds = Float(
        0,
        config=True,
        help="Time between two looks at model_config_file, in seconds; what it says by then is "
        "served. 0 reads it only once.",
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
    resource_preserving = Bool(
        False,
        config=True,
        help="Unload the old version of a model before the new one loads, where memory holds no "
        "two. The model answers 404 in between.",
    )
    rest_api_num_threads = Int(
        0, config=True, help="Threads for calls that take long; 0 is four for each CPU."
    )
    saved_model_tags = Unicode(
        "serve", config=True, help="Comma-separated tags of the graph to load from a SavedModel."
    )
    enable_model_warmup = Bool(
        True,
        config=True,
        help="Replay the requests in a version's assets.extra/tf_serving_warmup_requests before it "
        "becomes available.",
    )
    num_request_iterations_for_warmup = Int(
        0, config=True, help="How often each of these requests is replayed; 0 is once."
    )
    prefer_tflite_model = Bool(
        False,
        config=True,
        help="Serve model.tflite where a version has one beside its SavedModel.",
    )
    num_tflite_pools = Int(
        0,
        config=True,
        help="TFLite interpreters of a model that may run at a time; 0 is one for each CPU.",
    )
    tensorflow_session_parallelism = Int(
        0, config=True, help="Threads that operations of all models share; 0 is one for each CPU."
    )
    tensorflow_intra_op_parallelism = Int(
        0, config=True, help="The same; counts where both are set."
    )
    tensorflow_session_config_file = Unicode(
        "",
        config=True,
        help="File with a ConfigProto in protobuf text format, for the sessions of all models.",
    )
    enable_signature_method_name_check = Bool(
        False, config=True, help="Refuse calls whose signature has another method name."
    )
    enable_greedy_batching = Bool(
        False,
        config=True,
        help="Run the calls of a model that happen to wait as one batch. Nothing waits for "
        "company, so one caller loses nothing and many gain. Rows that are run together may differ "
        "in their last bits from rows that are run alone. Signatures with scalar inputs, fixed "
        "batch sizes, state or random numbers are left alone; one whose rows look at each other "
        "cannot be recognised, and gives other answers. A model's own option overrides this.",
    )
    enable_batching = Bool(
        False,
        config=True,
        help="Let calls of a model wait for each other and run them as one batch, as "
        "batching_parameters_file says.",
    )
    batching_parameters_file = Unicode(
        "",
        config=True,
        help="File with BatchingParameters in protobuf text format, for all models; TensorFlow "
        "Serving's defaults without.",
    )
    enable_per_model_batching_parameters = Bool(
        False,
        config=True,
        help="With enable_batching: take the parameters from batching_params.pbtxt in the folder "
        "of each version; versions without are not batched. Of batching_parameters_file only what "
        "it says of threads then counts.",
    )
    kernel_name = Unicode(
        "python3",
        config=True,
        help="The kernel that the model pool runs in; TensorFlow and jupyter_tfserve have to be "
        "installed in its environment.",
    )
    pools = List(
        Dict(),
        config=True,
        help="The managed pools, one process each, such as "
        '[{"name": "gpu0", "device": "GPU:0", "memory_limit_mb": 8000}, {"name": "cpu", '
        '"device": "CPU"}]. A pool with a device sees no other; kernel_name can be given for each. '
        "By default there is one, which sees all. A pool starts when a model needs it.",
    )
    per_process_gpu_memory_fraction = Float(
        0,
        min=0,
        max=1,
        config=True,
        help="Share of a GPU's memory that a pool may take; 0 is no limit. Memory is taken when it "
        "is needed. A pool's own memory_limit_mb goes first.",
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

    def _check_batching(self) -> None:
        if self.batching_parameters_file and not self.enable_batching:
            raise invalid_argument(
                "server_options.batching_parameters_file is set without setting "
                "server_options.enable_batching to true."
            )
        if self.enable_batching and self.enable_greedy_batching:
            raise invalid_argument(
                "enable_batching and enable_greedy_batching exclude each other: choose one"
            )

    def kernel_options(self, spec: PoolSpec) -> KernelOptions:
        """How to start a pool by these settings.

        Raises:
            ServingError: INVALID_ARGUMENT for settings that contradict each other.
        """
        self._check_batching()
        pool = {
            "name": spec.name,
            "core": {
                "file_system_poll_wait_seconds": self.file_system_poll_wait_seconds,
                "max_num_load_retries": self.max_num_load_retries,
                "load_retry_interval_micros": self.load_retry_interval_micros,
                "num_load_threads": self.num_load_threads,
                "allow_version_labels_for_unavailable_models": (
                    self.allow_version_labels_for_unavailable_models
                ),
                "resource_preserving": self.resource_preserving,
            },
            "inference": {
                "rest_api_timeout_in_ms": self.rest_api_timeout_in_ms,
                "rest_api_num_threads": self.rest_api_num_threads,
                "max_in_flight": self.max_in_flight,
                "max_in_flight_per_model": self.max_in_flight_per_model,
                "max_body_bytes": self.max_body_bytes,
                "enable_signature_method_name_check": self.enable_signature_method_name_check,
            },
            "batching": {
                "enable_greedy_batching": self.enable_greedy_batching,
                "enable_batching": self.enable_batching,
                "batching_parameters_file": self.batching_parameters_file,
                "enable_per_model_batching_parameters": self.enable_per_model_batching_parameters,
            },
            "load": {
                "saved_model_tags": self.saved_model_tags,
                "enable_model_warmup": self.enable_model_warmup,
                "num_request_iterations_for_warmup": self.num_request_iterations_for_warmup,
                "prefer_tflite_model": self.prefer_tflite_model,
                "num_tflite_pools": self.num_tflite_pools,
            },
            "devices": {
                "device": spec.device,
                "memory_limit_mb": spec.memory_limit_mb,
                "per_process_gpu_memory_fraction": self.per_process_gpu_memory_fraction,
            },
            "session": {
                "tensorflow_session_parallelism": self.tensorflow_session_parallelism,
                "tensorflow_intra_op_parallelism": self.tensorflow_intra_op_parallelism,
                "tensorflow_session_config_file": self.tensorflow_session_config_file,
            },
            "http": self.http,
        }
        fds = (self.http["fd"],) if self.http else ()
        environment = DeviceNames().environment_for(spec.device)
        kernel_name = spec.kernel_name or self.kernel_name
        return KernelOptions(kernel_name, self.start_timeout, pool, fds, environment)
