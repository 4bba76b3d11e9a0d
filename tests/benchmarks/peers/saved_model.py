"""A SavedModel called as its users call it: by its signature, from and to lists."""

import base64

import numpy as np
import tensorflow as tf


class SavedModel:
    """The default signature of a SavedModel with one input and one output."""

    def __init__(self, folder):
        self._model = tf.saved_model.load(folder)
        self._signature = self._model.signatures["serving_default"]
        ((self._name, self._spec),) = self._signature.structured_input_signature[1].items()

    def __call__(self, instances):
        """The predictions for a list of instances, as lists."""
        if self._spec.dtype == tf.string:
            values = tf.constant([base64.b64decode(instance["b64"]) for instance in instances])
        else:
            values = tf.constant(np.array(instances, self._spec.dtype.as_numpy_dtype))
        (output,) = self._signature(**{self._name: values}).values()
        return output.numpy().tolist()
