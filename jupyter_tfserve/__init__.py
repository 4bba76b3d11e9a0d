"""Serve TensorFlow models from a notebook under TF Serving's REST API."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._pandas import register_accessor
from ._version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .notebook.async_client import AsyncClient
    from .notebook.client import Client
    from .notebook.errors import TFServeError
    from .notebook.images import encode_array
    from .notebook.partial import PartialResult
    from .notebook.publishing import Published, publish, publish_async, unpublish
    from .notebook.servers import Server, find_server
    from .pool.servables.signature import Signature

__all__ = [
    "AsyncClient",
    "Client",
    "PartialResult",
    "Published",
    "Server",
    "Signature",
    "TFServeError",
    "__version__",
    "encode_array",
    "find_server",
    "load_ipython_extension",
    "publish",
    "publish_async",
    "unpublish",
]

_PUBLIC = {
    "AsyncClient": ".notebook.async_client",
    "Client": ".notebook.client",
    "PartialResult": ".notebook.partial",
    "Published": ".notebook.publishing",
    "Server": ".notebook.servers",
    "Signature": ".pool.servables.signature",
    "TFServeError": ".notebook.errors",
    "encode_array": ".notebook.images",
    "find_server": ".notebook.servers",
    "publish": ".notebook.publishing",
    "publish_async": ".notebook.publishing",
    "unpublish": ".notebook.publishing",
}

register_accessor()


def __getattr__(name: str) -> Any:
    """The names for notebooks, loaded when they are used: a server imports this module too."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from .server.app import TFServeExtension

    return [{"module": "jupyter_tfserve.server.app", "app": TFServeExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-tfserve"}]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """IPython: ``%load_ext jupyter_tfserve``."""
    from .notebook.magics import TFServeMagics

    shell.register_magics(TFServeMagics)
