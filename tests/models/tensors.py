"""Models that say little of arithmetic and much of tensors: dtypes, shapes, names."""

from pathlib import Path

import tensorflow as tf
from saving import placeholder, predict, saved_graph, tf1

DTYPES = (
    tf.float32,
    tf.float64,
    tf.float16,
    tf.bfloat16,
    tf.int8,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.uint8,
    tf.uint16,
    tf.uint32,
    tf.uint64,
    tf.bool,
    tf.string,
    tf.complex64,
    tf.complex128,
)


def dtypes(base: Path) -> None:
    """The identity, in a signature for each dtype that is called like it."""
    with saved_graph(base / "1") as signatures:
        for dtype in DTYPES:
            x = placeholder(f"x_{dtype.name}", dtype, [None])
            signatures[dtype.name] = predict({"x": x}, {"y": tf.identity(x)})
        signatures["serving_default"] = signatures["float32"]


class _SumAndDifference(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], name=name) for name in ("a", "b")])
    def both(self, a, b):
        return {"sum": a + b, "diff": a - b}

    @tf.function(input_signature=[tf.TensorSpec([None], name=name) for name in ("a", "b")])
    def one(self, a, b):
        return {"sum": a + b}


def multi_io(base: Path) -> None:
    """Two inputs and two outputs, as TensorFlow 2 exports a module."""
    module = _SumAndDifference()
    signatures = {"serving_default": module.both, "one_out": module.one}
    tf.saved_model.save(module, str(base / "1"), signatures=signatures)


def mixed(base: Path) -> None:
    """A string, a flag, a pair of floats and a number a row: doubled, negated, times 2, plus 1."""
    with saved_graph(base / "1") as signatures:
        name = placeholder("name", tf.string, [None])
        flag = placeholder("flag", tf.bool, [None])
        v = placeholder("v", tf.float32, [None, 2])
        k = placeholder("k", tf.int64, [None])
        signatures["serving_default"] = predict(
            {"name": name, "flag": flag, "v": v, "k": k},
            {
                "name_out": tf.strings.join([name, name]),
                "flag_out": tf.logical_not(flag),
                "v_out": v * 2.0,
                "k_out": k + 1,
            },
        )


def bytes_(base: Path) -> None:
    """Strings that are bytes by name, and strings that are text; an input that is called b64."""
    with saved_graph(base / "1") as signatures:
        image = placeholder("image_bytes", tf.string, [None])
        signatures["serving_default"] = predict(
            {"image_bytes": image}, {"y_bytes": tf.identity(image)}
        )
        s = placeholder("s", tf.string, [None])
        signatures["two"] = predict({"s": s}, {"raw_bytes": tf.identity(s), "text": tf.identity(s)})
        signatures["text"] = predict({"s": s}, {"y": tf.identity(s)})
        signatures["b64"] = predict({"b64": s}, {"y": tf.identity(s)})
        x = placeholder("x", tf.float32, [None])
        signatures["no_string"] = predict({"x": x}, {"x_bytes": x + 1.0})


def scalar_out(base: Path) -> None:
    """Outputs and inputs without a batch dimension."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        total = tf.reduce_sum(x)
        signatures["serving_default"] = predict({"x": x}, {"s": total})
        signatures["scalar_and_vec"] = predict({"x": x}, {"s": total, "x2": x * 2.0})
        one = placeholder("one", tf.float32, [])
        signatures["scalar_in"] = predict({"x": one}, {"y": one + 1.0})
        strings = placeholder("strings", tf.string, [None])
        joined = tf.strings.reduce_join(strings)
        signatures["scalar_str"] = predict({"x": strings}, {"s_bytes": joined})


def mixed_batch(base: Path) -> None:
    """Two outputs that disagree on the size of the batch."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        signatures["serving_default"] = predict(
            {"x": x}, {"a": tf.identity(x), "b": tf.concat([x, x], axis=0)}
        )


def empty_out(base: Path) -> None:
    """An output without values, and one without columns."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        signatures["serving_default"] = predict({"x": x}, {"y": x[:0]})
        signatures["no_columns"] = predict({"x": x}, {"y": tf.expand_dims(x, 1)[:, :0]})


def shapes(base: Path) -> None:
    """Inputs of several ranks, and a matrix product that some of them do not fit."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None, 2, 3])
        signatures["serving_default"] = predict({"x": x}, {"y": x * 2.0})
        rows = placeholder("rows", tf.float32, [None, None])
        signatures["product"] = predict(
            {"x": rows}, {"y": tf.matmul(rows, tf.constant([[1.0], [2.0], [3.0]]))}
        )


def fails(base: Path) -> None:
    """Operations that fail at run time on the wrong value."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        checked = tf.debugging.check_numerics(x, "not finite")
        signatures["serving_default"] = predict({"x": x}, {"y": checked})
        i = placeholder("i", tf.int32, [None])
        picked = tf.gather(tf.constant([10.0, 20.0, 30.0]), i)
        signatures["gather"] = predict({"i": i}, {"y": picked})


def no_default(base: Path) -> None:
    """A model without a default signature."""
    with saved_graph(base / "1") as signatures:
        x = placeholder("x", tf.float32, [None])
        signatures["other"] = predict({"x": x}, {"y": tf.identity(x)})


def no_inputs(base: Path) -> None:
    """A default signature that takes nothing, which REST cannot call."""
    with saved_graph(base / "1") as signatures:
        signatures["serving_default"] = predict({}, {"y": tf.constant([1.0, 2.0])})
        tf1.Variable(0.0)
