"""TensorFlow Serving's metrics of warm-up."""

from __future__ import annotations

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.metrics import expose
from jupyter_tfserve.pool.warmup import Warmup
from jupyter_tfserve.pool.warmup_metrics import WarmupMetrics


def test_warm_ups_are_told_by_path_and_status() -> None:
    metrics = WarmupMetrics()
    metrics.record(Warmup("/m/1", 3, 0.002))
    metrics.record(Warmup("/m/1", 2, 0.004))
    metrics.record(Warmup("/m/2", 1, 0.001, ServingError(Code.DATA_LOSS, "cut")))
    text = expose(metrics.families())
    if isinstance(text, bytes):
        text = text.decode()
    labels = 'model_path="/m/1",status="OK"'
    assert f":tensorflow:serving:model_warmup_records_read{{{labels}}} 5\n" in text
    assert f":tensorflow:serving:model_warmup_latency_sum{{{labels}}} 6000\n" in text
    assert f":tensorflow:serving:model_warmup_latency_count{{{labels}}} 2\n" in text
    assert 'records_read{model_path="/m/2",status="DATA_LOSS"} 1\n' in text
