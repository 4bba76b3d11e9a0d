"""Calls of models with everything but pandas: forms, answers, errors, signatures that change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from model_double import ModelDouble, Scripted, signature

from jupyter_tfserve.errors import invalid_argument
from jupyter_tfserve.notebook.answer import read_predict
from jupyter_tfserve.notebook.errors import (
    InvalidArgumentError,
    NotFoundError,
    TFServeError,
)

if TYPE_CHECKING:
    from jupyter_tfserve.notebook.client import Client
    from jupyter_tfserve.servable import SignatureInfo

VECTOR = ("float", (-1,))
LINE = signature({"x": VECTOR}, {"y": VECTOR})
PAIR = signature({"a": ("float", (-1, 2)), "b": ("float", (-1, 1))}, {"y": ("float", (-1, 1))})


def serve(
    double: ModelDouble, info: SignatureInfo, function: Any = lambda **tensors: {"y": 0.0}
) -> None:
    double.serve("m", info, function)


def total(a: Any, b: Any) -> dict[str, Any]:
    return {"y": a.sum(axis=1, keepdims=True) + b}


@pytest.fixture
def line(double: ModelDouble) -> ModelDouble:
    serve(double, LINE, lambda x: {"y": x * 2})
    return double


@pytest.fixture
def pair(double: ModelDouble) -> ModelDouble:
    serve(double, PAIR, total)
    return double


def refused(client: Client, data: Any, **options: Any) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as error:
        client.predict("m", data, **options)
    return error.value


@pytest.mark.parametrize("data", [[1, 2.5], (1, 2.5), np.array([1, 2.5]), np.float32([1, 2.5])])
def test_numbers_in_any_form_give_an_array(line: ModelDouble, client: Client, data: Any) -> None:
    answer = client.predict("m", data)
    assert answer.dtype == np.float32
    assert answer.tolist() == [2.0, 5.0]


def test_values_that_json_writers_refuse_are_taken(line: ModelDouble, client: Client) -> None:
    """O28: NumPy scalars, 0-d arrays, and anything with NumPy's protocol, float32 exactly."""

    class Tensor:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([np.float32(0.1)])

    assert client.predict("m", Tensor()).tolist() == [float(np.float32(0.2))]
    assert client.predict("m", {"x": np.float32(0.1)}).tolist() == [float(np.float32(0.2))]
    assert client.predict("m", {"x": np.array(3)}).tolist() == [6.0]
    assert client.predict("m", [np.int64(3), np.bool_(True)]).tolist() == [6.0, 2.0]


def test_rows_columns_and_a_single_row_are_the_same_call(pair: ModelDouble, client: Client) -> None:
    assert client.predict("m", {"a": [[1, 2], [3, 4]], "b": [[3], [4]]}).tolist() == [[6.0], [11.0]]
    rows = [{"a": [1, 2], "b": [3]}, {"a": [3, 4], "b": np.array([4])}]
    assert client.predict("m", rows).tolist() == [[6.0], [11.0]]
    assert client.predict("m", {"a": [1, 2], "b": [3]}).tolist() == [[6.0]]


def test_the_form_is_chosen_by_the_signature(double: ModelDouble, client: Client) -> None:
    """O06: outputs of other leading sizes, and scalars, are asked for in columns."""
    serve(double, LINE, lambda x: {"y": x})
    client.predict("m", [1.0])
    serve(
        double,
        signature({"x": VECTOR}, {"boxes": ("float", (-1, 4)), "anchors": ("float", (100, 4))}),
        lambda x: {"boxes": np.zeros((len(x), 4)), "anchors": np.ones((100, 4))},
    )
    client.metadata("m")
    answer = client.predict("m", [1.0, 2.0])
    assert {name: array.shape for name, array in answer.items()} == {
        "boxes": (2, 4),
        "anchors": (100, 4),
    }
    serve(double, signature({"x": VECTOR}, {"s": ("float", ())}), lambda x: {"s": x.sum()})
    client.metadata("m")
    assert client.predict("m", [1.0, 2.0]) == 3.0
    keys = [next(iter(request.json)) for request in double.posts()]
    assert keys == ["instances", "inputs", "inputs"]


