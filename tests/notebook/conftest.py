"""A server without TensorFlow, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model_double import ModelDouble, model_double

from jupyter_tfserve.notebook.client import Client


@pytest.fixture
def double() -> Iterator[ModelDouble]:
    with model_double() as running:
        yield running


@pytest.fixture
def client(double: ModelDouble) -> Iterator[Client]:
    with Client(double.url, patience=5) as made:
        yield made
