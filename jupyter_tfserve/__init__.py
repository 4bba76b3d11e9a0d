"""Serve TensorFlow models from a notebook under TF Serving's REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .notebook.servers import Server, find_server

__all__ = ["Server", "__version__", "find_server", "load_ipython_extension"]


def __getattr__(name: str) -> Any:
    """The names for notebooks, loaded when they are used: a server imports this module too."""
    if name in ("Server", "find_server"):
        from .notebook import servers

        return getattr(servers, name)
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
