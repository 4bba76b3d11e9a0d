"""What flags and a file say of sessions reaches every session."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorflow.core.protobuf import config_pb2

from jupyter_tfserve.errors import ServingError
from jupyter_tfserve.pool.options import SessionOptions
from jupyter_tfserve.pool.servables import runtime, session_call


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_pb2.ConfigProto()
    config.CopyFrom(session_call._config)
    monkeypatch.setattr(session_call, "_config", config)


@pytest.mark.parametrize(
    ("session", "intra", "threads"),
    [(0, 0, 7), (3, 0, 3), (0, 2, 2), (3, 2, 2)],
)
def test_flags_go_before_the_file_and_the_special_one_before_the_general(
    tmp_path: Path, session: int, intra: int, threads: int
) -> None:
    file = tmp_path / "session.config"
    file.write_text("intra_op_parallelism_threads: 7 isolate_session_state: true")
    runtime.configure(SessionOptions(session, intra, str(file)))
    config = session_call.session_config("SINGLE_THREADED_EXECUTOR")
    assert config.intra_op_parallelism_threads == threads
    assert config.isolate_session_state
    assert config.allow_soft_placement  # as without a file
    assert config.experimental.executor_type == "SINGLE_THREADED_EXECUTOR"


def test_a_file_that_does_not_read_is_named_with_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "session.config"
    file.write_text("threads: 7")
    with pytest.raises(ServingError, match=rf"'{file}': 1:1 : .*no field named \"threads\""):
        runtime.configure(SessionOptions(tensorflow_session_config_file=str(file)))
