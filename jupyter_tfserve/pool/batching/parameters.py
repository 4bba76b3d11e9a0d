"""TensorFlow Serving's batching parameters, with its defaults and its checks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ...errors import invalid_argument


@dataclass(frozen=True, slots=True)
class BatchingParameters:
    """The fields of TensorFlow Serving's ``BatchingParameters``.

    Attributes:
        max_batch_size: The most rows of a batch, and of one request.
        batch_timeout_micros: The longest wait for a batch to fill; 0 runs it once a thread is free.
        max_enqueued_batches: How many batches may wait in one queue.
        num_batch_threads: How many batches run at a time, of all models.
        thread_pool_name: Labels metrics.
        allowed_batch_sizes: Batches are padded to the next of these, in ascending order.
        pad_variable_length_inputs: Pad rows of different shapes to the largest of a batch.
        enable_large_batch_splitting: Split requests that are larger than a batch.
        max_execution_batch_size: The most rows of a batch where requests are split; 0 is not set.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    thread_pool_name: str = "batch_threads"
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int = 0

    @property
    def execution_size(self) -> int:
        """The most rows that are run at a time."""
        if not self.enable_large_batch_splitting:
            return self.max_batch_size
        return self.max_execution_batch_size or self.max_batch_size

    @property
    def queue_length(self) -> int:
        """How many batches may wait; TensorFlow Serving takes 0 for 1 unless requests are split."""
        if self.enable_large_batch_splitting:
            return self.max_enqueued_batches
        return self.max_enqueued_batches or 1

    def check_threads(self) -> None:
        """Check what the whole server shares.

        Raises:
            ServingError: INVALID_ARGUMENT.
        """
        if self.num_batch_threads < 1:
            raise invalid_argument(
                f"num_batch_threads must be positive; was {self.num_batch_threads}"
            )

    def check_queue(self) -> None:
        """Check what a version's queues are made by.

        Raises:
            ServingError: INVALID_ARGUMENT, which becomes the status of the version.
        """
        sizes = self.allowed_batch_sizes
        if sizes and sizes[-1] != self.max_batch_size:
            raise invalid_argument(
                "Last entry in allowed_batch_sizes must match max_batch_size; last entry was "
                f"{sizes[-1]}; expected {self.max_batch_size}"
            )
        if self.max_batch_size < 1:
            raise invalid_argument(
                f"input_batch_size_limit must be positive; was {self.max_batch_size}"
            )
        if self.batch_timeout_micros < 0:
            raise invalid_argument(
                f"batch_timeout_micros must be non-negative; was {self.batch_timeout_micros}"
            )
        if self.queue_length < 1:
            raise invalid_argument(
                f"max_enqueued_batches must be positive; was {self.max_enqueued_batches}"
            )
        if not 0 < self.execution_size <= self.max_batch_size:
            raise invalid_argument(
                "When enable_large_batch_splitting is true, input_batch_size_limit must be greater "
                "than or equal to max_execution_batch_size."
            )

    def padded(self, rows: int) -> int:
        """How many rows a batch of ``rows`` is run with."""
        return next((size for size in self.allowed_batch_sizes if size >= rows), rows)