def test_a_signature_by_name_and_the_only_one(double: ModelDouble, client: Client) -> None:
    info = signature({"x": VECTOR}, {"y": VECTOR}, key="other")
    serve(double, info, lambda x: {"y": -x})
    assert client.predict("m", [1.0]).tolist() == [-1.0]
    serve(double, LINE, lambda x: {"y": x})
    client.metadata("m")
    assert client.predict("m", [1.0]).tolist() == [1.0]
    assert client.predict("m", [1.0], signature="other").tolist() == [-1.0]
    error = refused(client, [1.0], signature="othr")
    assert "did you mean 'other'" in str(error)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"A": [[1, 2]], "b": [[3]]}, ["'A'", "did you mean 'a'"]),
        ([{"A": [1, 2], "b": [3]}], ["Row 0", "did you mean 'a'"]),
        ([{"a": [1, 2], "b": [3]}, {"a": [1, 2]}], ["Row 1 has no 'b'"]),
        ([[[1, 2], [3]]], ["2 inputs", "dict"]),
        ({"a": [[1, 2]]}, ["has no 'b'"]),
    ],
)
def test_wrong_keys_are_refused_with_what_is_expected(
    pair: ModelDouble, client: Client, data: Any, words: list[str]
) -> None:
    """O05, 1, 3 and 4: the expected names, dtypes and shapes; the name that was meant."""
    error = refused(client, data)
    for word in [*words, "a: float [?, 2]", "b: float [?, 1]"]:
        assert word in str(error)
    assert pair.posts() == []


def test_keys_that_are_no_inputs_are_left_out(pair: ModelDouble, client: Client) -> None:
    """O05, 2 and 5."""
    assert client.predict("m", {"a": [[1, 2]], "b": [[3]], "id": [7]}).tolist() == [[6.0]]
    assert client.predict("m", [{"a": [1, 2], "b": [3], "id": 7}]).tolist() == [[6.0]]
    assert all("id" not in request.json["inputs"] for request in pair.posts())


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([[1.0, 2.0], [3.0]], "input x[1]"),
        ([1.0, [2.0]], "input x[1]"),
        ([[1.0], 2.0], "input x[1]"),
        ([[[1], [2]], [[3], [4, 5]]], "input x[1][1]"),
        ([1.0, "two"], "input x[1]"),
        ([1.0, None], "input x[1]"),
    ],
)
def test_the_first_place_that_differs_is_named(
    line: ModelDouble, client: Client, data: Any, place: str
) -> None:
    """O07: a ragged list for a dense input, too."""
    assert refused(client, data).where == place


def test_a_refusal_of_the_server_has_its_text_and_the_shape_that_differs(
    pair: ModelDouble, client: Client
) -> None:
    def fail(a: Any, b: Any) -> Any:
        raise invalid_argument("Matrix size-incompatible: In[0]: [1,3]")

    serve(pair, PAIR, fail)
    error = refused(client, {"a": [[1, 2, 3]], "b": [[1]]})
    assert error.text == "Matrix size-incompatible: In[0]: [1,3]"
    assert error.status == 400
    assert error.where == "shape [1, 3] for a: float [?, 2]"
    assert error.signature == PAIR
    assert "a: float [?, 2]" in str(error)
    error = refused(client, {"a": [[1, 2], [3, 4]], "b": [[1]]})
    assert error.where == "different numbers of rows: a 2, b 1"


def test_a_refusal_that_repeats_the_payload_is_cut(line: ModelDouble, client: Client) -> None:
    """O02: an error shows a few hundred characters of it at most."""
    body = json.dumps({"error": "Unable to " + "A" * 100_000}).encode()
    line.script += [Scripted(400, body), Scripted(400, body)]
    error = refused(client, [1.0])
    assert len(str(error)) < 1000
    assert len(error.text) > 100_000


