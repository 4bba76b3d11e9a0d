"""What a Jupyter server with jupyter_tfserve offers beyond TensorFlow Serving's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .answer import error_text, read_json
from .errors import NotFoundError, UnimplementedError
from .model_call import refusal
from .request import json_body

if TYPE_CHECKING:
    from .servers import Server
    from .transport import Transport

_LOAD_S = 600.0
"""Loading a large model takes its time."""
_API = "/tfserve/api/"


class Management:
    """The calls of the management API, which a standalone server and TensorFlow Serving lack.

    Raises (from every call):
        UnimplementedError: where the server is one of those.
        TFServeError: of the kind that the server's status stands for, with its text and hint.
    """

    server: Server
    _transport: Transport

    def models(self) -> list[dict[str, Any]]:
        """What is served: a dict for each model, as the management API tells it."""
        models: list[dict[str, Any]] = self._manage("GET", "models")["models"]
        return models

    def pools(self) -> list[dict[str, Any]]:
        """The processes that hold models."""
        pools: list[dict[str, Any]] = self._manage("GET", "pools")["pools"]
        return pools

    def devices(self) -> dict[str, Any]:
        """Every device of the server's machine, and who holds its memory."""
        return self._manage("GET", "devices")

    def load(self, name: str, base_path: str, **options: Any) -> dict[str, Any]:
        """Serve the versions below ``base_path``; returns the model once one is AVAILABLE.

        Args:
            name: what the model is to be called.
            base_path: an absolute directory whose numeric children are versions.
            options: ``policy``, ``labels``, ``options``, ``device`` and ``pool`` in the management
                API's form.

        Raises:
            TFServeError: with the server's reason.
        """
        return self._manage("POST", "models", {"name": name, "base_path": base_path, **options})

    def unload(self, name: str, *, release: bool = False) -> dict[str, Any]:
        """Serve the model no longer.

        Args:
            name: the model's.
            release: whether to end the process that held it, so that all its memory returns, where
                it holds no other.

        Returns:
            The ``pool`` that held it, whether that was ``released``, and its ``remaining`` models.

        Raises:
            TFServeError: where there is no such model.
        """
        query = "?release=true" if release else ""
        return self._manage("DELETE", f"models/{quote(name, safe='')}{query}")

    def labels(self, name: str) -> dict[str, int]:
        """The labels of a model, and the versions that they stand for.

        Raises:
            TFServeError: where there is no such model.
        """
        for model in self.models():
            if model["name"] == name:
                return dict(model["labels"])
        raise NotFoundError(
            f"Could not find any versions of model {name}", "models() lists what is served."
        )

    def set_label(self, name: str, label: str, version: int) -> dict[str, int]:
        """Let a label stand for a version; returns all labels of the model."""
        path = f"models/{quote(name, safe='')}/labels/{quote(label, safe='')}"
        return dict(self._manage("PUT", path, {"version": version})["labels"])

    def delete_label(self, name: str, label: str) -> dict[str, int]:
        """Take a label away; returns those that are left."""
        path = f"models/{quote(name, safe='')}/labels/{quote(label, safe='')}"
        return dict(self._manage("DELETE", path)["labels"])

    def reload(self) -> bool:
        """Have the server read its model config file again, and look for new versions.

        Returns:
            Whether there was anything new in the file.

        Raises:
            TFServeError: why the file is refused; what is served is then as it was.
        """
        return bool(self._manage("POST", "reload")["config_changed"])

    def record(self, name: str, action: str = "state", **options: Any) -> dict[str, Any]:
        """Record calls of a model, to be replayed as its warm-up; returns how far that is.

        Args:
            name: the model's.
            action: ``start``, ``stop``, ``save`` or ``state``.
            options: ``version`` and ``limit`` of a start, ``path`` and ``replace`` of a save.

        Raises:
            TFServeError: with the server's reason.
        """
        path = f"models/{quote(name, safe='')}/record"
        if action == "state":
            return self._manage("GET", path)
        return self._manage("POST", path, {"action": action, **options})

    def adopt(self, pool_id: str) -> dict[str, Any]:
        """Tell the server of a pool in a notebook's kernel that has just been announced to it.

        Raises:
            TFServeError: where the server does not see it, or may not use it.
        """
        return self._manage("POST", "pools", {"id": pool_id})

    def _manage(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json_body(body)
        # What the server says now is the answer: a change is not asked for twice.
        reply = self._transport.send(method, _API + path, data, timeout=_LOAD_S, patience=0)
        if reply.status < 300:
            answer: dict[str, Any] = read_json(reply.body) if reply.body else {}
            return answer
        if _has_no_management(reply.status, reply.body):
            raise UnimplementedError(
                f"{self.server.url} has no jupyter_tfserve that can be managed.",
                "Install jupyter_tfserve in the environment of the Jupyter server and restart it; "
                "`jupyter server extension list` there shows whether it is enabled. "
                "A `jupyter tfserve` serves what its flags say, and nothing else.",
                reply.status,
            )
        raise refusal(reply, self.server.url)


def _has_no_management(status: int, body: bytes) -> bool:
    """Whether it is a 404 for the path, not for what it names; our API always tells a reason."""
    return status == 404 and not error_text(body)
