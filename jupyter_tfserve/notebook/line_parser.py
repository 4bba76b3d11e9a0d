"""How a line of the magic with options is read."""

from __future__ import annotations

import argparse
from typing import NoReturn

from IPython.core.error import UsageError


class LineParser(argparse.ArgumentParser):
    """Refuses as IPython does, where argparse would end the process."""

    def __init__(self, usage: str) -> None:
        """``usage`` is the line without ``%tfserve``, as a refusal shows it."""
        super().__init__(add_help=False, allow_abbrev=False)
        self._line = usage

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message}\nUsage: %tfserve {self._line}")
