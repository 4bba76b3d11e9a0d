"""The client for code with an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_double import ModelDouble, signature

from jupyter_tfserve.notebook.async_client import AsyncClient
from jupyter_tfserve.notebook.client import Client
from jupyter_tfserve.notebook.errors import NotFoundError

LINE = signature({"x": ("float", (-1,))}, {"y": ("float", (-1,))})


def test_it_has_every_method_with_the_same_parameters() -> None:
    inner = {"adopt"}  # what publishing needs, and nobody else
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if name.startswith("_") or name in inner:
            continue
        twin = inspect.signature(getattr(AsyncClient, name))
        assert twin.parameters == inspect.signature(method).parameters, name
        assert inspect.iscoroutinefunction(getattr(AsyncClient, name)), name


async def test_calls_overlap(double: ModelDouble) -> None:
    both = threading.Barrier(2, timeout=60)

    def wait(x: Any) -> dict[str, Any]:
        both.wait()
        return {"y": x}

    double.serve("m", LINE, wait)
    async with AsyncClient(double.url) as client:
        await client.metadata("m")
        answers = await asyncio.gather(client.predict("m", [1.0]), client.predict("m", [2.0]))
        assert [answer.tolist() for answer in answers] == [[1.0], [2.0]]
        assert await client.versions("m") == [1]
        with pytest.raises(NotFoundError):
            await client.predict("nope", [1.0])


async def test_the_loop_goes_on_while_a_call_is_under_way(double: ModelDouble) -> None:
    looped = threading.Event()

    def wait(x: Any) -> dict[str, Any]:
        assert looped.wait(60)
        return {"y": x}

    double.serve("m", LINE, wait)
    async with AsyncClient(double.url) as client:
        call = asyncio.create_task(client.predict("m", [1.0]))
        await asyncio.sleep(0)
        looped.set()
        assert (await call).tolist() == [1.0]


async def test_a_call_in_pieces_that_is_cancelled_ends_with_its_piece(double: ModelDouble) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(x: Any) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(60)
        return {"y": x}

    double.serve("m", LINE, wait)
    frame = pd.DataFrame({"x": np.zeros(5000, np.float32)})
    client = AsyncClient(double.url)
    call = asyncio.create_task(client.predict("m", frame, chunk_bytes=1000, progress=False))
    assert await asyncio.to_thread(begun.wait, 60)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    go_on.set()
    threads = client._threads
    await client.close()
    await asyncio.to_thread(threads.shutdown, wait=True)
    assert len(double.posts()) == 1
