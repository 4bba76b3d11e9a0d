"""Models of this kernel's memory, served under the notebook's own server.

The kernel becomes a pool beside what it is: a thread of its own answers while cells run. It ends
with the kernel, and the server then says so.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import HTTP_STATUS, Code, ServingError
from .client import Client
from .display import Loaded
from .errors import TFServeError
from .servers import find_server, server_pid

if TYPE_CHECKING:
    from ..pool.pool import Pool
    from ..pool.servables.base import Servable
    from .servers import Server

Weights = Literal["freeze", "follow"]

_SHOWN_TIMEOUT_S = 30.0
_LOOK_S = 0.05
_lock = threading.Lock()


class Published(Loaded):
    """A model of this kernel that its server shows as AVAILABLE.

    Attributes:
        name: What it is called.
        version: The number of the version that was published.
    """

    def __init__(self, model: dict[str, Any], version: int, url: str, seconds: float) -> None:
        # The version before it may still be on its way out.
        own = [shown for shown in model["versions"] if shown["version"] == version]
        super().__init__({**model, "versions": own}, url, seconds)
        self.name: str = model["name"]
        self.version = version


def publish(
    model: Any,
    name: str | None = None,
    signatures: Any = None,
    version: int | None = None,
    weights: Weights | None = None,
    *,
    batching: Literal["greedy"] | None = None,
) -> Published:
    """Serve a model of this kernel's memory; returns once the server shows it AVAILABLE.

    Publishing a name again gives the model its next version; the old one answers until the new one
    does. The model answers while cells run, and until :func:`unpublish` or the kernel's end.

    Args:
        model: A Keras model, a ``tf.Module``, a ``tf.function`` or ``ConcreteFunction``, or any
            callable whose signature is declared.
        name: What it is to be called; the model's or function's own name by default.
        signatures: How it is called, where it does not say so itself: a
            :class:`~jupyter_tfserve.Signature`, a ``tf.function``, or a mapping of signature names
            to such. One alone is ``serving_default``.
        version: Its number; by default one more than the highest that was published.
        weights: ``"freeze"`` answers with a copy of the weights as they are now, ``"follow"`` with
            the live ones, also while they are trained. Frozen by default; a plain Python function
            can only be followed.
        batching: ``"greedy"`` runs calls that happen to wait as one batch. A model that holds
            state, or a plain Python function, never is.

    Raises:
        NoServerError: where no Jupyter server is found; the text says what to do.
        TFServeError: with the server's reason, such as a name that is taken; or with what the
            model lacks to be published.
    """
    server = find_server()
    name, servable = _prepare(model, name, signatures, weights, batching)
    return _serve(server, name, servable, version, batching)


async def publish_async(
    model: Any,
    name: str | None = None,
    signatures: Any = None,
    version: int | None = None,
    weights: Weights | None = None,
    *,
    batching: Literal["greedy"] | None = None,
) -> Published:
    """As :func:`publish`, without holding up the event loop while the server is asked."""
    server = find_server()
    # Traced in this thread: what the model's code looks for may be bound to it.
    name, servable = _prepare(model, name, signatures, weights, batching)
    return await asyncio.to_thread(_serve, server, name, servable, version, batching)


def unpublish(name: str) -> None:
    """Withdraw a model that this kernel has published; returns once its last call is answered.

    Raises:
        TFServeError: where this kernel publishes no such model, or its calls do not end.
    """
    from ..pool import running

    pool = running()
    try:
        if pool is None:
            raise ServingError(Code.NOT_FOUND, f"Model {name} is not published here")
        pool.publisher.unpublish(name)
    except ServingError as error:
        raise _as_error(error, "%tfserve status shows who serves what.") from None


def _prepare(
    model: Any, name: str | None, signatures: Any, weights: Weights | None, batching: str | None
) -> tuple[str, Servable]:
    name = name if name is not None else _own_name(model)
    if not name:
        raise TFServeError(
            "The model has no name of its own.", 'Give it one: publish(model, name="...")'
        )
    if weights not in (None, "freeze", "follow"):
        raise ValueError(f"weights is 'freeze' or 'follow', not {weights!r}")
    if batching not in (None, "greedy"):
        raise ValueError(f"batching is 'greedy' or None, not {batching!r}")
    from ..pool.servables.live import LiveServable

    try:
        freeze = None if weights is None else weights == "freeze"
        return name, LiveServable(model, signatures, freeze=freeze)
    except ServingError as error:
        raise _as_error(error) from None


def _own_name(model: Any) -> str:
    for attribute in ("name", "__name__"):
        own = getattr(model, attribute, None)
        if isinstance(own, str) and own.isidentifier():
            return own
    return ""


def _serve(
    server: Server, name: str, servable: Servable, version: int | None, batching: str | None
) -> Published:
    start = time.monotonic()
    client = Client(server)
    with _lock:
        owner = _owner(client, name)
        pool = _pool(server)
        _check_owner(name, owner, pool)
        client.adopt(pool.pool_id)
        try:
            number = pool.publisher.publish(name, servable, version, greedy=batching == "greedy")
        except ServingError as error:
            raise _as_error(error) from None
        try:
            model = _shown(client, pool, name, number)
        except BaseException:
            pool.publisher.unpublish(name)
            raise
    return Published(model, number, server.url, time.monotonic() - start)


def _pool(server: Server) -> Pool:
    """This kernel's pool, started if there is none."""
    from .. import pool

    pid = server_pid(server)
    running = pool.running()
    if running is None:
        kernel_id = _kernel_id()
        options = {
            "pool_id": secrets.token_hex(8),
            "kind": "notebook",
            "owner_pid": pid,
            "kernel_id": kernel_id,
            "name": _notebook_name(kernel_id),
            "core": {"file_system_poll_wait_seconds": -1},  # there is nothing on disk to look for
        }
        pool.start(json.dumps(options))
        running = pool.running()
        assert running is not None
    elif running.owner_pid != pid:
        raise TFServeError(
            "This kernel publishes its models to another Jupyter server already.",
            "Restart the kernel to publish to this one.",
            HTTP_STATUS[Code.FAILED_PRECONDITION],
        )
    return running


