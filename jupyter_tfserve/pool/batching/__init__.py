"""Batching: rows of several callers run as one.

Greedy batching (:mod:`.greedy`) merges what happens to wait; TensorFlow Serving's (:mod:`.queue`)
collects runs by its parameters. Neither is on unless asked for, and both leave alone what cannot be
batched (:mod:`.version`).
"""
