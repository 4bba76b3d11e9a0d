"""Calls with tensors of more dimensions than a NumPy array can have.

Such tensors pass the session's border as serialized protos: the part of the graph that a signature
needs is imported once more, with a parser before it and a serializer after it. What holds state is
not copied: both parts share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from ...codec.deep import MAX_NUMPY_RANK, DeepTensor, Tensor
from .session_call import SessionCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DeepCall:
    """As :class:`SessionCall`, for tensors of any rank; it grows the graph, so it is made once."""

    def __init__(
        self,
        session: tf.compat.v1.Session,
        feeds: Sequence[str],
        fetches: Sequence[str],
        *,
        caller_thread: bool = True,
    ) -> None:
        """Prepare the call; ``caller_thread`` as for :class:`SessionCall`.

        Raises:
            ServingError: with TensorFlow's reason.
        """
        with session.graph.as_default():
            entries = [tf.compat.v1.placeholder(tf.string, []) for _ in feeds]
            parsed = {
                name: tf.io.parse_tensor(entry, session.graph.get_tensor_by_name(name).dtype)
                for name, entry in zip(feeds, entries, strict=True)
            }
            exits = [tf.io.serialize_tensor(tensor) for tensor in _twin(parsed, fetches)]
        self._call = SessionCall(
            session,
            [t.name for t in entries],
            [t.name for t in exits],
            caller_thread=caller_thread,
        )

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Run with one tensor for each feed, in their order.

        Raises:
            ServingError: with the runtime's code and text.
        """
        serialized = [_proto(tensor).SerializeToString() for tensor in tensors]
        outputs = self._call(*[np.array(proto, object) for proto in serialized])
        return [_tensor(output.item()) for output in outputs]


def _twin(feeds: Mapping[str, tf.Tensor], fetches: Sequence[str]) -> list[tf.Tensor]:
    """The graph's part that computes ``fetches`` once more, from ``feeds`` and the same state."""
    graph = tf.compat.v1.get_default_graph()
    nodes = [name.partition(":")[0] for name in fetches]
    part = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), nodes)
    names = {node.name for node in part.node}
    shared = {
        tensor.name: tensor
        for name in names
        for tensor in _state(graph.get_operation_by_name(name))
    }
    used = {name: tensor for name, tensor in feeds.items() if name.partition(":")[0] in names}
    twin: list[tf.Tensor] = tf.import_graph_def(
        part, {**shared, **used}, list(fetches), name="deep"
    )
    return twin


def _state(operation: tf.Operation) -> list[tf.Tensor]:
    """What an operation that holds state, such as a variable or a table, hands out."""
    definition = operation.op_def
    holds = definition is not None and definition.is_stateful and not operation.inputs
    return list(operation.outputs) if holds else []


def _proto(tensor: Tensor) -> tensor_pb2.TensorProto:
    values = tensor.values if isinstance(tensor, DeepTensor) else tensor
    proto: tensor_pb2.TensorProto = tf.make_tensor_proto(values)
    del proto.tensor_shape.dim[:]
    for size in tensor.shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


def _tensor(serialized: bytes) -> Tensor:
    proto = tensor_pb2.TensorProto.FromString(serialized)
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    if len(shape) <= MAX_NUMPY_RANK:
        array: Tensor = tf.make_ndarray(proto)
        return array
    del proto.tensor_shape.dim[:]
    proto.tensor_shape.dim.add(size=int(np.prod(shape)))
    return DeepTensor(tf.make_ndarray(proto), shape)
