"""TensorFlow Serving's batching parameters file: protobuf text of ``BatchingParameters``.

The tensorflow-serving-api package lacks this proto; it is built from its fields here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

from ..config_text import parse_file
from .parameters import BatchingParameters

VERSION_FILE = "batching_params.pbtxt"
"""A version's own parameters, in its directory."""

_FIELDS = {
    "max_batch_size": "Int64Value",
    "batch_timeout_micros": "Int64Value",
    "max_enqueued_batches": "Int64Value",
    "num_batch_threads": "Int64Value",
    "thread_pool_name": "StringValue",
    "allowed_batch_sizes": "",  # repeated int64
    "pad_variable_length_inputs": "",  # bool
    "enable_large_batch_splitting": "BoolValue",
    "max_execution_batch_size": "Int64Value",
}
"""By name, the wrapper that each field's value stands in: ``max_batch_size { value: 128 }``."""


def load_parameters(path: str) -> BatchingParameters:
    """Read a batching parameters file; what it does not set has its default.

    Raises:
        ServingError: NOT_FOUND for a file that cannot be read; INVALID_ARGUMENT for content that
            the parser refuses, naming the file, line and field.
    """
    message = parse_file(path, _message_class()())
    given: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.is_repeated:
            given[field.name] = tuple(value)
        else:
            given[field.name] = value.value if _FIELDS[field.name] else value
    return BatchingParameters(**given)


def load_version_parameters(path: str) -> BatchingParameters | None:
    """The parameters in a version's own directory ``path``; None where there are none.

    Raises:
        ServingError: as :func:`load_parameters`.
    """
    file = Path(path) / VERSION_FILE
    return load_parameters(str(file)) if file.exists() else None


@cache
def _message_class() -> Any:
    proto = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorflow_serving/servables/tensorflow/session_bundle_config.proto",
        package="tensorflow.serving",
        syntax="proto3",
        dependency=[wrappers_pb2.DESCRIPTOR.name],
    )
    message = file.message_type.add(name="BatchingParameters")
    for number, (name, wrapper) in enumerate(_FIELDS.items(), 1):
        field = message.field.add(name=name, number=number, label=proto.LABEL_OPTIONAL)
        if wrapper:
            field.type = proto.TYPE_MESSAGE
            field.type_name = f".google.protobuf.{wrapper}"
        elif name == "allowed_batch_sizes":
            field.type, field.label = proto.TYPE_INT64, proto.LABEL_REPEATED
        else:
            field.type = proto.TYPE_BOOL
    # A pool of its own: a later tensorflow-serving-api may bring the proto.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    name = "tensorflow.serving.BatchingParameters"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
