"""How much a load is said to have taken, on a GPU that a test makes up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.options import DeviceOptions
from jupyter_tfserve.pool.servables import runtime, session_call
from jupyter_tfserve.pool.servables.base import Footprint
from jupyter_tfserve.pool.servables.footprint import LoadMeter


class Allocator:
    """Tells the figures that it is given, one after the other; an exception is raised."""

    def __init__(self, *figures: int | Exception) -> None:
        self._figures = iter(figures)

    def __call__(self, device: str) -> int:
        assert device == "GPU:0"
        figure = next(self._figures)
        if isinstance(figure, Exception):
            raise figure
        return figure


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    device = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: [] if kind == "CPU" else [device],
    )


@pytest.mark.parametrize(
    ("before", "after", "footprint"),
    [
        (100, 350, Footprint("GPU:0", 0, 250)),  # with what the graph needs besides
        (100, 250, Footprint("GPU:0", 50, 150)),  # some variables are on the host
        (100, 90, Footprint("GPU:0", 200, 0)),  # another model went meanwhile
        (ValueError("no such device"), 350, Footprint("GPU:0", 0, 200)),
        (100, RuntimeError("no statistics"), Footprint("GPU:0", 0, 200)),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_the_difference_at_load_is_told(
    before: int | Exception, after: int | Exception, footprint: Footprint
) -> None:
    assert LoadMeter(Allocator(before, after)).footprint(200) == footprint


def test_on_the_cpu_it_is_the_variables() -> None:
    assert LoadMeter(Allocator()).footprint(200) == Footprint("CPU", 200, 0)


@pytest.fixture
def options() -> Iterator[None]:
    """The process's options are as they were afterwards."""
    kept = session_call.session_config().gpu_options
    yield
    session_call._config.gpu_options.CopyFrom(kept)


@pytest.mark.usefixtures("options")
def test_a_limit_in_megabytes_holds_for_each_gpu_of_every_session() -> None:
    session_call.limit_memory(4000, 0.5, 2)
    gpu = session_call.session_config("SINGLE_THREADED_EXECUTOR").gpu_options
    assert gpu.allow_growth
    assert [list(d.memory_limit_mb) for d in gpu.experimental.virtual_devices] == [[4000], [4000]]
    assert gpu.per_process_gpu_memory_fraction == 0


@pytest.mark.usefixtures("options")
def test_a_share_is_a_limit_and_memory_still_grows_on_demand() -> None:
    session_call.limit_memory(0, 0.25, 1)
    gpu = session_call.session_config().gpu_options
    assert gpu.per_process_gpu_memory_fraction == 0.25
    assert gpu.allow_growth
    with tf.compat.v1.Session(graph=tf.Graph(), config=session_call.session_config()) as session:
        assert session.list_devices()


def test_a_device_that_tensorflow_does_not_see_is_refused_with_those_that_it_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: (
            [] if kind == "GPU" else [tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")]
        ),
    )
    with pytest.raises(ServingError, match="no device GPU:7: TensorFlow sees CPU:0") as raised:
        runtime.use(DeviceOptions("GPU:7"))
    assert raised.value.code is Code.FAILED_PRECONDITION
    runtime.use(DeviceOptions("CPU"))
