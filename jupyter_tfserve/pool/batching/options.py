"""Which batching a pool is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchingOptions:
    """Names are TensorFlow Serving's flags, but for ``enable_greedy_batching``."""

    enable_greedy_batching: bool = False
    enable_batching: bool = False
    batching_parameters_file: str = ""
    enable_per_model_batching_parameters: bool = False
