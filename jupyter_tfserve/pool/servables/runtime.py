"""TensorFlow as a whole in this process: how it starts and what it runs on."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def quiet() -> None:
    """Keep TensorFlow's advice about its own interfaces out of a process that is ours."""
    tf.get_logger().setLevel("ERROR")


def describe() -> dict[str, Any]:
    """TensorFlow's version, and the names of the devices that it sees."""
    return {
        "tensorflow": tf.__version__,
        "devices": [
            device.name.removeprefix("/physical_device:")
            for device in tf.config.list_physical_devices()
        ],
    }


def device_memory(device: str) -> int:
    """Bytes that TensorFlow's allocator has given to tensors on a GPU, such as ``GPU:0``.

    It starts the device where nothing has yet: ask only for one that a model lives on.
    """
    return int(tf.config.experimental.get_memory_info(device)["current"])
