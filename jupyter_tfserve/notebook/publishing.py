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
from .moving import move
from .ownership import as_error, check_owner, served_as, until_available
from .servers import find_server, server_pid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..pool.pool import Pool
    from ..pool.servables.base import Servable
    from .servers import Server

Weights = Literal["freeze", "follow"]

_SHOWN_TIMEOUT_S = 30.0
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
        labels = model.get("labels") or {}
        its = {label: number for label, number in labels.items() if number == version}
        super().__init__({**model, "versions": own, "labels": its}, url, seconds)
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
    labels: Mapping[str, int | None] | None = None,
    to: Literal["managed"] | None = None,
) -> Published:
    """Serve a model of this kernel's memory; returns once the server shows it AVAILABLE.

    Publishing a name again gives the model its next version; the old one answers until the new one
    does, and stays where it has a label. The model answers while cells run, and until
    :func:`unpublish` or the kernel's end.

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
        labels: The versions that labels stand for from then on; None is the one that is published.
            Other labels stay as they are.
        to: ``"managed"`` saves the model and has the server's own pool serve it: calls no longer
            meet the notebook's cells, and it outlives the kernel, until it is unloaded. What this
            kernel has published by the name goes. The versions stay on disk, below
            ``jupyter --data-dir``.

    Raises:
        NoServerError: where no Jupyter server is found; the text says what to do.
        TFServeError: with the server's reason, such as a name that is taken; or with what the
            model lacks to be published, or to be saved.
    """
    server = find_server()
    if to is not None:
        _check_move(to, weights, labels)
        return _move(server, model, name, signatures, version, batching=batching)
    name, servable = _prepare(model, name, signatures, weights, batching)
    return _serve(server, name, servable, version, labels=labels, batching=batching)


async def publish_async(
    model: Any,
    name: str | None = None,
    signatures: Any = None,
    version: int | None = None,
    weights: Weights | None = None,
    *,
    batching: Literal["greedy"] | None = None,
    labels: Mapping[str, int | None] | None = None,
    to: Literal["managed"] | None = None,
) -> Published:
    """As :func:`publish`, without holding up the event loop while the server is asked."""
    server = find_server()
    if to is not None:
        _check_move(to, weights, labels)
        return await asyncio.to_thread(
            _move, server, model, name, signatures, version, batching=batching
        )
    # Traced in this thread: what the model's code looks for may be bound to it.
    name, servable = _prepare(model, name, signatures, weights, batching)
    return await asyncio.to_thread(
        _serve, server, name, servable, version, labels=labels, batching=batching
    )


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
        raise as_error(error, "%tfserve status shows who serves what.") from None


def _prepare(
    model: Any, name: str | None, signatures: Any, weights: Weights | None, batching: str | None
) -> tuple[str, Servable]:
    name = _name(model, name)
    if weights not in (None, "freeze", "follow"):
        raise ValueError(f"weights is 'freeze' or 'follow', not {weights!r}")
    if batching not in (None, "greedy"):
        raise ValueError(f"batching is 'greedy' or None, not {batching!r}")
    from ..pool.servables.live import LiveServable

    try:
        freeze = None if weights is None else weights == "freeze"
        return name, LiveServable(model, signatures, freeze=freeze)
    except ServingError as error:
        raise as_error(error) from None


def _name(model: Any, name: str | None) -> str:
    """The name to publish by: as given, or the model's own."""
    if name is None:
        own = (getattr(model, attribute, None) for attribute in ("name", "__name__"))
        name = next((o for o in own if isinstance(o, str) and o.isidentifier()), "")
    if not name:
        raise TFServeError(
            "The model has no name of its own.", 'Give it one: publish(model, name="...")'
        )
    return name


def _check_move(to: str, weights: Weights | None, labels: object) -> None:
    if to != "managed":
        raise ValueError(f"to is 'managed', or left out, not {to!r}")
    if weights == "follow":
        raise ValueError("A model that is saved cannot follow the weights in memory")
    if labels:
        raise ValueError("Labels cannot be given on the way to the managed pool, only afterwards")


def _move(
    server: Server,
    model: Any,
    name: str | None,
    signatures: Any,
    version: int | None,
    *,
    batching: str | None,
) -> Published:
    start = time.monotonic()
    name = _name(model, name)
    with _lock:
        shown, number = move(server, name, model, signatures, version, batching=batching)
    return Published(shown, number, server.url, time.monotonic() - start)


def _serve(
    server: Server,
    name: str,
    servable: Servable,
    version: int | None,
    *,
    labels: Mapping[str, int | None] | None,
    batching: str | None,
) -> Published:
    start = time.monotonic()
    client = Client(server)
    with _lock:
        owner = served_as(client, name)
        pool = _pool(server)
        check_owner(name, owner, pool.pool_id)
        client.adopt(pool.pool_id)
        try:
            number = pool.publisher.publish(
                name, servable, version, labels, greedy=batching == "greedy"
            )
        except ServingError as error:
            raise as_error(error) from None
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


def _shown(client: Client, pool: Pool, name: str, version: int) -> dict[str, Any]:
    def check(model: dict[str, Any] | None) -> None:
        check_owner(name, model, pool.pool_id)  # another may have been faster

    return until_available(client, name, version, _SHOWN_TIMEOUT_S, check)
