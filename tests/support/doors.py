"""The doors of real servers: where to send requests to, until a block ends."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import servers
from replay import Door


@contextmanager
def standalone(config: Path, folder: Path) -> Iterator[Door]:
    """``jupyter tfserve`` with the models of a configuration file, once all of them answer.

    ``folder`` takes its log and the files of Jupyter's runtime.
    """
    flags = (
        f"--model_config_file={config}",
        "--allow_version_labels_for_unavailable_models=true",
    )
    with servers.standalone(folder, *flags) as server:
        server.wait_for(*_names(config))
        yield _door(server)
        server.must_run()


@contextmanager
def jupyter(config: Path, folder: Path, *, app: str = "jupyter_server") -> Iterator[Door]:
    """``jupyter server`` with the extension and a configuration file, once all models answer."""
    flags = (
        f"--PoolManager.model_config_file={config}",
        "--PoolManager.allow_version_labels_for_unavailable_models=True",
    )
    with servers.jupyter(folder, *flags, app=app) as server:
        server.wait_for(*_names(config))
        yield _door(server)
        server.must_run()


def _names(config: Path) -> list[str]:
    return re.findall(r'\bname: *"([^"]+)"', config.read_text())


def _door(server: servers.Server) -> Door:
    return Door("127.0.0.1", server.port, server.prefix, server.headers)
