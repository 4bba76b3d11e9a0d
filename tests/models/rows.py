"""Models that differ in whether rows of several callers may be run together."""

from pathlib import Path

import tensorflow as tf
from saving import placeholder, predict, saved_graph, tf1


def rows(base: Path) -> None:
    """A signature for each thing that allows batching, or does not."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        length = placeholder("length", tf.float32, [None, None])
        fixed = placeholder("fixed", tf.float32, [2, None])
        query = placeholder("query", tf.float32, [1, None])
        words = placeholder("words", tf.string, [None])
        anything = placeholder("anything", tf.float32, None)
        table = tf1.lookup.StaticHashTable(
            tf1.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1
        )
        tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, table.initializer)
        # Always three rows, which no static shape tells.
        three = tf1.placeholder_with_default(tf.constant([1.0, 2.0, 3.0]), shape=None)
        count = tf1.Variable(0.0, use_resource=False)
        for key, inputs, output in (
            ("serving_default", {"x": x}, x * 2.0),
            ("length", {"x": length}, tf.reduce_sum(length, axis=1)),
            ("anything", {"x": anything}, anything * 2.0),
            ("lookup", {"x": words}, table.lookup(words)),
            ("fixed_input", {"x": fixed}, fixed[:, 0]),
            ("one_query", {"x": x, "q": query}, x * tf.reduce_sum(query)),
            ("fixed_output", {"x": x}, tf.reduce_sum(x) + tf.constant([1.0, 2.0, 3.0])),
            ("hidden_output", {"x": x}, tf.reduce_sum(x) * 0.0 + three),
            ("counts", {"x": x}, x + tf1.assign_add(count, 1.0)),
            ("noise", {"x": x}, x + tf.random.uniform(tf.shape(x))),
            ("same_noise", {"x": x}, x + tf.random.stateless_uniform(tf.shape(x), [1, 2])),
        ):
            signatures[key] = predict(inputs, {"y": output})


class _Functions(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(2.0)
        self.calls = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def times(self, x):
        # An operation that calls functions.
        y = tf.cond(tf.size(x) > 0, lambda: x * self.weight, lambda: x)
        return {"y": y}

    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def counts(self, x):
        self.calls.assign_add(1.0)
        return {"y": x + self.calls}


def functions(base: Path) -> None:
    """The same for what is done in functions, as TensorFlow 2 saves it."""
    module = _Functions()
    signatures = {"serving_default": module.times, "counts": module.counts}
    tf.saved_model.save(module, str(base / "1"), signatures=signatures)
