"""How the model config file is followed."""

from __future__ import annotations

import asyncio
import logging

import pytest

from jupyter_tfserve.config import ModelConfig, ModelServerConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server.config_file import ConfigFile

A = ModelServerConfig((ModelConfig("a", "/models/a"),))
B = ModelServerConfig((ModelConfig("b", "/models/b"),))
BROKEN = ServingError(Code.INVALID_ARGUMENT, "Invalid protobuf file: '/m': 2:3 : oops")
GONE = ServingError(Code.NOT_FOUND, "/m; No such file or directory")
NO_POOL = ServingError(Code.UNAVAILABLE, "The model pool is starting")
NOT_YET = ServingError(Code.FAILED_PRECONDITION, "Request to assign label to version 2 of model b")


class File:
    """Reads what a test writes, one look after the other; the last one stays."""

    def __init__(self, *contents: ModelServerConfig | ServingError) -> None:
        self.contents = list(contents)
        self.applied: list[ModelServerConfig] = []
        self.refusals: list[ServingError] = []
        self.exhausted = asyncio.Event()
        self.log = logging.getLogger("test.config_file")
        self.file = ConfigFile(self.read, self.apply, self.log)

    async def read(self) -> ModelServerConfig:
        if len(self.contents) == 1:
            self.exhausted.set()
            content = self.contents[0]
        else:
            content = self.contents.pop(0)
        if isinstance(content, ServingError):
            raise content
        return content

    async def apply(self, config: ModelServerConfig) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.applied.append(config)

    async def follow(self) -> None:
        """Look until all contents were read."""
        task = asyncio.ensure_future(self.file.follow(0.0))
        async with asyncio.timeout(10):
            await self.exhausted.wait()
        task.cancel()


async def test_it_is_applied_when_it_has_changed_and_only_then() -> None:
    file = File(A, A, B, B, A, A)
    await file.follow()
    assert file.applied == [A, B, A]


async def test_what_was_changed_otherwise_stays_as_long_as_the_file_does() -> None:
    file = File(A, A, B)
    assert await file.file.load()
    assert not await file.file.load()
    assert await file.file.load()
    assert file.applied == [A, B]


async def test_a_problem_is_told_once_and_what_is_served_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    file = File(A, BROKEN, BROKEN, BROKEN, GONE, GONE, B, BROKEN, A, A)
    await file.follow()
    assert file.applied == [A, B, A]
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    text = "The model config file is not applied; what is served stays: "
    assert told == [f"{text}{error}" for error in (BROKEN, GONE, BROKEN)]


async def test_a_file_that_was_refused_is_tried_again_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A label may wait for its version."""
    file = File(A, B, B, B, B)
    file.refusals = [NOT_YET, NOT_YET, NOT_YET]
    await file.follow()
    assert file.applied == [B]
    assert caplog.text.count("assign label") == 1


async def test_a_pool_that_is_down_is_for_others_to_tell(caplog: pytest.LogCaptureFixture) -> None:
    file = File(A, NO_POOL, NO_POOL, A, A)
    await file.follow()
    assert file.applied == [A]  # the next pool is told by others
    assert "not applied" not in caplog.text


async def test_a_refusal_that_was_raised_is_not_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = File(BROKEN, BROKEN, BROKEN)
    with pytest.raises(ServingError, match="oops"):
        await file.file.load()
    await file.follow()
    assert "not applied" not in caplog.text
