"""Models that parse ``tf.Example``: what classify and regress are for."""

from pathlib import Path

import tensorflow as tf
from saving import classify, placeholder, predict, regress, saved_graph, tf1


def examples(base: Path) -> None:
    """Classify and regress signatures, those that hold to the rules and those that do not.

    Of an example with ``age``, ``n``, ``name``, ``vec`` and ``tags``: the classes are ``name`` and
    ``n`` as text, the scores ``age`` and ``n``, the regression ``age + 2 n + 3 len(tags) +
    sum(vec)``.
    """
    with saved_graph(base / "1") as signatures:
        serialized = placeholder("tf_example", tf.string, [None])
        parsed = tf1.parse_example(
            serialized,
            {
                "age": tf1.FixedLenFeature([1], tf.float32, [0.0]),
                "n": tf1.FixedLenFeature([1], tf.int64, [0]),
                "name": tf1.FixedLenFeature([1], tf.string, ["?"]),
                "vec": tf1.FixedLenFeature([3], tf.float32, [0.0] * 3),
                "tags": tf1.VarLenFeature(tf.string),
            },
        )
        age, number = parsed["age"], tf.cast(parsed["n"], tf.float32)
        tags = tf.reduce_sum(
            tf.cast(tf.not_equal(tf.sparse.to_dense(parsed["tags"]), ""), tf.float32),
            axis=1,
            keepdims=True,
        )
        classes = tf.concat([parsed["name"], tf.strings.as_string(parsed["n"])], axis=1)
        scores = tf.concat([age, number], axis=1)
        vec = tf.reduce_sum(parsed["vec"], axis=1, keepdims=True)
        value = age + 2.0 * number + 3.0 * tags + vec

        given = {"inputs": serialized}
        both = {"classes": classes, "scores": scores}
        signatures |= {
            "serving_default": classify(given, both),
            "classes_only": classify(given, {"classes": classes}),
            "scores_only": classify(given, {"scores": scores}),
            "scores_1d": classify(given, {"scores": tf.reshape(scores, [-1])}),
            "classes_float": classify(given, {"classes": scores, "scores": scores}),
            "fewer_scores": classify(given, {"classes": classes, "scores": scores[:, :1]}),
            "fewer_rows": classify(given, {"classes": classes, "scores": scores[:-1]}),
            "neither": classify(given, {"other": scores}),
            "three_outputs": classify(given, {**both, "more": value}),
            "wrong_input": classify({"examples": serialized}, both),
            "regress": regress(given, {"outputs": value}),
            "regress_1d": regress(given, {"outputs": tf.reshape(value, [-1])}),
            "regress_wide": regress(given, {"outputs": scores}),
            "regress_int": regress(given, {"outputs": parsed["n"]}),
            "regress_nokey": regress(given, {"value": value}),
            "predict": predict(given, {"reg": value}),
        }
