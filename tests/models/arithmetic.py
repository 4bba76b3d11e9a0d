"""The models of TensorFlow Serving's documentation and tests, made anew, and their like."""

from pathlib import Path

import tensorflow as tf
from saving import classify, placeholder, predict, regress, saved_graph, tf1


def _half_plus(version_dir: Path, constant: float) -> None:
    """``y = x / 2 + constant``, callable in every way of the API."""
    with saved_graph(version_dir) as signatures:
        half = tf1.Variable(0.5, name="a")
        offset = tf1.Variable(constant, name="b")
        x = placeholder("x", tf.float32, [None, 1])
        y = tf.add(half * x, offset, name="y")
        signatures["serving_default"] = predict({"x": x}, {"y": y})

        examples = placeholder("tf_example", tf.string, None)
        feature = tf1.FixedLenFeature([1], tf.float32)
        parsed = tf1.parse_example(tf.reshape(examples, [-1]), {"x": feature})["x"]
        from_example = tf.add(half * parsed, offset, name="y_of_example")
        inputs = {"inputs": examples}
        signatures["regress_x_to_y"] = regress(inputs, {"outputs": from_example})
        signatures["classify_x_to_y"] = classify(inputs, {"scores": from_example})


def half_plus_two(base: Path) -> None:
    """``y = x / 2 + 2`` with signatures for predict, classify and regress."""
    _half_plus(base / "00000123", 2.0)


def half_plus_two_2v(base: Path) -> None:
    """Two versions that add 2 and 3."""
    _half_plus(base / "123", 2.0)
    _half_plus(base / "124", 3.0)


def half_plus_three(base: Path) -> None:
    """``y = x / 2 + 3`` declared for scalars, as the original is, but fed lists.

    ``[1.0, 2.0, 5.0]`` gives ``[3.5, 4.0, 5.5]``.
    """
    with saved_graph(base / "00000123") as signatures:
        half = tf1.Variable(0.5, name="a")
        three = tf1.Variable(3.0, name="b")
        x = placeholder("x", tf.float32, [])
        signatures["serving_default"] = predict({"x": x}, {"y": tf.add(half * x, three, name="y")})

        examples = placeholder("tf_example", tf.string, [None])
        feature = tf1.FixedLenFeature([1], tf.float32)
        parsed = tf1.parse_example(examples, {"x": feature})["x"]
        outputs = {"outputs": tf.add(half * parsed, three, name="outputs")}
        signatures["tensorflow/serving/regress"] = regress({"inputs": examples}, outputs)


def versions(base: Path) -> None:
    """Versions 1, 2 and 10, each of which multiplies by its number."""
    for version in (1, 2, 10):
        with saved_graph(base / str(version)) as signatures:
            x = placeholder("x", tf.float32, [None])
            signatures["serving_default"] = predict({"x": x}, {"y": x * float(version)})


def counter(base: Path) -> None:
    """A graph with a memory, kept in a reference variable as TensorFlow 1 did."""
    with saved_graph(base / "123") as signatures:
        count = tf1.Variable(0.0, name="counter", use_resource=False)
        delta = placeholder("delta", tf.float32, [])
        for key, inputs, step in (
            ("get_counter", {}, count),
            ("reset_counter", {}, tf1.assign(count, 0.0)),
            ("incr_counter", {}, tf1.assign_add(count, 1.0)),
            ("incr_counter_by", {"delta": delta}, tf1.assign_add(count, delta)),
        ):
            signatures[key] = predict(inputs, {"output": step})


def name_with_blank(base: Path) -> None:
    """``y = 10 x``; served under a name that has to be escaped in a URL."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        signatures["serving_default"] = predict({"x": x}, {"y": x * 10.0})


def mlp(base: Path) -> None:
    """A Keras classifier as Keras exports it: 16 features to the probabilities of 4 classes."""
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((16,), name="x"),
            tf.keras.layers.Dense(8, activation="relu"),
            tf.keras.layers.Dense(4, activation="softmax", name="p"),
        ]
    )
    model.export(str(base / "1"), verbose=False)


def numbered(base: Path) -> None:
    """Answers ``v00001`` for every row: a text that can be replaced within ``saved_model.pb``.

    A MiB that nothing needs makes it visible in a process's memory.
    """
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        y = tf.fill(tf.shape(x), "v00001", name="y")
        tf.constant(b"x" * (1 << 20), name="weight")
        signatures["serving_default"] = predict({"x": x}, {"y": y})
