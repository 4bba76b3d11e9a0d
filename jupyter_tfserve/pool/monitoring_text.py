"""TensorFlow Serving's monitoring configuration: protobuf text of MonitoringConfig.

The tensorflow-serving-api package lacks this proto (``config/monitoring_config.proto``); it is
built from its fields here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .config_text import parse_file

DEFAULT_PATH = "/monitoring/prometheus/metrics"


def load_monitoring_file(path: str) -> str | None:
    """Read a monitoring config file.

    Returns:
        The URL path of the metrics; None where the file turns them off.

    Raises:
        ServingError: NOT_FOUND for a file that cannot be read; INVALID_ARGUMENT for content that
            is refused, naming the file, line and field.
    """
    prometheus = parse_file(path, _message_class()()).prometheus_config
    return (prometheus.path or DEFAULT_PATH) if prometheus.enable else None


@cache
def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorflow_serving/config/monitoring_config.proto",
        package="tensorflow.serving",
        syntax="proto3",
    )
    field = descriptor_pb2.FieldDescriptorProto
    prometheus = file.message_type.add(name="PrometheusConfig")
    prometheus.field.add(name="enable", number=1, type=field.TYPE_BOOL, label=field.LABEL_OPTIONAL)
    prometheus.field.add(name="path", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    file.message_type.add(name="MonitoringConfig").field.add(
        name="prometheus_config",
        number=1,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_OPTIONAL,
        type_name=".tensorflow.serving.PrometheusConfig",
    )
    # A pool of its own: a later tensorflow-serving-api may bring the proto.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    name = "tensorflow.serving.MonitoringConfig"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
