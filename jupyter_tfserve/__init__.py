"""Serve TensorFlow models from a notebook under TF Serving's REST API."""