def test_what_is_not_finite_comes_back(double: ModelDouble, client: Client) -> None:
    """O09: TensorFlow Serving's tokens, in small answers and in large ones."""

    def invert(x: Any) -> dict[str, Any]:
        with np.errstate(divide="ignore"):
            return {"y": 1 / x}

    serve(double, LINE, invert)
    assert client.predict("m", [1.0, 0.0, -0.0]).tolist() == [1.0, np.inf, -np.inf]
    assert np.isnan(client.predict("m", np.full(5000, np.nan))).all()
    large = client.predict("m", np.tile(np.float32([1, 0, -0.0, 4]), 5000))
    assert large.tolist() == [1.0, np.inf, -np.inf, 0.25] * 5000


def test_numbers_of_an_answer_keep_their_bits(double: ModelDouble, client: Client) -> None:
    """O10: float32 through decimal and back."""
    serve(double, LINE, lambda x: {"y": x})
    values = np.float32([6e-7, 1e21, 1e-40, 16777216.0, -0.0])
    assert client.predict("m", values).tobytes() == values.tobytes()


def test_tokens_of_another_writer_are_read() -> None:
    """O10: digits as TensorFlow Serving itself prints them."""
    body = b'{\n    "predictions": [1e+06, 0.333333343, 3.40282347e+38, NaN, -Infinity\n    ]\n}'
    answer = read_predict(body, LINE)["y"]
    np.testing.assert_array_equal(answer, np.float32([1e6, 1 / 3, 3.40282347e38, np.nan, -np.inf]))


def test_large_integers_are_exact(double: ModelDouble, client: Client) -> None:
    serve(
        double,
        signature({"x": ("int64", (-1,))}, {"y": ("int64", (-1,))}),
        lambda x: {"y": x},
    )
    values = np.array([2**63 - 1, -(2**63), 2**53 + 1] * 400)
    assert client.predict("m", values).tolist() == values.tolist()


def test_strings_are_text_and_bytes_where_the_name_says_so(
    double: ModelDouble, client: Client
) -> None:
    info = signature(
        {"x": ("string", (-1,))}, {"t": ("string", (-1,)), "y_bytes": ("string", (-1,))}
    )
    serve(double, info, lambda x: {"t": x, "y_bytes": x})
    answer = client.predict("m", ["é", "b"])
    assert answer["t"].tolist() == ["é", "b"]
    assert answer["y_bytes"].tolist() == ["é".encode(), b"b"]
    serve(double, info, lambda x: {"t": np.array([b""], object), "y_bytes": x})
    client.metadata("m")
    assert client.predict("m", [b"\xff\x00"])["y_bytes"].tolist() == [b"\xff\x00"]


def test_no_rows_give_no_rows(double: ModelDouble, client: Client) -> None:
    serve(double, PAIR, total)
    empty = {"a": np.zeros((0, 2)), "b": np.zeros((0, 1))}
    assert client.predict("m", empty).shape == (0, 1)
    assert double.posts() == []


def test_a_signature_without_inputs_is_left_to_the_server(
    double: ModelDouble, client: Client
) -> None:
    serve(double, signature({}, {"y": VECTOR}))
    double.script.append(Scripted(400, b'{"error": "Failed to get input map"}'))
    assert "Failed to get input map" in str(refused(client, {}, signature="serving_default"))


def test_metadata_is_asked_for_once_and_again_when_it_no_longer_fits(
    line: ModelDouble, client: Client
) -> None:
    for _ in range(3):
        client.predict("m", [1.0])
    assert line.asked("/metadata") == 1
    serve(line, signature({"z": ("float", (-1, 2))}, {"y": VECTOR}), lambda z: {"y": z.sum(1)})
    assert client.predict("m", {"z": [[1.0, 2.0]]}).tolist() == [3.0]
    assert line.asked("/metadata") == 2
    serve(line, LINE, lambda x: {"y": x})
    with pytest.raises(NotFoundError):
        client.predict("gone", [1.0])
    with pytest.raises(InvalidArgumentError):
        client.predict("m", {"q": [1.0]})


def test_metadata_with_what_json_has_no_name_for_still_answers(
    double: ModelDouble, client: Client
) -> None:
    """O07 and O14: DT_INVALID and generated names are shown as they are."""
    info = signature({"args_0": ("invalid", None)}, {"output_0": ("float", (-1, 2))})
    serve(double, info)
    shown = repr(client.metadata("m"))
    assert "args_0: invalid of any shape" in shown
    assert "output_0: float [?, 2]" in shown


