"""Calls of a server's management API from Python."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from .servers import find_server

if TYPE_CHECKING:
    from .servers import Server

_TIMEOUT_S = 600.0
"""Loading a large model takes its time."""
_LET_IN = "Set JUPYTER_TFSERVE_URL and JUPYTER_TOKEN to the server's address and token."


class TFServeError(Exception):
    """The server refused, or could not be reached.

    ``hint`` is one sentence on what to do, or empty; ``status`` is the HTTP status, 0 for none.
    """

    def __init__(self, message: str, hint: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n{self.hint}" if self.hint else message

    def _render_traceback_(self) -> list[str]:
        """IPython: the words are for the user; where they were raised says nothing to them."""
        return str(self).splitlines()


class Client:
    """A server's models, and what can be done with them."""

    def __init__(self, server: Server | None = None) -> None:
        """Use the notebook's own server unless told otherwise.

        Raises:
            NoServerError: where none is given and none is found.
        """
        self.server = server or find_server()

    def models(self) -> list[dict[str, Any]]:
        """What is served: a dict for each model, as the management API tells it."""
        models: list[dict[str, Any]] = self._call("GET", "models")["models"]
        return models

    def pools(self) -> list[dict[str, Any]]:
        """The processes that hold models."""
        pools: list[dict[str, Any]] = self._call("GET", "pools")["pools"]
        return pools

    def load(self, name: str, base_path: str, **options: Any) -> dict[str, Any]:
        """Serve the versions below ``base_path``; returns the model once one is AVAILABLE.

        Args:
            name: what the model is to be called.
            base_path: an absolute directory whose numeric children are versions.
            options: ``policy``, ``labels`` and ``options`` in the management API's form.

        Raises:
            TFServeError: with the server's reason.
        """
        return self._call("POST", "models", {"name": name, "base_path": base_path, **options})

    def unload(self, name: str) -> None:
        """Serve the model no longer.

        Raises:
            TFServeError: where there is no such model.
        """
        self._call("DELETE", f"models/{quote(name, safe='')}")

    def adopt(self, pool_id: str) -> dict[str, Any]:
        """Tell the server of a pool in a notebook's kernel that has just been announced to it.

        Raises:
            TFServeError: where the server does not see it, or may not use it.
        """
        return self._call("POST", "pools", {"id": pool_id})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = Request(  # noqa: S310  (the URL is the user's own server)
            f"{self.server.url}tfserve/api/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **self.server.headers},
            method=method,
        )
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310
                text = response.read()
        except HTTPError as error:
            raise self._refusal(error) from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise TFServeError(
                f"{self.server.url} does not answer: {reason}", "Is the Jupyter server running?"
            ) from None
        answer: dict[str, Any] = json.loads(text) if text else {}
        return answer

    def _refusal(self, error: HTTPError) -> TFServeError:
        text = error.read().decode("utf-8", "replace")
        try:
            answer = json.loads(text)
            message, hint = answer["error"], answer.get("hint") or ""
        except (ValueError, KeyError, TypeError):
            pass
        else:
            if error.code == HTTPStatus.FORBIDDEN and not hint:
                hint = _LET_IN
            return TFServeError(message, hint, error.code)
        if error.code == HTTPStatus.NOT_FOUND:
            return TFServeError(
                f"{self.server.url} has no jupyter_tfserve that can be managed.",
                "Install jupyter_tfserve in the environment of the Jupyter server and restart it; "
                "`jupyter server extension list` there shows whether it is enabled. "
                "A `jupyter tfserve` serves what its flags say, and nothing else.",
                error.code,
            )
        if error.code == HTTPStatus.FORBIDDEN:
            return TFServeError(
                f"{self.server.url} does not let this notebook in.",
                _LET_IN,
                error.code,
            )
        return TFServeError(
            f"{self.server.url} answered {error.code}: {text[:200]}", "", error.code
        )
