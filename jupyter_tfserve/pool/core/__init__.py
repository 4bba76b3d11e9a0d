"""The lifecycle of servables: from what is aspired to what can be requested.

Knows no TensorFlow and no transport; what is loaded is opaque to it.
"""
