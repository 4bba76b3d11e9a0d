"""TensorFlow as a whole in this process: how it starts and what it runs on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from ...errors import Code, ServingError
from ..config_text import parse_file
from .session_call import limit_memory, session_config, set_session_config

if TYPE_CHECKING:
    from ..options import DeviceOptions, SessionOptions

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def quiet() -> None:
    """Keep TensorFlow's advice about its own interfaces out of a process that is ours."""
    tf.get_logger().setLevel("ERROR")


def configure(options: SessionOptions) -> None:
    """Set how sessions run models; before the first one.

    Raises:
        ServingError: NOT_FOUND or INVALID_ARGUMENT for a file that cannot be read.
    """
    config = config_pb2.ConfigProto()
    if options.tensorflow_session_config_file:
        parse_file(options.tensorflow_session_config_file, config)
    threads = options.tensorflow_intra_op_parallelism or options.tensorflow_session_parallelism
    if threads > 0:
        config.intra_op_parallelism_threads = threads
    set_session_config(config)


def use(options: DeviceOptions) -> None:
    """Keep to the device and the memory that the pool was given; before anything is run.

    Raises:
        ServingError: FAILED_PRECONDITION where TensorFlow does not see the device.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if options.device.startswith("GPU:") and not gpus:
        text = (
            f"There is no device {options.device}: TensorFlow sees {', '.join(device_names())} "
            f"where {_VISIBLE} is {os.environ.get(_VISIBLE)!r}"
        )
        raise ServingError(Code.FAILED_PRECONDITION, text)
    limit_memory(options.memory_limit_mb, options.per_process_gpu_memory_fraction, len(gpus))
    if gpus and (options.memory_limit_mb or options.per_process_gpu_memory_fraction):
        # A GPU's allocator is made once in a process, by whoever first asks for the device, and
        # serves sessions and eager code alike: with this session, the limit holds for both.
        tf.compat.v1.Session(graph=tf.Graph(), config=session_config()).close()


def device_names() -> list[str]:
    """The devices that TensorFlow sees, such as ``CPU:0``."""
    return [
        device.name.removeprefix("/physical_device:")
        for device in tf.config.list_physical_devices()
    ]


def describe() -> dict[str, Any]:
    """TensorFlow's version, the devices that it sees, and the variable that chose among GPUs."""
    return {
        "tensorflow": tf.__version__,
        "devices": device_names(),
        "visible_devices": os.environ.get(_VISIBLE),
    }


def device_memory(device: str) -> int:
    """Bytes that TensorFlow's allocator has given to tensors on a GPU, such as ``GPU:0``.

    It starts the device where nothing has yet: ask only for one that a model lives on.
    """
    return int(tf.config.experimental.get_memory_info(device)["current"])
