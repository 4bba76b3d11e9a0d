"""Kinds of models, each behind one interface; the only place that imports TensorFlow."""
