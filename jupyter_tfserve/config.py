"""What is to be served: the aspired configuration, as values that cross processes as JSON.

The fields are those of TensorFlow Serving's ``ModelServerConfig``
(``config/model_server_config.proto``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import ServingError, invalid_argument

TENSORFLOW = "tensorflow"
BATCHING = ("off", "greedy")
"""How a model can be asked to be batched."""
_DEVICE = re.compile(r"/?(?:CPU(?::0)?|GPU:([0-9]{1,4}))", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Latest:
    """Serve the highest ``num_versions`` versions."""

    num_versions: int = 1


@dataclass(frozen=True, slots=True)
class All:
    """Serve every version found."""


@dataclass(frozen=True, slots=True)
class Specific:
    """Serve the listed versions, where found."""

    versions: frozenset[int] = frozenset()


VersionPolicy = Latest | All | Specific


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model: where its versions lie, which of them to serve, and their labels.

    TensorFlow Serving's format has no field for some: ``batching`` is how its runs are batched, one
    of :data:`BATCHING`; empty is as the pool is told. ``pool`` and ``device`` say where it is to be
    held; empty leaves it to the server.
    """

    name: str
    base_path: str
    platform: str = TENSORFLOW
    policy: VersionPolicy = field(default_factory=Latest)
    labels: Mapping[str, int] = field(default_factory=dict)
    batching: str = ""
    pool: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True)
class ModelServerConfig:
    """All models of a server; models absent from it are to be unloaded."""

    models: tuple[ModelConfig, ...] = ()

    def validate(self) -> None:
        """Raise what TensorFlow Serving would say of a list that it refuses.

        Raises:
            ServingError: INVALID_ARGUMENT, naming the model and what was expected.
        """
        seen = set()
        for model in self.models:
            if model.name in seen:
                raise invalid_argument(
                    f"Illegal to list model {model.name} multiple times in config list"
                )
            seen.add(model.name)
            if not model.name:
                raise invalid_argument(
                    "Illegal to list a model without a name in config list; "
                    f"got base_path()={model.base_path}"
                )
            _validate(model)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; :meth:`from_dict` reads them back."""
        return {"models": [model_to_dict(model) for model in self.models]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelServerConfig:
        """Read what :meth:`to_dict` wrote."""
        return cls(tuple(model_from_dict(model) for model in data["models"]))


def _validate(model: ModelConfig) -> None:
    _validate_values(model)
    device_name(model.device, f"model {model.name}")
    if not model.base_path.startswith("/") and "://" not in model.base_path:
        raise invalid_argument(
            f"Expected model {model.name} to have an absolute path or URI; "
            f"got base_path()={model.base_path}"
        )
    if not model.platform:
        raise invalid_argument(
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
            f"ModelServerConfig::model_platform, model name is {model.name}"
        )
    if model.platform != TENSORFLOW:
        raise invalid_argument(f"Model {model.name} requests unsupported platform {model.platform}")


def _validate_values(model: ModelConfig) -> None:
    """Refuse what the proto's fields cannot hold, or a file system cannot look up."""
    for text in (model.name, model.base_path, *model.labels):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise invalid_argument(f"Model {model.name!r} has a text that is no UTF-8: {text!r}")
    if model.batching and model.batching not in BATCHING:
        raise invalid_argument(
            f"Model {model.name} asks for batching {model.batching!r}; expected one of "
            f"{', '.join(BATCHING)}"
        )
    if "\0" in model.base_path:
        raise invalid_argument(
            f"Model {model.name} has a base path with a NUL character: {model.base_path!r}"
        )
    versions = [*model.labels.values()]
    if isinstance(model.policy, Specific):
        versions += model.policy.versions
    for version in versions:
        if not -(2**63) <= version < 2**63:
            raise invalid_argument(f"Model {model.name} lists version {version}, beyond int64")
    if isinstance(model.policy, Latest) and model.policy.num_versions >= 2**32:
        raise invalid_argument(
            f"Model {model.name} asks for {model.policy.num_versions} versions, beyond uint32"
        )


def device_name(device: object, whose: str) -> str:
    """A device as TensorFlow names it, ``CPU`` or ``GPU:0``; empty is none in particular.

    Args:
        device: what was asked for, in either case and with or without TensorFlow's slash.
        whose: who asks, for the refusal.

    Raises:
        ServingError: INVALID_ARGUMENT where it is no device's name.
    """
    if device == "":
        return ""
    match = _DEVICE.fullmatch(device) if isinstance(device, str) else None
    if match is None:
        raise invalid_argument(f"Expected the device of {whose} to be CPU or GPU:n; got {device!r}")
    return "CPU" if match[1] is None else f"GPU:{int(match[1])}"


def policy_to_dict(policy: VersionPolicy) -> dict[str, Any]:
    """A policy in the proto's JSON form, such as ``{"latest": {"num_versions": 2}}``."""
    match policy:
        case Latest(num_versions):
            return {"latest": {"num_versions": num_versions}}
        case Specific(versions):
            return {"specific": {"versions": sorted(versions)}}
        case All():
            return {"all": {}}


def policy_from_dict(data: Mapping[str, Any]) -> VersionPolicy:
    """Read a policy in the proto's JSON form.

    Raises:
        ServingError: INVALID_ARGUMENT where it is none of latest, all, specific.
    """
    match data:
        case {"latest": {"num_versions": int(number)}} if len(data) == 1 and number >= 0:
            return Latest(max(number, 1))  # the proto's 0 is "not set"
        case {"latest": {}} if len(data) == 1 and not data["latest"]:
            return Latest()
        case {"all": {}} if len(data) == 1:
            return All()
        case {"specific": {"versions": [*versions]}} if len(data) == 1 and all(
            type(version) is int for version in versions
        ):
            return Specific(frozenset(versions))
    raise bad_policy(data)


def bad_policy(data: object) -> ServingError:
    """The refusal of a version policy that is none of the three."""
    return invalid_argument(
        'Expected a version policy such as {"latest": {"num_versions": 1}}, {"all": {}} or '
        f'{{"specific": {{"versions": [1, 2]}}}}; got {data!r}'
    )


def options_to_dict(model: ModelConfig) -> dict[str, Any]:
    """What of a model goes beyond TensorFlow Serving's configuration; empty where nothing does."""
    return {"batching": model.batching} if model.batching else {}


def model_to_dict(model: ModelConfig) -> dict[str, Any]:
    """One model of :meth:`ModelServerConfig.to_dict`."""
    where = {"pool": model.pool, "device": model.device}
    return {
        "name": model.name,
        "base_path": model.base_path,
        "platform": model.platform,
        "policy": policy_to_dict(model.policy),
        "labels": dict(model.labels),
        "options": options_to_dict(model),
        **{key: value for key, value in where.items() if value},
    }


def model_from_dict(data: Mapping[str, Any]) -> ModelConfig:
    """Read one model of :meth:`ModelServerConfig.to_dict`; only name and base path are required."""
    return ModelConfig(
        name=data["name"],
        base_path=data["base_path"],
        platform=data.get("platform", TENSORFLOW),
        policy=policy_from_dict(data["policy"]) if "policy" in data else Latest(),
        labels=dict(data.get("labels", {})),
        batching=data.get("options", {}).get("batching", ""),
        pool=data.get("pool", ""),
        device=data.get("device", ""),
    )
