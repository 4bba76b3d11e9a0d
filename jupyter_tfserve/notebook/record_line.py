"""What stands behind ``%tfserve record``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .line_parser import LineParser

if TYPE_CHECKING:
    from .client import Client

USAGE = (
    "record NAME [start [--version N] [--limit N] | stop | save [--to PATH] [--replace] | status]"
)
_OPTIONS = {"start": {"version", "limit"}, "save": {"path", "replace"}}


def parse_record(arguments: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Read the line: the model's name, what to do, and the options that were given.

    Raises:
        UsageError: where it does not read so.
    """
    parser = LineParser(USAGE)
    parser.add_argument("name")
    actions = ["start", "stop", "save", "status"]
    parser.add_argument("action", nargs="?", choices=actions, default="start")
    parser.add_argument("--version", type=int)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--to", dest="path")
    parser.add_argument("--replace", action="store_true", default=None)
    given = {k: v for k, v in vars(parser.parse_args(arguments)).items() if v is not None}
    name, action = given.pop("name"), given.pop("action")
    foreign = given.keys() - _OPTIONS.get(action, set())
    if foreign:
        parser.error(f"{action} takes no {', '.join(sorted(foreign))}")
    if "path" in given:
        given["path"] = str(Path(given["path"]).expanduser().absolute())
    return name, action, given


def run_record(client: Client, arguments: Sequence[str]) -> str:
    """Do what the line says, and tell in one line how it stands.

    Raises:
        UsageError: where the line does not read as one.
        TFServeError: with the server's reason.
    """
    name, action, options = parse_record(arguments)
    state = client.record(name, "state" if action == "status" else action, **options)
    model = f"{state['model']} version {state['version']}"
    count = f"{state['recorded']} of at most {state['limit']} calls"
    if action == "save":
        saved = f"{state['recorded']} calls of {model} are in {state['file']}"
        return f"□ {saved}; a load of the version replays them"
    if state["recording"]:
        return f"● recording {model}: {count}. %tfserve record {name} save ends it"
    return f"□ recorded {model}: {count}. %tfserve record {name} save writes them"
