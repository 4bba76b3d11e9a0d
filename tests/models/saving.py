"""How a graph becomes a SavedModel with named signatures."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

tf1 = tf.compat.v1

Signatures = dict[str, object]
Tensors = Mapping[str, tf.Tensor]


@contextmanager
def saved_graph(version_dir: Path) -> Iterator[Signatures]:
    """Build a graph in the body and fill in its signatures; it is saved on leaving.

    The way of TensorFlow 1, and the one that names tensors as one likes: ``x:0`` in metadata is
    the placeholder called ``x``.
    """
    signatures: Signatures = {}
    with tf.Graph().as_default(), tf1.Session() as session:
        yield signatures
        session.run(tf1.global_variables_initializer())
        builder = tf1.saved_model.Builder(str(version_dir))
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.SERVING],
            signature_def_map=signatures,
            strip_default_attrs=True,
        )
        builder.save()


def predict(inputs: Tensors, outputs: Tensors):
    """A signature that takes and gives named tensors."""
    return _signature(inputs, outputs, "tensorflow/serving/predict")


def classify(inputs: Tensors, outputs: Tensors):
    """A signature from examples to ``classes``, ``scores`` or both."""
    return _signature(inputs, outputs, "tensorflow/serving/classify")


def regress(inputs: Tensors, outputs: Tensors):
    """A signature from examples to ``outputs``, a value each."""
    return _signature(inputs, outputs, "tensorflow/serving/regress")


def _signature(inputs: Tensors, outputs: Tensors, method: str):
    return tf1.saved_model.signature_def_utils.build_signature_def(
        inputs={name: tf1.saved_model.build_tensor_info(t) for name, t in inputs.items()},
        outputs={name: tf1.saved_model.build_tensor_info(t) for name, t in outputs.items()},
        method_name=method,
    )


def placeholder(name: str, dtype: tf.DType, shape: list[int | None] | None) -> tf.Tensor:
    """An input of the graph: ``None`` is a free dimension, or as the shape an unknown rank."""
    return tf1.placeholder(dtype, shape, name=name)
