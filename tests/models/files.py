"""Models that are one file: Keras' own formats and TFLite."""

import tempfile
from pathlib import Path

import arithmetic
import keras
import numpy as np
import tensorflow as tf


def keras_functional(base: Path) -> None:
    """``score = age + index of text``, where a is 1 and b is 2; named by its layers."""
    age = keras.Input((1,), name="age", dtype="int32")
    text = keras.Input((1,), name="text", dtype="string")
    index = keras.layers.StringLookup(vocabulary=["a", "b"])(text)
    both = keras.layers.Concatenate()(
        [keras.ops.cast(age, "float32"), keras.ops.cast(index, "float32")]
    )
    score = keras.layers.Dense(1, name="score", kernel_initializer="ones")(both)
    (base / "1").mkdir(parents=True)
    keras.Model([age, text], score).save(base / "1" / "model.keras")


@keras.saving.register_keras_serializable("tests")
class _Own(keras.layers.Layer):
    def call(self, x):
        return x


def keras_files(base: Path) -> None:
    """Files to be served by their own paths, and some that cannot be."""
    base.mkdir()
    double = keras.Sequential(
        [
            keras.Input((2,), name="x"),
            keras.layers.Dense(2, name="y", kernel_initializer=keras.initializers.Identity(2.0)),
        ]
    )
    double.save(base / "double.keras")
    double.save(base / "double.h5")
    keras.Sequential([keras.Input((2,)), _Own()]).save(base / "own_layer.keras")
    keras.Sequential([keras.layers.Dense(2)]).save(base / "no_inputs.keras")


def _convert(converter: tf.lite.TFLiteConverter, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(converter.convert())


class _Functions(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def double(self, x):
        return {"y": x * 2.0, "total": tf.reduce_sum(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def negate(self, k):
        return {"negative": -k}

    @tf.function(input_signature=[tf.TensorSpec([None, 2, 2], tf.float32)])
    def determinant(self, x):
        return {"y": tf.linalg.det(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def first(self, s):
        return {"first": tf.gather(s, [0])}


def _converter(*names: str) -> tf.lite.TFLiteConverter:
    module = _Functions()
    functions = [getattr(module, name).get_concrete_function() for name in names]
    return tf.lite.TFLiteConverter.from_concrete_functions(functions, module)


def tflite(base: Path) -> None:
    """``y = 2 x`` and the sum of ``x``; another version gives back the first of its strings."""
    _convert(_converter("double"), base / "1" / "model.tflite")
    _convert(_converter("first"), base / "2" / "model.tflite")


def tflite_signatures(base: Path) -> None:
    """Two signatures, ``double`` and ``negate``."""
    module = _Functions()
    signatures = {"double": module.double, "negate": module.negate}
    with tempfile.TemporaryDirectory() as saved:
        tf.saved_model.save(module, saved, signatures=signatures)
        keys = [*signatures]
        converter = tf.lite.TFLiteConverter.from_saved_model(saved, signature_keys=keys)
        _convert(converter, base / "1" / "model.tflite")


def tflite_uint8(base: Path) -> None:
    """A quantised model that takes uint8 and gives int8."""
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential([tf.keras.Input((8,), name="x"), tf.keras.layers.Dense(3)])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    rng = np.random.default_rng(7)
    converter.representative_dataset = lambda: ([rng.random((1, 8), np.float32)] for _ in range(20))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.uint8
    converter.inference_output_type = tf.int8
    _convert(converter, base / "1" / "model.tflite")


def tflite_flex(base: Path) -> None:
    """A model with an op of TensorFlow that TFLite lacks."""
    converter = _converter("determinant")
    converter.target_spec.supported_ops = [
        tf.lite.OpsSet.TFLITE_BUILTINS,
        tf.lite.OpsSet.SELECT_TF_OPS,
    ]
    _convert(converter, base / "1" / "model.tflite")


def tflite_beside(base: Path) -> None:
    """A SavedModel (``y = x / 2 + 2``) with a TFLite file beside it that doubles."""
    arithmetic.half_plus_two(base)
    _convert(_converter("double"), base / "00000123" / "model.tflite")