def test_names_with_slashes_are_encoded(double: ModelDouble, client: Client) -> None:
    """O11, the client's side of it."""
    double.serve("team/res net:é", LINE, lambda x: {"y": x})
    assert client.predict("team/res net:é", [1.0]).tolist() == [1.0]
    assert double.posts()[0].path == "/v1/models/team%2Fres%20net%3A%C3%A9:predict"


def test_half_is_asked_for_by_the_servers_option(double: ModelDouble, client: Client) -> None:
    """O08: the option goes with the call; TensorFlow Serving ignores it."""
    serve(double, signature({"x": ("half", (-1,))}, {"y": ("half", (-1,))}))
    double.script.append(Scripted(200, b'{"predictions": [0.5, 65504.0]}'))
    answer = client.predict("m", [0.5, 65504])
    assert answer.dtype == np.float16
    assert answer.tolist() == [0.5, 65504.0]
    (request,) = double.posts()
    assert request.headers["X-TFServe-Options"] == "half"
    assert request.json == {"instances": [0.5, 65504.0]}


def test_scores(double: ModelDouble, client: Client) -> None:
    classify = signature({"inputs": ("string", (-1,))}, {}, "c", "classify")
    regress = signature({"inputs": ("string", (-1,))}, {}, "r", "regress")
    serve(double, signature({"x": VECTOR}, {"y": VECTOR}))
    double.serve(
        "m",
        classify,
        lambda examples: {
            "classes": np.array([[b"cat", b"dog"]] * len(examples), object),
            "scores": np.float32([[0.25, 0.75]] * len(examples)),
        },
    )
    double.serve("m", regress, lambda examples: {"outputs": np.float32([len(examples)] * 2)})
    examples = [{"age": 1.0, "tags": ["a", b"\xff"]}, {"age": np.float32(2), "tags": []}]
    labels, scores = client.classify("m", examples, context={"n": 3})
    assert labels.tolist() == [["cat", "dog"]] * 2
    assert scores.tolist() == [[0.25, 0.75]] * 2
    assert client.regress("m", {"age": [1.0, 2.0]}).tolist() == [2.0, 2.0]
    sent = [request.json for request in double.posts()]
    assert sent[0]["signature_name"] == "c"
    assert sent[0]["context"] == {"n": 3}
    assert sent[0]["examples"][0] == {"age": 1.0, "tags": [{"b64": "YQ=="}, {"b64": "/w=="}]}
    assert sent[1] == {"signature_name": "r", "examples": [{"age": 1.0}, {"age": 2.0}]}
    with pytest.raises(InvalidArgumentError, match="example 0, feature 'x'"):
        client.classify("m", [{"x": None}])


def test_a_feature_keeps_its_kind(double: ModelDouble, client: Client) -> None:
    """O04: 20.0 is a float and 20 an integer to tf.Example, and NaN is a float."""
    info = signature({"inputs": ("string", (-1,))}, {}, method="regress")
    serve(double, info, lambda examples: {"outputs": np.float32([0])})
    client.regress("m", [{"a": 20.0, "b": 20, "c": True, "d": [1.5, float("nan")]}])
    assert double.posts()[0].body == b'{"examples":[{"a":20.0,"b":20,"c":1,"d":[1.5,NaN]}]}'


def test_frame_options_are_for_frames(line: ModelDouble, client: Client) -> None:
    with pytest.raises(TypeError, match="missing"):
        client.predict("m", [1.0], missing=0)
    with pytest.raises(TypeError, match="not for both"):
        client.predict("m", [1.0], version=1, label="stable")


def test_an_answer_that_is_none_is_told(line: ModelDouble, client: Client) -> None:
    line.script += [Scripted(200, b"<html>"), Scripted(200, b'{"predictions": ["a"]}')]
    with pytest.raises(TFServeError, match="<html>"):
        client.predict("m", [1.0])
    with pytest.raises(TFServeError, match="does not fit the signature"):
        client.predict("m", [1.0])
