"""Recording: real calls of the REST API become a file that warms the next load up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from tensorflow_serving.apis import prediction_log_pb2

from jupyter_tfserve.config import ModelConfig, ModelServerConfig
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.core.server_core import CoreOptions, ServerCore
from jupyter_tfserve.pool.recorder import Recorder
from jupyter_tfserve.pool.rest_api import RestApi
from jupyter_tfserve.pool.scheduler import Scheduler
from jupyter_tfserve.pool.servables.loaders import PathLoader
from jupyter_tfserve.pool.servables.records import read_records
from jupyter_tfserve.pool.statistics import Statistics
from jupyter_tfserve.pool.tensor_proto import to_tensor
from jupyter_tfserve.pool.warmup import WARMUP_FILE, WarmingLoader, Warmup
from jupyter_tfserve.state import ManagerState, ServableState
from jupyter_tfserve.wire import Request, Response

Ask = Callable[[str, str, Any], int]


class Setting:
    """One copied version of half_plus_two, its core and what records calls of it."""

    def __init__(self, base: Path) -> None:
        self.version = base / "00000123"
        self.warmups: list[Warmup] = []
        self.core: ServerCore[Any] = ServerCore(self._loader, CoreOptions())
        self.recorder = Recorder(self.core)
        self._loop = asyncio.new_event_loop()
        scheduler = Scheduler(self._loop, timeout_s=30, max_in_flight=9, max_in_flight_per_model=9)
        self._rest = RestApi(self.core, scheduler, Statistics(lambda _name: True), self.recorder)
        self.config = ModelServerConfig((ModelConfig("m", str(base)),))
        self.core.reload_config(self.config)

    def _loader(self, _model: object, _servable: object, path: str) -> WarmingLoader:
        return WarmingLoader(PathLoader(path), path, 1, self.warmups.append)

    def call(self, verb: str, body: Any) -> int:
        """The HTTP status of one call."""
        answer: asyncio.Future[Response] = self._loop.create_future()
        request = Request("POST", f"/v1/models/m:{verb}", body=json.dumps(body).encode())
        self._rest.handle(request, answer.set_result)
        return self._loop.run_until_complete(answer).status

    def reload(self) -> None:
        ended = threading.Event()

        def on_state(state: ServableState) -> None:
            if state.state is ManagerState.END:
                ended.set()

        unsubscribe = self.core.bus.subscribe(on_state)
        self.core.reload_config(ModelServerConfig())
        assert ended.wait(30)
        unsubscribe()
        self.core.reload_config(self.config)

    def saved(self) -> list[Any]:
        records = read_records(str(self.version / WARMUP_FILE))
        return [prediction_log_pb2.PredictionLog.FromString(record) for record in records]

    def close(self) -> None:
        self.core.close()
        self._loop.close()


@pytest.fixture
def setting(model_dir: Path, tmp_path: Path) -> Iterator[Setting]:
    copytree(model_dir / "half_plus_two", tmp_path / "m")
    made = Setting(tmp_path / "m")
    yield made
    made.close()


PREDICT = {"instances": [1.0, 2.0]}
EXAMPLES = {"context": {"x": 1.0}, "examples": [{"x": 2.0}, {}]}
CLASSIFY = {"signature_name": "classify_x_to_y", **EXAMPLES}
REGRESS = {"signature_name": "regress_x_to_y", **EXAMPLES}


def test_calls_that_succeed_are_recorded_with_their_types(setting: Setting) -> None:
    assert setting.call("predict", PREDICT) == 200  # before the recording
    assert setting.recorder.start("m")["recorded"] == 0
    assert setting.call("predict", PREDICT) == 200
    assert setting.call("predict", {"instances": ["text"]}) == 400
    assert setting.call("classify", CLASSIFY) == 200
    assert setting.call("regress", REGRESS) == 200
    assert setting.recorder.stop("m")["recorded"] == 3
    assert setting.call("predict", PREDICT) == 200  # after it
    state = setting.recorder.save("m")
    file = setting.version / WARMUP_FILE
    assert (state["recording"], state["recorded"], state["file"]) == (False, 3, str(file))

    predict, classify, regress = setting.saved()
    request = predict.predict_log.request
    spec = request.model_spec
    assert (spec.name, spec.signature_name) == ("m", "serving_default")
    x = to_tensor(request.inputs["x"], "x")
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, np.array([1.0, 2.0]))  # type: ignore[arg-type]
    for logged in (classify.classify_log.request, regress.regress_log.request):
        features = [e.features.feature["x"] for e in logged.input.example_list.examples]
        assert [f.float_list.value[:] for f in features] == [[2.0], [1.0]]
    assert classify.classify_log.request.model_spec.signature_name == "classify_x_to_y"


def test_what_was_recorded_warms_the_next_load_up(setting: Setting) -> None:
    setting.recorder.start("m")
    for verb, body in (("predict", PREDICT), ("classify", CLASSIFY), ("regress", REGRESS)):
        setting.call(verb, body)
    setting.recorder.save("m")
    assert setting.warmups == []
    setting.reload()
    (warmup,) = setting.warmups
    assert (warmup.path, warmup.records, warmup.error) == (str(setting.version), 3, None)
    assert setting.call("predict", PREDICT) == 200


def test_the_limit_ends_a_recording(setting: Setting) -> None:
    setting.recorder.start("m", limit=2)
    for _ in range(4):
        setting.call("predict", PREDICT)
    state = setting.recorder.state("m")
    assert (state["recording"], state["recorded"], state["limit"]) == (False, 2, 2)


def test_another_start_begins_anew(setting: Setting) -> None:
    setting.recorder.start("m")
    setting.call("predict", PREDICT)
    assert setting.recorder.start("m", 123)["recorded"] == 0


def test_calls_of_a_version_loaded_since_are_not_recorded(setting: Setting) -> None:
    setting.recorder.start("m")
    setting.reload()
    assert setting.call("predict", PREDICT) == 200
    assert setting.recorder.state("m")["recorded"] == 0


def test_a_file_is_replaced_only_where_that_is_asked_for(setting: Setting) -> None:
    setting.recorder.start("m")
    setting.call("predict", PREDICT)
    setting.recorder.save("m")
    setting.recorder.start("m")
    for _ in range(2):
        setting.call("predict", PREDICT)
    with pytest.raises(ServingError, match="is there already") as refused:
        setting.recorder.save("m")
    assert refused.value.code is Code.ALREADY_EXISTS
    assert len(setting.saved()) == 1
    setting.recorder.save("m", replace=True)
    assert len(setting.saved()) == 2
    assert [path.name for path in (setting.version / WARMUP_FILE).parent.iterdir()] == [
        WARMUP_FILE.name
    ]


def test_it_may_be_saved_elsewhere(setting: Setting, tmp_path: Path) -> None:
    setting.recorder.start("m")
    setting.call("predict", PREDICT)
    file = tmp_path / "elsewhere"
    assert setting.recorder.save("m", str(file))["file"] == str(file)
    assert len(list(read_records(str(file)))) == 1
    assert not (setting.version / WARMUP_FILE).exists()


def test_a_place_that_cannot_be_written_is_named(setting: Setting, tmp_path: Path) -> None:
    setting.recorder.start("m")
    setting.call("predict", PREDICT)
    (setting.version / WARMUP_FILE.parent).write_text("in the way")
    with pytest.raises(ServingError, match="cannot be written: ") as refused:
        setting.recorder.save("m")
    assert refused.value.code is Code.PERMISSION_DENIED
    with pytest.raises(ServingError, match="cannot be written: No such file"):
        setting.recorder.save("m", str(tmp_path / "no" / "folder"))


def test_what_cannot_be_recorded_or_saved_says_why(setting: Setting) -> None:
    recorder = setting.recorder
    for act in (recorder.stop, recorder.state, recorder.save):
        with pytest.raises(ServingError, match="Model m is not being recorded"):
            act("m")
    with pytest.raises(ServingError, match=r"Servable not found for request: Specific\(m, 7\)"):
        recorder.start("m", 7)
    with pytest.raises(ServingError, match="holds 1 to 1000 calls; got 1001"):
        recorder.start("m", limit=1001)
    recorder.start("m")
    with pytest.raises(ServingError, match=r"No call of .* has succeeded") as refused:
        recorder.save("m")
    assert refused.value.code is Code.FAILED_PRECONDITION
