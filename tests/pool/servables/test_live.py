"""Live models: what they are called by, what they answer, and whose weights answer."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from jupyter_tfserve.codec.deep import DeepTensor
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.servables.live import LiveServable
from jupyter_tfserve.pool.servables.signature import Signature

tf = pytest.importorskip("tensorflow")
keras = tf.keras


def array(values: Any, dtype: str = "float32") -> np.ndarray:
    return np.array(values, dtype)


def text(*values: bytes) -> np.ndarray:
    return np.array(values, object)


def tell(servable: LiveServable, key: str = "serving_default") -> tuple[dict, dict]:
    """Inputs and outputs of a signature as (dtype, shape)."""
    info = servable.signatures[key]
    inputs = {name: (tensor.dtype, tensor.shape) for name, tensor in info.inputs.items()}
    return inputs, {name: (tensor.dtype, tensor.shape) for name, tensor in info.outputs.items()}


def line(slope: float = 2.0) -> Any:
    """A Keras model of ``y = slope x``."""
    model = keras.Sequential([keras.Input((1,), name="x"), keras.layers.Dense(1, name="y")])
    model.set_weights([array([[slope]]), array([0.0])])
    return model


def answer(servable: LiveServable, **inputs: Any) -> Any:
    return servable.call("serving_default", inputs)


# Names and types ----------------------------------------------------------------------------------


def test_a_keras_model_keeps_the_names_and_types_of_its_layers() -> None:
    age = keras.Input((1,), dtype="int32", name="age")
    words = keras.Input((), dtype="string", name="text")
    lookup = keras.layers.TextVectorization(max_tokens=8, output_sequence_length=2)
    lookup.adapt(np.array(["a b c"]))
    counts = keras.layers.Lambda(lambda t: tf.cast(t, tf.float32))(lookup(words))
    years = keras.layers.Lambda(lambda t: tf.cast(t, tf.float32))(age)
    both = keras.layers.Concatenate()([years, counts])
    model = keras.Model([age, words], keras.layers.Dense(1, name="score")(both))
    servable = LiveServable(model)
    assert tell(servable) == (
        {"age": ("int32", (-1, 1)), "text": ("string", (-1,))},
        {"score": ("float", (-1, 1))},
    )
    inputs = {"age": array([[3], [4]], "int32"), "text": text(b"a b", b"c")}
    expected = model([tf.constant(value) for value in inputs.values()]).numpy()
    del model, lookup  # the vocabulary has to outlive them
    gc.collect()
    assert np.array_equal(answer(servable, **inputs)["score"], expected)


def test_outputs_of_one_layer_are_told_apart_and_dicts_keep_their_keys() -> None:
    x = keras.Input((3, 2), name="x")
    whole, state, cell = keras.layers.LSTM(4, return_state=True, name="lstm")(x)
    servable = LiveServable(keras.Model(x, [whole, state, cell]))
    assert list(tell(servable)[1]) == ["lstm", "lstm_1", "lstm_2"]
    named = LiveServable(keras.Model({"x": x}, {"state": state, "all": whole}))
    assert tell(named) == (
        {"x": ("float", (-1, 3, 2))},
        {"all": ("float", (-1, 4)), "state": ("float", (-1, 4))},
    )


def test_a_module_a_function_and_a_concrete_function_tell_their_own_arguments() -> None:
    class Scale(tf.Module):
        def __init__(self) -> None:
            self.factor = tf.Variable(3.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def __call__(self, x):
            return self.factor * x

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([])])
        def shifted(self, values, by):
            return {"sum": values + by, "product": values * by}

    module = Scale()
    own = LiveServable(module)
    assert tell(own) == ({"x": ("float", (-1,))}, {"output_0": ("float", (-1,))})
    assert answer(own, x=array([1, 2]))["output_0"].tolist() == [3.0, 6.0]
    both = LiveServable(module, {"serving_default": module.__call__, "shift": module.shifted})
    shifted = both.call("shift", {"values": array([1, 2]), "by": array(5.0)}, ["product"])
    assert {name: value.tolist() for name, value in shifted.items()} == {"product": [5.0, 10.0]}
    concrete = tf.function(lambda x, y: x - y).get_concrete_function(
        tf.TensorSpec([None], tf.int64), y=tf.TensorSpec([], tf.int64)
    )
    difference = answer(LiveServable(concrete), x=array([5, 6], "int64"), y=array(1, "int64"))
    assert difference["output_0"].tolist() == [4, 5]


def test_a_loaded_saved_model_is_published_by_its_signatures(tmp_path: Any) -> None:
    line().export(str(tmp_path), verbose=False)
    servable = LiveServable(tf.saved_model.load(str(tmp_path)))
    ((name, _),) = tell(servable)[0].items()
    assert [value.tolist() for value in answer(servable, **{name: array([[3]])}).values()] == [
        [[6.0]]
    ]


def test_a_model_without_fixed_inputs_is_called_as_declared() -> None:
    class Free(keras.Model):
        def call(self, x):
            return x + 1.0

    with pytest.raises(ServingError, match="has no fixed inputs"):
        LiveServable(Free())
    servable = LiveServable(Free(), Signature({"x": ("float32", [-1])}, {"y": ("float32", [-1])}))
    assert answer(servable, x=array([1.0]))["y"].tolist() == [2.0]


def test_metadata_is_laid_out_as_tensorflow_serving_does() -> None:
    servable = LiveServable(line())
    definition = json.loads(servable.metadata)["signature_def"]["serving_default"]
    assert definition["method_name"] == "tensorflow/serving/predict"
    assert definition["inputs"]["x"] == {
        "name": "",
        "dtype": "DT_FLOAT",
        "tensor_shape": {
            "dim": [{"size": "-1", "name": ""}, {"size": "1", "name": ""}],
            "unknown_rank": False,
        },
    }
    assert 'key: "y"' in servable.debug_text("serving_default")


# Weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freeze", "after"),
    [(None, 6.0), (True, 6.0), (False, 15.0)],
    ids=["default", "freeze", "follow"],
)
def test_training_on_changes_only_what_follows(freeze: bool | None, after: float) -> None:
    model = line(2.0)
    servable = LiveServable(model, freeze=freeze)
    assert answer(servable, x=array([[3]]))["y"].tolist() == [[6.0]]
    model.set_weights([array([[5.0]]), array([0.0])])
    assert answer(servable, x=array([[3]]))["y"].tolist() == [[after]]


def test_what_is_not_trained_but_changed_by_training_is_frozen_too() -> None:
    model = keras.Sequential(
        [keras.Input((2,), name="x"), keras.layers.BatchNormalization(name="y")]
    )
    frozen, live = LiveServable(model, freeze=True), LiveServable(model, freeze=False)
    rows = array([[1, 2], [3, 4]])
    before = model(rows).numpy()
    model.compile("sgd", "mse")
    model.fit(rows * 100, rows, epochs=3, verbose=0)
    assert np.array_equal(answer(frozen, x=rows)["y"], before)
    assert np.array_equal(answer(live, x=rows)["y"], model(rows, training=False).numpy())
    assert not np.array_equal(answer(live, x=rows)["y"], before)


def test_signatures_of_a_frozen_model_share_one_copy_of_its_state() -> None:
    class Counter(tf.Module):
        def __init__(self) -> None:
            self.count = tf.Variable(0, dtype=tf.int64)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="by")])
        def add(self, by):
            return self.count.assign_add(by)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="plus")])
        def get(self, plus):
            return self.count + plus

    counter = Counter()
    servable = LiveServable(counter, {"add": counter.add, "get": counter.get}, freeze=True)
    servable.call("add", {"by": array(2, "int64")})
    assert servable.call("get", {"plus": array(0, "int64")})["output_0"] == 2
    assert counter.count.numpy() == 0


@pytest.mark.parametrize("freeze", [True, False])
def test_a_model_may_be_deleted_once_it_is_published(freeze: bool) -> None:
    model = line()
    gone = weakref.ref(model)
    servable = LiveServable(model, freeze=freeze)
    del model
    gc.collect()
    assert answer(servable, x=array([[3]]))["y"].tolist() == [[6.0]]
    servable.close()
    gc.collect()
    assert not freeze or gone() is None


def test_the_footprint_is_that_of_the_variables() -> None:
    assert LiveServable(line()).footprint.host_bytes == 8


# Calls --------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_in_the_runtimes_words() -> None:
    with pytest.raises(ServingError) as refused:
        answer(LiveServable(line()), x=array([[1, 2, 3]]))
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message.startswith("Matrix size-incompatible: In[0]: [1,3], In[1]: [1,1]")
    assert refused.value.message.endswith("}}]]")


def test_several_threads_may_call_at_a_time() -> None:
    servable = LiveServable(line())
    together = threading.Barrier(4)

    def call(number: int) -> list[float]:
        together.wait(10)
        return [answer(servable, x=array([[number + i]]))["y"].item() for i in range(50)]

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(call, range(0, 400, 100)))
    assert answers == [[2.0 * (number + i) for i in range(50)] for number in range(0, 400, 100)]


@pytest.mark.parametrize("freeze", [True, False])
def test_loops_and_free_lengths_answer_as_the_model_itself(freeze: bool) -> None:
    ids = keras.Input((None,), dtype="int32", name="ids")
    steps = keras.layers.Embedding(50, 4, mask_zero=True)(ids)
    steps = keras.layers.Bidirectional(keras.layers.GRU(3, return_sequences=True))(steps)
    last = keras.layers.LSTM(3)(keras.layers.MultiHeadAttention(2, 2)(steps, steps))
    model = keras.Model(ids, keras.layers.Dense(2, name="p")(keras.layers.Dropout(0.5)(last)))
    servable = LiveServable(model, freeze=freeze)
    for length in (3, 7):
        given = np.random.default_rng(length).integers(0, 50, (2, length)).astype("int32")
        expected = model(given, training=False).numpy()
        np.testing.assert_allclose(answer(servable, ids=given)["p"], expected, atol=1e-6)


def test_scalars_strings_and_tensors_too_deep_for_numpy_go_through() -> None:
    anything = tf.TensorSpec(None, tf.float32, name="x")
    double = LiveServable(tf.function(lambda x: x * 2.0, input_signature=[anything]))
    assert answer(double, x=array(1.5))["output_0"].shape == ()
    deep = answer(double, x=DeepTensor(array([1.5]), (1,) * 70))["output_0"]
    assert isinstance(deep, DeepTensor)
    assert (deep.shape, deep.values.tolist()) == ((1,) * 70, [3.0])
    shout = tf.function(tf.strings.upper, input_signature=[tf.TensorSpec([], tf.string, name="x")])
    said = answer(LiveServable(shout), x=np.array(b"a", object))["output_0"]
    assert (said.dtype, said.item()) == (np.dtype(object), b"A")


# Plain Python -------------------------------------------------------------------------------------

XY = Signature({"x": ("float32", [-1, 2])}, {"y": (np.float32, [None])})


def test_a_plain_function_is_called_with_arrays_in_the_order_of_its_inputs() -> None:
    signature = Signature(
        {"values": ("float32", [-1]), "name": ("string", [])},
        {"sum": ("float64", []), "greeting": ("string", [1])},
    )
    returns: list[Callable[..., Any]] = [
        lambda values, name: (values.sum(), ["hi " + name.item().decode()]),
        lambda values, name: {"greeting": [b"hi " + name.item()], "sum": values.sum()},
    ]
    for function in returns:
        servable = LiveServable(function, signature)
        outputs = answer(servable, name=np.array(b"Ann", object), values=array([1, 2]))
        assert outputs["sum"].dtype == np.float64
        assert outputs["sum"] == 3.0
        assert outputs["greeting"].tolist() == [b"hi Ann"]


def test_a_plain_function_is_held_to_its_declaration() -> None:
    calls = []
    servable = LiveServable(lambda x: calls.append(x) or x, XY)
    with pytest.raises(ServingError, match=r"Input x has shape \[3\], expected \[\?,2\]") as bad:
        answer(servable, x=array([1, 2, 3]))
    assert bad.value.code is Code.INVALID_ARGUMENT
    assert calls == []
    with pytest.raises(ServingError, match=r"output y of shape \[1,2\], declared as \[\?\]"):
        answer(servable, x=array([[1, 2]]))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda _: {"z": 1}, "no output y"),
        (lambda x: x[:, 0].astype(complex), "of dtype complex128, declared as float"),
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_what_a_plain_function_does_wrong_is_told(function: Any, words: str) -> None:
    with pytest.raises(ServingError, match=words) as told:
        answer(LiveServable(function, XY), x=array([[1, 2]]))
    assert told.value.http_status == 500


@pytest.mark.parametrize(
    ("model", "signatures", "freeze", "words"),
    [
        (len, None, None, "needs a signature"),
        (len, Signature({"x": ("float32", [-1])}), None, "outputs .* have to be declared"),
        (len, Signature({}, {"y": ("float32", [])}), None, "at least one input"),
        (len, Signature({"x": "float32"}), None, "x: expected a dtype and a shape"),
        (len, Signature({"x": ("nothing", [1])}), None, "x: expected a dtype and a shape"),
        (len, {"a": 3}, None, "Signature a: Expected a Signature or a tf.function, got a int"),
        (len, XY, True, "cannot be frozen"),
        (3, None, None, "Cannot publish a int"),
        (3, XY, None, "A int cannot be called"),
        (len, {}, None, "no signatures"),
    ],
)
def test_what_cannot_be_published_is_told_why(
    model: Any, signatures: Any, freeze: bool | None, words: str
) -> None:
    with pytest.raises(ServingError, match=words) as told:
        LiveServable(model, signatures, freeze=freeze)
    assert told.value.code is Code.INVALID_ARGUMENT


def test_functions_that_do_not_tell_their_inputs_are_refused() -> None:
    with pytest.raises(ServingError, match="no input_signature"):
        LiveServable(tf.function(lambda x: x))
    with pytest.raises(ServingError, match="needs signatures"):
        LiveServable(tf.Module())
