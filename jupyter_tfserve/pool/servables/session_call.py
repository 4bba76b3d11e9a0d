"""The one place that calls a TensorFlow session: a prepared callable, run in the caller's thread.

``Session._make_callable_from_options`` is private, and necessary: ``Session.run`` and
``make_callable`` check a placeholder's static shape, which TensorFlow Serving does not, and take
tens of microseconds more for each call. The TensorFlow version is bounded for its sake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import config_pb2

from ...errors import Code, ServingError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALLER_THREAD = -1
SINGLE_THREADED_EXECUTOR = "SINGLE_THREADED_EXECUTOR"


_config = config_pb2.ConfigProto(allow_soft_placement=True)
_config.gpu_options.allow_growth = True


def set_session_config(config: config_pb2.ConfigProto) -> None:
    """Let sessions have these settings too, where they are set; before the first session."""
    _config.MergeFrom(config)


def limit_memory(limit_mb: int, fraction: float, gpus: int) -> None:
    """Limit what all sessions of this process together take of each GPU, before the first.

    Args:
        limit_mb: in MiB; 0 is no such limit.
        fraction: the share of a GPU's memory, where there is no limit in MiB; 0 is no limit.
        gpus: how many there are.
    """
    options = _config.gpu_options
    if limit_mb:
        devices = options.experimental.virtual_devices
        del devices[:]
        for _ in range(gpus):
            devices.add(memory_limit_mb=[limit_mb])
    elif fraction:
        options.per_process_gpu_memory_fraction = fraction


def session_config(executor: str = "") -> config_pb2.ConfigProto:
    """The configuration of every session: device memory grows on demand, up to the limit.

    Args:
        executor: TensorFlow's name of an executor; empty for its default.
    """
    config = config_pb2.ConfigProto()
    config.CopyFrom(_config)
    if executor:
        config.experimental.executor_type = executor
    return config


def serving_error(error: tf.errors.OpError) -> ServingError:
    """A runtime error as the caller is to see it: TensorFlow's code and text."""
    return ServingError(Code(error.error_code), error.message)


def dtype_name(number: int) -> str:
    """What error texts call a ``DataType``, such as ``float`` for ``DT_FLOAT``."""
    name: str = types_pb2.DataType.Name(number)
    return name.removeprefix("DT_").lower()


class SessionCall:
    """One set of tensors to feed and to fetch, as a function from arrays to arrays.

    Safe to call from several threads. It runs in the calling thread, unless told otherwise, with
    the interpreter lock released; so a call cannot be interrupted, and deadlines are kept by
    whoever waits for it.
    """

    def __init__(
        self,
        session: tf.compat.v1.Session,
        feeds: Sequence[str],
        fetches: Sequence[str],
        *,
        caller_thread: bool = True,
    ) -> None:
        """Prepare the call; without ``caller_thread`` TensorFlow's threads run it.

        Raises:
            ServingError: with TensorFlow's reason, where the executor refuses the graph.
        """
        distinct = list(dict.fromkeys(fetches))
        options = config_pb2.CallableOptions(feed=feeds, fetch=distinct)
        if caller_thread:
            options.run_options.inter_op_thread_pool = _CALLER_THREAD
        self._dtypes = [session.graph.get_tensor_by_name(feed).dtype for feed in feeds]
        # Aliases may share a tensor, which a callable fetches once.
        self._order = None if distinct == list(fetches) else [distinct.index(f) for f in fetches]
        try:
            self._callable: Any = session._make_callable_from_options(options)  # noqa: SLF001
        except tf.errors.OpError as error:
            raise serving_error(error) from error

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Run with one array for each feed, in their order.

        Raises:
            ServingError: with the runtime's code and text.
        """
        try:
            fetched = self._callable(*arrays)
        except tf.errors.OpError as error:
            raise self._wrong_dtype(arrays) or serving_error(error) from error
        # The runtime gives a scalar as itself, not as an array; a string even as plain bytes.
        outputs = [value if type(value) is np.ndarray else _scalar(value) for value in fetched]
        if self._order is None:
            return outputs
        return [outputs[index] for index in self._order]

    def _wrong_dtype(self, arrays: Sequence[np.ndarray]) -> ServingError | None:
        """The words of TensorFlow Serving's session run; each executor here has others."""
        for index, (dtype, array) in enumerate(zip(self._dtypes, arrays, strict=True)):
            given = tf.as_dtype(array.dtype)
            if given != dtype.base_dtype:
                expected, actual = map(dtype_name, (dtype.as_datatype_enum, given.as_datatype_enum))
                text = f"Expects arg[{index}] to be {expected} but {actual} is provided"
                return ServingError(Code.INVALID_ARGUMENT, text)
        return None


def _scalar(value: Any) -> np.ndarray:
    return np.array(value, object if isinstance(value, bytes) else None)
