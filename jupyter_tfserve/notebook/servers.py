"""Which Jupyter server this notebook belongs to, and how to call it.

Jupyter servers leave a file in the runtime directory with their URL and token; only their user can
read it. The notebook's own server comes first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jupyter_core.paths import jupyter_runtime_dir

from ..announcement import is_alive

URL_VARIABLE = "JUPYTER_TFSERVE_URL"
TOKEN_VARIABLE = "JUPYTER_TOKEN"  # noqa: S105  (the variable's name, no secret)

_REST = re.compile(r"/v1(/models)?/?$")
_HERE = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that serves models: a Jupyter server, or a standalone one, which has no token.

    ``url`` ends with a slash; ``{url}v1/models/NAME`` is a model.
    """

    url: str
    token: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What a request has to carry to be let in."""
        return {"Authorization": f"token {self.token}"} if self.token else {}


class NoServerError(LookupError):
    """No Jupyter server was found from here; the text says what to do."""


def find_server() -> Server:
    """The server that this notebook belongs to.

    ``JUPYTER_TFSERVE_URL`` and ``JUPYTER_TOKEN`` name one outright. Otherwise it is the server that
    started this kernel, or the only one of this user that runs on this machine.

    Raises:
        NoServerError: where there is none, or several and none of them started this kernel; where
            the variable is no URL.
    """
    if url := os.environ.get(URL_VARIABLE):
        if not url.startswith(("http://", "https://")):
            raise NoServerError(f"{URL_VARIABLE} has to begin with http:// or https://: {url}")
        return Server(f"{url.rstrip('/')}/", os.environ.get(TOKEN_VARIABLE, ""))
    servers = _running()
    parent = os.environ.get("JPY_PARENT_PID", "")
    if own := [data for data in servers if str(data["pid"]) == parent]:
        return _server(own[0])
    if len(servers) == 1:
        return _server(servers[0])
    if not servers:
        raise NoServerError(
            "No Jupyter server of yours runs on this machine. Start one with: jupyter lab. "
            f"For a server elsewhere, set {URL_VARIABLE} (and {TOKEN_VARIABLE} if it asks for one)."
        )
    urls = ", ".join(data["url"] for data in servers)
    raise NoServerError(
        f"Several Jupyter servers run here ({urls}), and none of them started this process. "
        f"Choose one: set {URL_VARIABLE}, and {TOKEN_VARIABLE} to its token."
    )


def server_at(url: str | Server | None, token: str | None) -> Server:
    """The server of an address and a token; for what is not given, what :func:`find_server` finds.

    Raises:
        NoServerError: where no address is given and none is found.
        ValueError: where the address is no URL.
    """
    if isinstance(url, Server):
        return url if token is None else Server(url.url, token)
    if url is None:
        found = find_server()
        return found if token is None else Server(found.url, token)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"The address of a server begins with http:// or https://: {url}")
    root = f"{parts.scheme}://{parts.netloc}{_REST.sub('', parts.path).rstrip('/')}/"
    if token is None:
        token = parse_qs(parts.query).get("token", [""])[0]
    return Server(root, token)


def server_pid(server: Server) -> int:
    """The process of a Jupyter server on this machine: the one that pools are announced to.

    Raises:
        NoServerError: where none of the servers that run here is this one.
    """
    wanted = urlsplit(server.url)
    for data in _running():
        found = urlsplit(data["url"])
        same_host = wanted.hostname == found.hostname or {wanted.hostname, found.hostname} <= _HERE
        if same_host and (wanted.port, wanted.path) == (found.port, found.path):
            return int(data["pid"])
    # A server behind a proxy, as under a hub, may go by another address than its file says.
    if parent := os.environ.get("JPY_PARENT_PID"):
        return int(parent)
    raise NoServerError(
        f"{server.url} is no Jupyter server of this machine, and models can only be published from "
        "the machine of the server. Save the model there and load it: %tfserve load NAME PATH"
    )


def _running() -> list[dict[str, Any]]:
    """The files of servers that live, newest first."""
    found = []
    for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(path.read_text("utf-8"))
            if isinstance(data, dict) and {"pid", "url"} <= data.keys() and is_alive(data["pid"]):
                found.append((path.stat().st_mtime, data))
    return [data for _, data in sorted(found, key=lambda item: item[0], reverse=True)]


def _server(data: dict[str, Any]) -> Server:
    # Under JupyterHub the file holds no token, the environment does.
    token = data.get("token") or os.environ.get("JUPYTERHUB_API_TOKEN", "")
    return Server(data["url"], token)
