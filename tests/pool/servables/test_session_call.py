"""How sessions are configured, and how a call is prepared."""

from __future__ import annotations

from jupyter_tfserve.pool.servables.session_call import session_config


def test_sessions_take_device_memory_as_they_need_it_and_place_what_a_device_lacks_elsewhere() -> (
    None
):
    config = session_config("SINGLE_THREADED_EXECUTOR")
    assert config.gpu_options.allow_growth
    assert config.allow_soft_placement
    assert config.experimental.executor_type == "SINGLE_THREADED_EXECUTOR"
