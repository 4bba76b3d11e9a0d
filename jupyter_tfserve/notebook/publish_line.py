"""What stands behind ``%tfserve publish``."""

from __future__ import annotations

import argparse
import shlex

from .line_parser import LineParser

USAGE = (
    "publish MODEL [--name NAME] [--version N] [--label LABEL]... [--signatures EXPRESSION] "
    "[--freeze | --follow] [--batching greedy] [--to managed]"
)


def parse_publish(text: str) -> argparse.Namespace:
    """Read the line.

    Returns:
        ``model`` and ``signatures``, which are expressions, ``name``, ``version``, ``label`` (all
        of them), ``weights``, ``batching`` and ``to``.

    Raises:
        UsageError: where it does not read so.
    """
    parser = LineParser(USAGE)
    parser.add_argument("model")
    parser.add_argument("--name", type=_unquoted)
    parser.add_argument("--version", type=int)
    parser.add_argument("--label", type=_unquoted, action="append", default=[])
    parser.add_argument("--signatures")
    parser.add_argument("--to", type=_unquoted, choices=["managed"])
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument("--freeze", dest="weights", action="store_const", const="freeze")
    weights.add_argument("--follow", dest="weights", action="store_const", const="follow")
    parser.add_argument("--batching", choices=["greedy"])
    # Not as a shell splits: the quotes in models["a"] are Python's.
    try:
        words = shlex.split(text, posix=False)
    except ValueError as error:
        parser.error(str(error))
    arguments = parser.parse_args(words)
    if arguments.name is None and arguments.model.isidentifier():
        arguments.name = arguments.model
    return arguments


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
