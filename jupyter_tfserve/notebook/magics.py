"""The ``%tfserve`` magic: what is served, steered from a cell.

Each subcommand is a thin form of :class:`~jupyter_tfserve.notebook.client.Client`.
"""

from __future__ import annotations

import shlex
import time
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display

from .client import Client
from .device_table import Devices
from .display import Labelled, Loaded, Status
from .errors import TFServeError
from .load_line import LOAD_USAGE, UNLOAD_USAGE, parse_load, parse_unload
from .publish_line import USAGE, parse_publish
from .publishing import publish, unpublish
from .record_line import USAGE as RECORD_USAGE
from .record_line import run_record
from .servers import NoServerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

_USAGE = {
    "load": LOAD_USAGE,
    "publish": USAGE,
    "unload": UNLOAD_USAGE,
    "unpublish": "unpublish NAME",
    "label": "label NAME LABEL VERSION, or label NAME LABEL --remove",
    "reload": "reload",
    "status": "status [NAME]",
    "record": RECORD_USAGE,
    "devices": "devices",
    "help": "help",
}
_HELP = """\
%tfserve load NAME PATH    serve the versions in the directory PATH as NAME
    --device DEVICE        on GPU:0, GPU:1, ... or CPU
    --pool POOL            in that pool
    --batching greedy|off  run calls that happen to wait as one batch, or not; by default as the
                           server is set
%tfserve publish MODEL     serve a model of this notebook's memory, while its kernel lives
    --name NAME            under NAME; by default as its variable is called
    --version N            as version N; by default the next one
    --label LABEL          with a label, by which it can be called; it stays while it has one
    --signatures EXPR      called by EXPR, such as {"serving_default": model.predict}
    --freeze | --follow    with the weights as they are now (the default), or as they become
    --batching greedy      run calls that happen to wait as one batch
    --to managed           saved, and served by the server itself from then on
%tfserve label NAME LABEL VERSION     let LABEL stand for that version of NAME
%tfserve label NAME LABEL --remove    and no longer
%tfserve reload            read the model config file again, and look for new versions now
%tfserve status [NAME]     what is served, and how it is
%tfserve devices           who holds the memory of which device
%tfserve unload NAME       serve NAME no longer
    --release              and end its process where it was the last, so that its memory returns
%tfserve unpublish NAME    the same for a model that this notebook has published
%tfserve record NAME       record the next calls of NAME that succeed
    save                   … and write them where its next load replays them, before any call
    stop | status          end the recording | tell how far it is
%tfserve help              this text

PATH holds numbered folders, one a version: PATH/1/saved_model.pb, or a file of Keras or TFLite in
each; or PATH is such a file itself. A relative path starts at the notebook's working directory.
{expression} and $name are replaced by Python values."""


class _Line:
    """One line of text in a cell."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _is_shown(model: dict[str, Any]) -> bool:
    """Whether a model is of now: configured, with a version that lives, or lost with its kernel."""
    if model["base_path"] is not None:
        return True
    published = model["owner"]["kind"] == "notebook"
    return any(v["state"] != "END" or (published and v["error"]) for v in model["versions"])


@magics_class
class TFServeMagics(Magics):
    """The magic and its subcommands."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._commands: dict[str, Callable[..., Any]] = {
            "load": self._load,
            "publish": self._publish,
            "unload": self._unload,
            "unpublish": self._unpublish,
            "label": self._label,
            "reload": self._reload,
            "status": self._status,
            "record": self._record,
            "devices": self._devices,
            "help": self._help,
        }

    @line_magic
    def tfserve(self, line: str) -> Any:
        """Serve TensorFlow models from this notebook; the full text is :data:`_HELP`."""
        try:
            command, *arguments = shlex.split(line) or ["status"]
        except ValueError as error:
            raise UsageError(f"%tfserve: {error}") from None
        if command not in self._commands:
            known = ", ".join(self._commands)
            raise UsageError(f"%tfserve has no subcommand {command!r}. It has: {known}.")
        method = self._commands[command]
        if command == "publish":
            arguments = [line.split(None, 1)[1] if arguments else ""]
        try:
            signature(method).bind(*arguments)
        except TypeError:
            raise UsageError(f"Usage: %tfserve {_USAGE[command]}") from None
        try:
            return method(*arguments)
        except NoServerError as error:
            raise TFServeError(str(error)) from None

    def _load(self, *arguments: str) -> None:
        name, path, options = parse_load(arguments)
        client = Client()
        full = path if "://" in path else str(Path(path).expanduser().absolute())
        line = display(_Line(f"◔ LOADING {name} from {full} …"), display_id=True)  # type: ignore[no-untyped-call]
        start = time.monotonic()
        try:
            model = client.load(name, full, **options)
        except BaseException:
            line.update(_Line(f"▲ {name} was not loaded; what was served stays as it was"))
            raise
        line.update(Loaded(model, client.server.url, time.monotonic() - start))

    def _publish(self, line: str) -> None:
        arguments = parse_publish(line)
        assert self.shell is not None
        model = self.shell.ev(arguments.model)  # type: ignore[no-untyped-call]
        signatures = None
        if arguments.signatures is not None:
            signatures = self.shell.ev(arguments.signatures)  # type: ignore[no-untyped-call]
        published = publish(
            model,
            arguments.name,
            signatures=signatures,
            version=arguments.version,
            weights=arguments.weights,
            batching=arguments.batching,
            labels=dict.fromkeys(arguments.label),
            to=arguments.to,
        )
        display(published)  # type: ignore[no-untyped-call]

    def _unload(self, *arguments: str) -> _Line:
        name, release = parse_unload(arguments)
        told = Client().unload(name, release=release)
        line = f"□ {name} is no longer served"
        if release:
            kept = f"stays for {', '.join(told['remaining'])}" if told["remaining"] else "stays"
            line += f"; pool {told['pool']} {'has ended' if told['released'] else kept}"
        return _Line(line)

    def _unpublish(self, name: str) -> _Line:
        unpublish(name)
        return _Line(f"□ {name} is no longer served")

    def _label(self, name: str, label: str, version: str) -> Labelled:
        client = Client()
        if version == "--remove":
            client.delete_label(name, label)
            return Labelled(name, label, None, client.server.url)
        if not version.isdecimal():
            raise UsageError(f"Usage: %tfserve {_USAGE['label']}")
        client.set_label(name, label, int(version))
        return Labelled(name, label, int(version), client.server.url)

    def _reload(self) -> _Line:
        changed = Client().reload()
        words = "The model config file has been applied. " if changed else ""
        return _Line(f"● {words}New versions are looked for; %tfserve status shows them")

    def _status(self, name: str | None = None) -> Status:
        client = Client()
        models = client.models()
        if name is None:
            models = [model for model in models if _is_shown(model)]
        else:
            models = [model for model in models if model["name"] == name]
            if not models:
                raise TFServeError(
                    f"Could not find any versions of model {name}",
                    "%tfserve status lists what is served.",
                )
        return Status(models, client.server.url)

    def _record(self, *arguments: str) -> _Line:
        return _Line(run_record(Client(), arguments))

    def _devices(self) -> Devices:
        return Devices(Client().devices())

    def _help(self) -> None:
        print(_HELP)  # noqa: T201  (a magic's output is the cell's)


# What `%tfserve?` shows.
TFServeMagics.tfserve.__doc__ = f"Serve TensorFlow models from this notebook.\n\n{_HELP}"
