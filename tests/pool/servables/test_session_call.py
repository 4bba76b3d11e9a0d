"""How sessions are configured, and how a call is prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from jupyter_tfserve.pool.servables.saved_model import SavedModelServable
from jupyter_tfserve.pool.servables.session_call import session_config


def test_sessions_take_device_memory_as_they_need_it_and_place_what_a_device_lacks_elsewhere() -> (
    None
):
    config = session_config("SINGLE_THREADED_EXECUTOR")
    assert config.gpu_options.allow_growth
    assert config.allow_soft_placement
    assert config.experimental.executor_type == "SINGLE_THREADED_EXECUTOR"


@pytest.mark.parametrize(
    ("devices", "shown"),
    [(["CPU"], "CPU"), (["CPU", "GPU", "GPU"], "GPU:0"), (["CPU", "XLA_CPU"], "CPU")],
)
def test_a_servable_tells_which_device_it_runs_on(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, devices: list[str], shown: str
) -> None:
    # The narrowest seam: what TensorFlow says it has. There is no GPU where tests run.
    class Device:
        def __init__(self, device_type: str) -> None:
            self.device_type = device_type

    def list_devices(_: Any) -> list[Device]:
        return [Device(kind) for kind in devices]

    monkeypatch.setattr(tf.compat.v1.Session, "list_devices", list_devices)
    servable = SavedModelServable(str(model_dir / "half_plus_two/00000123"))
    try:
        assert servable.footprint.device == shown
    finally:
        servable.close()
