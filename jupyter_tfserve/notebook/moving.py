"""Models of this kernel's memory, saved and served by the server's own pool from then on."""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jupyter_core.paths import jupyter_data_dir

from ..errors import ServingError
from .client import Client
from .errors import TFServeError
from .ownership import as_error, check_owner, served_as, until_available

if TYPE_CHECKING:
    from .servers import Server

_LOAD_TIMEOUT_S = 600.0


def folder_of(name: str) -> Path:
    """Where the versions of a model lie that was published to the managed pool.

    It is this user's: below Jupyter's data directory, whatever kernel published the model.
    """
    # A name may hold anything; "." and ".." are the only ones that quoting leaves dangerous.
    quoted = quote(name, safe="")
    if quoted.strip(".") == "":
        quoted = quoted.replace(".", "%2E")
    return Path(jupyter_data_dir(), "tfserve", "published", quoted)


def move(
    server: Server,
    name: str,
    model: Any,
    signatures: Any,
    version: int | None,
    *,
    batching: str | None,
) -> tuple[dict[str, Any], int]:
    """Save a model as the next version in its folder, and return once the server has loaded it.

    This kernel's own pool then lets go of the name, which has been answering meanwhile.

    Returns:
        The model as the server shows it, and the version's number.

    Raises:
        TFServeError: for a model that cannot be saved, or the server's reason.
    """
    client = Client(server)
    base = folder_of(name)
    shown = served_as(client, name)
    check_owner(name, shown, _own_pool(), str(base))
    number = _save(base, _next(base, shown, version), model, signatures)
    try:
        options = {"options": {"batching": batching}} if batching is not None else {}
        if shown is None or shown["base_path"] is None:
            client.load(name, str(base), **options)
        elif options:
            client.load(name, str(base), policy=shown["policy"], labels=shown["labels"], **options)
        client.reload()
        loaded = _loaded(client, name, number)
    except BaseException:
        shutil.rmtree(base / str(number), ignore_errors=True)
        raise
    _let_go(name)
    return loaded, number


def _save(base: Path, version: int, model: Any, signatures: Any) -> int:
    from ..pool.servables.live_saved import save_live

    target = base / str(version)
    if target.exists():
        text = f"There is a version {version} of model {base.name} in {base} already."
        raise TFServeError(text, "Leave the number out for the next one.", 409)
    # Hidden, so that no pool looks into it before it is complete.
    writing = base / f".{version}-{secrets.token_hex(4)}"
    try:
        base.mkdir(parents=True, exist_ok=True)
        save_live(model, signatures, writing)
        writing.rename(target)
    except ServingError as error:
        raise as_error(error) from None
    except OSError as error:
        raise TFServeError(f"The model cannot be saved in {base}: {error.strerror}") from error
    finally:
        shutil.rmtree(writing, ignore_errors=True)
    return version


def _next(base: Path, shown: dict[str, Any] | None, version: int | None) -> int:
    if version is not None:
        return version
    known = [v["version"] for v in shown["versions"]] if shown is not None else []
    with suppress(FileNotFoundError):
        known += [int(path.name) for path in base.iterdir() if path.name.isdecimal()]
    return max(known, default=0) + 1


def _loaded(client: Client, name: str, version: int) -> dict[str, Any]:
    def check(shown: dict[str, Any] | None) -> None:
        versions = shown["versions"] if shown is not None else []
        failed = [v["error"] for v in versions if v["version"] == version and v["state"] == "END"]
        if failed:
            raise TFServeError(f"Version {version} of model {name} was not loaded: {failed[0]}")

    return until_available(client, name, version, _LOAD_TIMEOUT_S, check)


def _own_pool() -> str | None:
    from ..pool import running

    pool = running()
    return pool.pool_id if pool is not None else None


def _let_go(name: str) -> None:
    from ..pool import running

    pool = running()
    if pool is not None:
        with suppress(ServingError):  # it was not published from here, or a last call goes on
            pool.publisher.unpublish(name)