def _kernel_id() -> str:
    """The id in the name of this kernel's connection file; empty outside a kernel."""
    application = sys.modules.get("ipykernel.kernelapp")
    if application is None or not application.IPKernelApp.initialized():
        return ""
    path = Path(application.IPKernelApp.instance().connection_file)
    return path.stem.removeprefix("kernel-")


def _notebook_name(kernel_id: str) -> str:
    if path := os.environ.get("JPY_SESSION_NAME"):
        return Path(path).name
    return f"kernel {kernel_id[:8]}" if kernel_id else f"process {os.getpid()}"


# Whose name it is ---------------------------------------------------------------------------------


def _owner(client: Client, name: str) -> dict[str, Any] | None:
    """The model that has the name by now, unless it has ended."""
    model = next((model for model in client.models() if model["name"] == name), None)
    if model is None or (
        model["base_path"] is None and all(v["state"] == "END" for v in model["versions"])
    ):
        return None
    return model


def _check_owner(name: str, model: dict[str, Any] | None, pool: Pool) -> None:
    if model is None or model["owner"]["pool"] == pool.pool_id:
        return
    if model["base_path"] is not None:
        text = f"Model {name} is configured in the server, with base path {model['base_path']}."
        hint = f"Choose another name, or %tfserve unload {name} first."
    else:
        text = f"Model {name} is already served by {model['owner']['notebook'] or 'the server'}."
        hint = "Choose another name, or unpublish it there first."
    raise TFServeError(text, hint, HTTP_STATUS[Code.ALREADY_EXISTS])


def _shown(client: Client, pool: Pool, name: str, version: int) -> dict[str, Any]:
    """The model as the server shows it, once the version is AVAILABLE there."""
    deadline = time.monotonic() + _SHOWN_TIMEOUT_S
    while True:
        model = _owner(client, name)
        _check_owner(name, model, pool)  # another may have been faster
        if model is not None and any(
            v["version"] == version and v["state"] == "AVAILABLE" for v in model["versions"]
        ):
            return model
        if time.monotonic() > deadline:
            raise TFServeError(
                f"The server does not show version {version} of model {name} as AVAILABLE.",
                "%tfserve status shows what it knows.",
                HTTP_STATUS[Code.DEADLINE_EXCEEDED],
            )
        time.sleep(_LOOK_S)


def _as_error(error: ServingError, hint: str = "") -> TFServeError:
    return TFServeError(error.message, hint, error.http_status)
