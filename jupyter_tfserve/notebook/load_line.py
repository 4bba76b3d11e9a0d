"""What stands behind ``%tfserve load`` and ``%tfserve unload``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .line_parser import LineParser

LOAD_USAGE = "load NAME PATH [--device DEVICE] [--pool POOL] [--batching greedy|off]"
UNLOAD_USAGE = "unload NAME [--release]"


def parse_load(arguments: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Read the line: the model's name, its path, and the rest in the management API's form.

    Raises:
        UsageError: where it does not read so.
    """
    parser = LineParser(LOAD_USAGE)
    parser.add_argument("name")
    parser.add_argument("path")
    parser.add_argument("--device")
    parser.add_argument("--pool")
    parser.add_argument("--batching", choices=["greedy", "off"])
    read = parser.parse_args(arguments)
    options = {"device": read.device, "pool": read.pool}
    if read.batching:
        options["options"] = {"batching": read.batching}
    return read.name, read.path, {key: value for key, value in options.items() if value}


def parse_unload(arguments: Sequence[str]) -> tuple[str, bool]:
    """Read the line: the model's name, and whether its process is to be released.

    Raises:
        UsageError: where it does not read so.
    """
    parser = LineParser(UNLOAD_USAGE)
    parser.add_argument("name")
    parser.add_argument("--release", action="store_true")
    read = parser.parse_args(arguments)
    return read.name, read.release
