"""TensorFlow Serving's configuration file: protobuf text of ModelServerConfig, both ways.

The protos are the real ones; this one module of theirs loads without TensorFlow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from ..config import (
    TENSORFLOW,
    All,
    Latest,
    ModelConfig,
    ModelServerConfig,
    Specific,
    VersionPolicy,
)
from ..errors import Code, ServingError, invalid_argument


def load_config_file(path: str) -> ModelServerConfig:
    """Read and validate a model config file.

    Raises:
        ServingError: NOT_FOUND for a file that cannot be read; INVALID_ARGUMENT or
            FAILED_PRECONDITION for content that is refused, naming line, column and field where
            the parser refuses it.
    """
    return _config(parse_file(path, model_server_config_pb2.ModelServerConfig()), f"'{path}'")


def parse_config(text: str) -> ModelServerConfig:
    """Read and validate the text of a model config file.

    Raises:
        ServingError: as :func:`load_config_file`, for the content.
    """
    message = model_server_config_pb2.ModelServerConfig()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise invalid_argument(f"Invalid protobuf text: {error}") from error
    return _config(message, "The text")


def parse_file(path: str, message: Any) -> Any:
    """Fill ``message`` with a file of protobuf text, and return it.

    Raises:
        ServingError: NOT_FOUND for a file that cannot be read; INVALID_ARGUMENT for content that
            the parser refuses, naming line, column and field.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ServingError(Code.NOT_FOUND, f"{path}; {error.strerror}") from error
    try:
        return text_format.Parse(content.decode(), message)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise invalid_argument(f"Invalid protobuf file: '{path}': {error}") from error


def _config(message: Any, where: str) -> ModelServerConfig:
    case = message.WhichOneof("config")
    if case == "custom_model_config":
        raise ServingError(
            Code.FAILED_PRECONDITION,
            "Cannot transition to requested config. It is only legal to transition from one "
            "ModelConfigList to another.",
        )
    if case is None:
        # As in TensorFlow Serving, this changes nothing: it must not unload what is served.
        raise ServingError(
            Code.FAILED_PRECONDITION,
            f"Taking no action for empty config. {where} sets no model_config_list",
        )
    config = from_proto(message.model_config_list)
    config.validate()
    return config


def from_proto(model_config_list: Any) -> ModelServerConfig:
    """Take over a ``ModelConfigList`` message, as files and reload requests carry it.

    Raises:
        ServingError: INVALID_ARGUMENT for fields that contradict each other, or that have no
            meaning here.
    """
    return ModelServerConfig(tuple(map(_model_from_proto, model_config_list.config)))


def to_text(config: ModelServerConfig) -> str:
    """The configuration as a model config file that :func:`load_config_file` reads back.

    What the format has no field for, how a model is batched and where it is held, is told in
    comments and not read back.
    """
    message = model_server_config_pb2.ModelServerConfig()
    message.model_config_list.SetInParent()
    for model in config.models:
        entry = message.model_config_list.config.add(
            name=model.name, base_path=model.base_path, model_platform=model.platform
        )
        _set_policy(entry.model_version_policy, model.policy)
        for label, version in model.labels.items():
            entry.version_labels[label] = version
    comments = [
        "# Not in this file, as its format has no field for it: "
        f"{model.name!r} has {name} {value}\n"
        for model in config.models
        for name, value in (
            ("batching", model.batching),
            ("device", model.device),
            ("pool", model.pool),
        )
        if value
    ]
    return "".join((*comments, text_format.MessageToString(message)))


def _model_from_proto(entry: Any) -> ModelConfig:
    if entry.HasField("logging_config"):
        raise invalid_argument("No request-logger-creator provided.")
    return ModelConfig(
        name=entry.name,
        base_path=entry.base_path,
        platform=_platform(entry),
        policy=_policy(entry.model_version_policy),
        labels=dict(entry.version_labels),
    )


def _platform(entry: Any) -> str:
    """The platform; empty where neither field names one, which validation refuses."""
    if not entry.model_type:
        return str(entry.model_platform)
    if entry.model_platform:
        raise invalid_argument(
            "Illegal setting both ModelServerConfig::model_type (deprecated) and "
            f"ModelServerConfig::model_platform, model name is {entry.name}"
        )
    is_tensorflow = entry.model_type == model_server_config_pb2.TENSORFLOW
    return TENSORFLOW if is_tensorflow else "other"


def _policy(policy: Any) -> VersionPolicy:
    match policy.WhichOneof("policy_choice"):
        case "all":
            return All()
        case "specific":
            return Specific(frozenset(policy.specific.versions))
        case _:
            return Latest(max(policy.latest.num_versions, 1))  # 0 is "not set"


def _set_policy(message: Any, policy: VersionPolicy) -> None:
    match policy:
        case Latest(num_versions):
            message.latest.num_versions = num_versions
        case Specific(versions):
            message.specific.SetInParent()
            message.specific.versions.extend(sorted(versions))
        case All():
            message.all.SetInParent()
