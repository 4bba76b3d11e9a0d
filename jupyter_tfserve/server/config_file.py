"""The model config file: applied once, and again whenever it says something else."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ..errors import Code, ServingError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..config import ModelServerConfig

Log = logging.Logger | logging.LoggerAdapter[logging.Logger]


class ConfigFile:
    """What ``--model_config_file`` names.

    TensorFlow Serving applies the file at every look. Here it is applied until it is accepted, and
    again when it has changed: what was changed otherwise since stays as long as the file does.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[ModelServerConfig]],
        apply: Callable[[ModelServerConfig], Awaitable[None]],
        log: Log,
    ) -> None:
        """Touch nothing yet.

        Args:
            read: reads the file.
            apply: makes its content the configuration in force.
            log: where the user reads.
        """
        self._read = read
        self._apply = apply
        self._log = log
        self._applied: ModelServerConfig | None = None
        self._refusal = ""

    async def load(self) -> bool:
        """Apply the file as it is now; tells whether there was anything new in it.

        Raises:
            ServingError: why it cannot be read or is refused; what is served is then as it was.
        """
        try:
            config = await self._read()
            is_new = config != self._applied
            if is_new:
                await self._apply(config)
        except ServingError as error:
            self._refusal = str(error)
            raise
        self._applied = config
        self._refusal = ""
        return is_new

    async def follow(self, period_s: float) -> None:
        """Look at the file every ``period_s`` seconds, for ever; each problem is told once."""
        while True:
            await asyncio.sleep(period_s)
            told = self._refusal
            try:
                if await self.load():
                    self._log.info("The model config file has been applied")
            except ServingError as error:
                # While the pool is down, others tell of it.
                if self._refusal != told and error.code is not Code.UNAVAILABLE:
                    text = "The model config file is not applied; what is served stays: %s"
                    self._log.error(text, error)
