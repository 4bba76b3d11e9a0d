"""Slow SavedModels run in the way that is faster; quick and stateful ones are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from jupyter_tfserve.pool.servables import executors
from jupyter_tfserve.pool.servables.executors import load_saved_model
from jupyter_tfserve.pool.servables.saved_model import SavedModelServable

SERVE = ("serve",)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each time that a model was loaded, whether its branches could run side by side."""
    seen = []

    def load(path: str, tags: tuple[str, ...], *, side_by_side: bool = False) -> SavedModelServable:
        seen.append(side_by_side)
        return SavedModelServable(path, tags, side_by_side=side_by_side)

    monkeypatch.setattr(executors, "SavedModelServable", load)
    monkeypatch.setattr(executors.os, "cpu_count", lambda: 2)
    return seen


@pytest.fixture
def all_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_LONG_S", 0.0)


def answer(path: Path) -> list[float]:
    servable = load_saved_model(str(path), SERVE)
    try:
        inputs = {"x": np.array([1, 2, 5], np.float32)}
        return servable.call("serving_default", inputs)["y"].tolist()
    finally:
        servable.close()


@pytest.mark.usefixtures("loads")
def test_a_quick_model_is_loaded_once(model_dir, loads, monkeypatch):
    monkeypatch.setattr(executors, "_LONG_S", 60.0)
    assert answer(model_dir / "half_plus_three/00000123") == [3.5, 4.0, 5.5]
    assert loads == [False]


@pytest.mark.usefixtures("all_slow")
@pytest.mark.parametrize("gain", [0.0, 1e9], ids=["worse", "better"])
def test_a_slow_model_is_tried_in_both_ways_and_answers_alike(model_dir, loads, gain, monkeypatch):
    monkeypatch.setattr(executors, "_GAIN", gain)
    assert answer(model_dir / "half_plus_three/00000123") == [3.5, 4.0, 5.5]
    assert loads == [False, True]


@pytest.mark.usefixtures("all_slow")
def test_a_model_that_keeps_state_is_not_run(model_dir, loads):
    servable = load_saved_model(str(next((model_dir / "counter").iterdir())), SERVE)
    assert loads == [False]
    assert servable.call("get_counter", {})["output"] == 0
    servable.close()


@pytest.mark.usefixtures("all_slow")
def test_a_model_that_refuses_zeros_stays_as_it_is(tmp_path, loads):
    class Picky(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def predict(self, x):
            with tf.control_dependencies([tf.debugging.assert_positive(x)]):
                return {"y": tf.identity(x)}

    module = Picky()
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default": module.predict})
    assert answer(tmp_path / "1") == [1, 2, 5]
    assert loads == [False]
