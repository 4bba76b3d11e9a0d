"""Version labels: which may be assigned, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import Code, ServingError, invalid_argument
from ...servable import ServableId
from ...state import ManagerState, ServableStateMonitor

if TYPE_CHECKING:
    from ...config import ModelServerConfig

LabelTable = Mapping[str, Mapping[str, int]]
"""Versions by the model's name and the label; replaced as a whole by each configuration."""


def check_labels(
    config: ModelServerConfig,
    table: LabelTable,
    monitor: ServableStateMonitor,
    *,
    allow_unavailable: bool,
) -> LabelTable:
    """The label table of a configuration that is about to be applied.

    A label must point at a version that is available now, before the configuration loads anything.
    ``allow_unavailable`` lifts that for labels that are not in use yet, or stay where they are.

    Raises:
        ServingError: FAILED_PRECONDITION, naming the version and the model.
    """
    for model in config.models:
        in_use = table.get(model.name, {})
        for label, version in model.labels.items():
            moves = in_use.get(label, version) != version
            if moves or not allow_unavailable:
                check_available(model.name, version, monitor)
    return {model.name: dict(model.labels) for model in config.models if model.labels}


def check_available(name: str, version: int, monitor: ServableStateMonitor) -> None:
    """Refuse a version that no label may be pointed at now.

    Raises:
        ServingError: FAILED_PRECONDITION, naming the version and the model.
    """
    state = monitor.get(ServableId(name, version))
    if state is None or state.state is not ManagerState.AVAILABLE:
        raise unavailable_version(name, version)


def unavailable_version(name: str, version: int) -> ServingError:
    """The refusal of a label for a version that does not answer."""
    return ServingError(
        Code.FAILED_PRECONDITION,
        f"Request to assign label to version {version} of model {name}, "
        "which is not currently available for inference",
    )


def resolve_label(table: LabelTable | None, name: str, label: str) -> int:
    """The version that a label stands for, whether it is available or not.

    Raises:
        ServingError: INVALID_ARGUMENT for an unknown label, also of an unknown model; UNAVAILABLE
            before the first configuration was applied.
    """
    if table is None:
        raise ServingError(Code.UNAVAILABLE, f"Model labels does not init yet.{label}")
    version = table.get(name, {}).get(label)
    if version is None:
        raise invalid_argument(f"Unrecognized servable version label: {label}")
    return version
