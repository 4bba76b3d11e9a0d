"""What the servers are asked to do: a model, a request, and how its answer is compared."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import orjson

SEED = 7
MILLION = 1_000_000


@dataclass(frozen=True)
class Model:
    """A folder of ``tests/models``; ``twin`` is the one for servers that load no TF 1 graph."""

    name: str
    twin: str = ""

    def folder(self, *, tf1: bool) -> str:
        """The folder for a server that loads TensorFlow 1's graphs, or does not."""
        return self.name if tf1 or not self.twin else self.twin


@dataclass(frozen=True)
class Work:
    """One request, sent again and again.

    ``make`` builds its body; without one the work is the status of the model, by GET. A work that
    ``is_large`` is timed one request at a time, the others under the load of many connections.
    """

    name: str
    title: str
    model: Model
    make: Callable[[], bytes] | None = None
    is_large: bool = False

    @cached_property
    def body(self) -> bytes | None:
        """The body of the request, or None where it is a GET."""
        return self.make() if self.make else None


def numbers(count: int) -> Any:
    """Random float32, the same each time."""
    return np.random.default_rng(SEED).standard_normal(count, np.float32)


def instances(rows: Any) -> bytes:
    """The body of a prediction for an array's rows, each float in its shortest text."""
    return b'{"instances":%b}' % orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)


def pixels(*shape: int) -> bytes:
    """One instance of that shape, with values from 0 to 1 as images have them."""
    levels = np.random.default_rng(SEED).integers(0, 256, (1, *shape))
    return instances((levels / 255).astype(np.float32))


def png(side: int) -> bytes:
    """A square RGB picture as PNG: a gradient with noise, which packs about as a photograph."""
    ramp = np.linspace(0, 200, side)
    smooth = np.broadcast_arrays(ramp[:, None], ramp, ramp[::-1])
    noise = np.random.default_rng(SEED).integers(0, 16, (side, side, 3))
    colours = (np.dstack(smooth) + noise).astype(np.uint8).reshape(side, side * 3)
    lines = b"".join(b"\0" + line.tobytes() for line in colours)

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def image() -> bytes:
    """A PNG of 224x224 in base64."""
    text = base64.b64encode(png(224)).decode()
    return json.dumps({"instances": [{"b64": text}]}).encode()


HALF_PLUS_THREE = Model("half_plus_three", twin="half_plus_three_tf2")

WORKS = (
    Work(
        "half_plus_three",
        "half_plus_three, 3 values",
        HALF_PLUS_THREE,
        lambda: b'{"instances": [1.0, 2.0, 5.0]}',
    ),
    Work(
        "thousand_values",
        "half_plus_three, 1,000 values",
        HALF_PLUS_THREE,
        lambda: instances(numbers(1000)),
    ),
    Work("status", "status of a model", HALF_PLUS_THREE),
    Work(
        "million_flat",
        "10⁶ floats, flat",
        HALF_PLUS_THREE,
        lambda: instances(numbers(MILLION)),
        is_large=True,
    ),
    Work(
        "million_column",
        "10⁶ floats, (10⁶, 1)",
        HALF_PLUS_THREE,
        lambda: instances(numbers(MILLION).reshape(-1, 1)),
        is_large=True,
    ),
    Work("mlp", "MLP 784-128-10, one row", Model("digits_mlp"), lambda: pixels(784)),
    Work("convnet", "convnet, one 28×28 image", Model("digits_convnet"), lambda: pixels(28, 28, 1)),
    Work("image", "224×224 PNG as base64", Model("image_size"), image),
)


def values(answer: bytes) -> Any:
    """The numbers of an answer to a prediction, in whichever envelope the server put them."""
    (predictions,) = json.loads(answer).values()
    return np.asarray(predictions, np.float64).ravel()


def agree(work: Work, answer: bytes, reference: bytes) -> bool:
    """Whether a server gave the numbers that another gave; a status is in every server's words."""
    if work.body is None:
        return True
    given, expected = values(answer), values(reference)
    return given.shape == expected.shape and bool(np.allclose(given, expected, 1e-4, 1e-6))
