"""Whose name a model's name is: one model has it at a time, wherever that is served."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import HTTP_STATUS, Code
from .errors import TFServeError

if TYPE_CHECKING:
    from ..errors import ServingError
    from .client import Client

_LOOK_S = 0.05
"""Time between two looks at the server, in seconds."""


def served_as(client: Client, name: str) -> dict[str, Any] | None:
    """The model that has the name by now, as the management API tells it, unless it has ended."""
    model = next((model for model in client.models() if model["name"] == name), None)
    if model is None or (
        model["base_path"] is None and all(v["state"] == "END" for v in model["versions"])
    ):
        return None
    return model


def check_owner(
    name: str, model: dict[str, Any] | None, pool_id: str | None, base_path: str | None = None
) -> None:
    """Refuse a name that somebody else has.

    Args:
        name: the name.
        model: what :func:`served_as` tells of it.
        pool_id: the pool that may have it: this kernel's, if it has one.
        base_path: the base path that it may be configured with.

    Raises:
        TFServeError: naming who has it.
    """
    if model is None:
        return
    if model["base_path"] is not None:
        if model["base_path"] == base_path:
            return
        text = f"Model {name} is configured in the server, with base path {model['base_path']}."
        hint = f"Choose another name, or %tfserve unload {name} first."
    else:
        if model["owner"]["pool"] == pool_id:
            return
        text = f"Model {name} is already served by {model['owner']['notebook'] or 'the server'}."
        hint = "Choose another name, or unpublish it there first."
    raise TFServeError(text, hint, HTTP_STATUS[Code.ALREADY_EXISTS])


def has_version(model: dict[str, Any] | None, version: int) -> bool:
    """Whether a version of the model is AVAILABLE."""
    return model is not None and any(
        v["version"] == version and v["state"] == "AVAILABLE" for v in model["versions"]
    )


def until_available(
    client: Client,
    name: str,
    version: int,
    timeout_s: float,
    check: Callable[[dict[str, Any] | None], None],
) -> dict[str, Any]:
    """The model as the server shows it, once the version is AVAILABLE there.

    ``check`` is given each look at it, and raises where there is nothing to wait for.

    Raises:
        TFServeError: DEADLINE_EXCEEDED after ``timeout_s`` seconds; whatever ``check`` raises.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        model = served_as(client, name)
        check(model)
        if model is not None and has_version(model, version):
            return model
        if time.monotonic() > deadline:
            raise TFServeError(
                f"The server does not show version {version} of model {name} as AVAILABLE.",
                "%tfserve status shows what it knows.",
                HTTP_STATUS[Code.DEADLINE_EXCEEDED],
            )
        time.sleep(_LOOK_S)


def as_error(error: ServingError, hint: str = "") -> TFServeError:
    """A refusal of this process's own pool, in the form that refusals of a server have."""
    return TFServeError(error.message, hint, error.http_status)
