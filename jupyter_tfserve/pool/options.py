"""What a pool is told when it starts. The server chooses, as JSON; the pool obeys."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from .batching.options import BatchingOptions
from .core.server_core import CoreOptions


@dataclass(frozen=True, slots=True)
class InferenceOptions:
    """Limits and habits of calls; names are TensorFlow Serving's flags where it has one.

    A time-out of 0 or less is none; 0 threads are four for each CPU.
    """

    rest_api_timeout_in_ms: int = 30_000
    rest_api_num_threads: int = 0
    max_in_flight: int = 1024
    max_in_flight_per_model: int = 256
    max_body_bytes: int = 1 << 30
    enable_signature_method_name_check: bool = False


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How models are loaded; names are TensorFlow Serving's flags where it has one.

    ``saved_model_tags`` is a comma-separated list. 0 iterations count as 1, as there; 0
    interpreters are as many as there are CPUs.
    """

    saved_model_tags: str = "serve"
    enable_model_warmup: bool = True
    num_request_iterations_for_warmup: int = 0
    prefer_tflite_model: bool = False
    num_tflite_pools: int = 0


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """What the pool may use of the machine.

    ``device`` is what the server calls the one that this process has been given; empty is all.
    Memory is a GPU's, in MiB, or as a share; 0 is no limit.
    """

    device: str = ""
    memory_limit_mb: int = 0
    per_process_gpu_memory_fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How TensorFlow runs models; names are TensorFlow Serving's flags.

    Of the numbers of threads 0 is not set, and the flag for one kind goes before that for all.
    Both go before the file.
    """

    tensorflow_session_parallelism: int = 0
    tensorflow_intra_op_parallelism: int = 0
    tensorflow_session_config_file: str = ""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The standalone door: ``fd`` is the listening socket that this process inherited."""

    fd: int
    cors: bool = False


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Everything that a pool needs to know; see :class:`~jupyter_tfserve.announcement.PoolInfo`."""

    pool_id: str
    kind: str
    owner_pid: int
    kernel_id: str = ""
    name: str = ""
    core: CoreOptions = field(default_factory=CoreOptions)
    inference: InferenceOptions = field(default_factory=InferenceOptions)
    batching: BatchingOptions = field(default_factory=BatchingOptions)
    load: LoadOptions = field(default_factory=LoadOptions)
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    session: SessionOptions = field(default_factory=SessionOptions)
    http: HttpOptions | None = None

    @classmethod
    def from_json(cls, text: str) -> PoolOptions:
        """Read the options.

        Raises:
            TypeError: for a name that this version does not know.
        """
        data = json.loads(text)
        return cls(
            pool_id=data["pool_id"],
            kind=data["kind"],
            owner_pid=data["owner_pid"],
            kernel_id=data.get("kernel_id", ""),
            name=data.get("name", ""),
            core=CoreOptions(**data.get("core", {})),
            inference=InferenceOptions(**data.get("inference", {})),
            batching=BatchingOptions(**data.get("batching", {})),
            load=LoadOptions(**data.get("load", {})),
            devices=DeviceOptions(**data.get("devices", {})),
            session=SessionOptions(**data.get("session", {})),
            http=HttpOptions(**data["http"]) if data.get("http") else None,
        )
