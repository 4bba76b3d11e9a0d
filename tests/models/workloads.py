"""The models of the benchmarks, as people export them today."""

from pathlib import Path

import tensorflow as tf


class _HalfPlusThree(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, name="x")])
    def predict(self, x):
        return {"y": x / 2.0 + 3.0}


def half_plus_three_tf2(base: Path) -> None:
    """``y = x / 2 + 3`` for any shape, for servers that cannot load TensorFlow 1's graphs."""
    module = _HalfPlusThree()
    tf.saved_model.save(module, str(base / "1"), signatures={"serving_default": module.predict})


def digits_mlp(base: Path) -> None:
    """784 features through 128 units to the probabilities of 10 classes."""
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((784,), name="x"),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10, activation="softmax", name="p"),
        ]
    )
    model.export(str(base / "1"), verbose=False)


def digits_convnet(base: Path) -> None:
    """An image of 28x28x1 through two convolutions to the probabilities of 10 classes."""
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1), name="x"),
            tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
            tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10, activation="softmax", name="p"),
        ]
    )
    model.export(str(base / "1"), verbose=False)


class _ImageSize(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image_bytes")])
    def predict(self, image_bytes):
        return {"size": tf.strings.length(image_bytes)}


def image_size(base: Path) -> None:
    """How many bytes each image has: the cost of bringing it there, and none of decoding it."""
    module = _ImageSize()
    tf.saved_model.save(module, str(base / "1"), signatures={"serving_default": module.predict})


_COLUMNS = [tf.TensorSpec([None], tf.float32, name=f"c{number:02}") for number in range(20)]


class _ColumnSum(tf.Module):
    @tf.function(input_signature=_COLUMNS)
    def predict(self, *columns):
        return {"sum": tf.add_n(columns)}


def column_sum(base: Path) -> None:
    """The sum of twenty inputs, ``c00`` to ``c19``: one for each column of a table."""
    module = _ColumnSum()
    tf.saved_model.save(module, str(base / "1"), signatures={"serving_default": module.predict})
