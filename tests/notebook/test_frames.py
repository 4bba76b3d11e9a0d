"""Which column goes where, and what is said where none does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_double import Shape, signature

from jupyter_tfserve.codec.example import parse_examples
from jupyter_tfserve.notebook.errors import InvalidArgumentError
from jupyter_tfserve.notebook.frame_examples import to_examples
from jupyter_tfserve.notebook.frames import to_inputs, to_instances

OUT = {"y": ("float", (-1,))}
MIXED = signature(
    {"name": ("string", (-1,)), "v": ("float", (-1, 2)), "k": ("int64", (-1,))},
    OUT,
)
EXAMPLES = signature({"examples": ("string", (-1,))}, OUT)


def one(shape: Shape, dtype: str = "float") -> Any:
    return signature({"x": (dtype, shape)}, OUT)


def refusal(frame: pd.DataFrame, info: Any, **options: Any) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as refused:
        to_inputs(frame, info, **options)
    return refused.value


ABC = pd.DataFrame({"a": [1, 2], "b": [3.0, 4.0], "c": [True, False]})


def test_one_input_of_rank_2_takes_all_columns_in_their_order() -> None:
    assert to_inputs(ABC, one((-1, 3)))["x"].tolist() == [[1, 3, 1], [2, 4, 0]]
    assert to_inputs(ABC, one((-1, -1)))["x"].shape == (2, 3)
    assert to_inputs(ABC, one((-1, 2)), columns=["c", "a"])["x"].tolist() == [[1, 1], [0, 2]]


def test_a_wrong_number_of_columns_is_told_with_their_names() -> None:
    error = refusal(ABC, one((-1, 2)))
    assert "takes 2 columns, and the frame has 3: 'a', 'b', 'c'" in str(error)
    assert "columns=[...]" in error.hint


def test_a_column_of_text_among_numbers_is_named_rather_than_left_out() -> None:
    error = refusal(ABC.assign(c=["x", "y"]), one((-1, 3)))
    assert error.where == "column 'c', row 0"


def test_one_input_of_another_rank_takes_the_column_of_its_name_or_the_only_one() -> None:
    assert to_inputs(ABC[["a"]], one((-1,)))["x"].tolist() == [1, 2]
    assert to_inputs(ABC.rename(columns={"b": "x"}), one((-1,)))["x"].tolist() == [3, 4]
    assert to_inputs(ABC[["a"]], one((-1, 1)))["x"].tolist() == [[1], [2]]
    assert to_inputs(ABC.rename(columns={"b": "x"}), one((-1, 1)))["x"].tolist() == [[3], [4]]
    assert to_inputs(ABC[["a"]], one(None))["x"].tolist() == [1, 2]
    assert to_inputs(ABC[["a"]], one(()))["x"].tolist() == [1, 2]
    assert "takes one column, and the frame has 3" in str(refusal(ABC, one((-1,))))


def test_cells_have_to_have_the_shape_that_the_input_has() -> None:
    frame = pd.DataFrame({"x": [np.zeros((2, 3)), np.ones((2, 3))], "id": [1, 2]})
    assert to_inputs(frame, one((-1, 2, 3)))["x"].shape == (2, 2, 3)
    assert to_inputs(frame, one((-1, -1, 3)))["x"].shape == (2, 2, 3)
    error = refusal(frame, one((-1, 3, 3)))
    assert "column 'x' holds arrays of shape [2, 3]" in str(error)
    assert "x: float [?, 3, 3]" in str(error)
    vectors = pd.DataFrame({"x": [[1, 2], [3, 4]], "id": [1, 2]})
    assert to_inputs(vectors, one((-1, 2)))["x"].tolist() == [[1, 2], [3, 4]]
    assert "one value a row" in str(refusal(ABC[["a"]], one((-1, 2, 2))))
    assert "as one of several columns" in str(refusal(vectors, one((-1, -1)), columns=["id", "x"]))


def test_several_inputs_take_the_columns_of_their_names() -> None:
    frame = pd.DataFrame({"k": [1, 2], "name": ["a", "b"], "v": [[1, 2], [3, 4]], "id": [8, 9]})
    tensors = to_inputs(frame, MIXED)
    assert {name: array.tolist() for name, array in tensors.items()} == {
        "name": [b"a", b"b"],
        "v": [[1, 2], [3, 4]],
        "k": [1, 2],
    }
    wide = frame.drop(columns="v").assign(p=[1, 3], q=[2, 4]).rename(columns={"name": "title"})
    chosen = to_inputs(wide, MIXED, columns={"v": ["p", "q"], "name": "title"})
    assert {name: array.tolist() for name, array in chosen.items()} == {
        name: array.tolist() for name, array in tensors.items()
    }


def test_a_column_that_is_not_there_is_named_with_the_one_that_was_meant() -> None:
    """O05 for frames."""
    frame = pd.DataFrame({"K": [1], "name": ["a"], "v": [[1, 2]]})
    error = refusal(frame, MIXED)
    assert "no column 'k': did you mean 'K'?" in str(error)
    assert "k: int64 [?]" in str(error)
    assert "no input 'nam': did you mean 'name'?" in str(
        refusal(frame, MIXED, columns={"nam": "name"})
    )
    assert "for input k" in str(refusal(frame, MIXED, columns={"k": "missing"}))
    assert "for a single input" in str(refusal(frame, MIXED, columns=["K"]))


def test_two_columns_of_one_name_are_refused() -> None:
    """O29: pandas itself would lose one of them."""
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    error = refusal(frame, one((-1, 3)))
    assert "Several columns are called 'a'" in str(error)


def test_columns_of_two_levels_are_inputs_and_their_columns() -> None:
    """O29: the rule for several levels."""
    columns = pd.MultiIndex.from_tuples([("v", "p"), ("k", ""), ("v", "q"), ("name", "")])
    frame = pd.DataFrame([[1, 5, 2, "a"], [3, 6, 4, "b"]], columns=columns)
    tensors = to_inputs(frame, MIXED)
    assert tensors["v"].tolist() == [[1, 2], [3, 4]]
    assert tensors["k"].tolist() == [5, 6]
    pixels = frame[["v"]]
    assert to_inputs(pixels, signature({"v": ("float", (-1, 2))}, OUT))["v"].shape == (2, 2)
    assert "no column 'x'" in str(refusal(pixels, one((-1, 2))))
    three = pd.concat({"t": frame}, axis=1)
    assert "3 levels" in str(refusal(three, MIXED))


def test_rows_ready_for_json() -> None:
    frame = pd.DataFrame({"k": [1, 2], "name": ["a", b"\xff"], "v": [[1, 2], [3, 4]]})
    assert to_instances(frame, MIXED) == [
        {"name": {"b64": "YQ=="}, "v": [1.0, 2.0], "k": 1},
        {"name": {"b64": "/w=="}, "v": [3.0, 4.0], "k": 2},
    ]
    assert to_instances(ABC, one((-1, 3))) == [[1.0, 3.0, 1.0], [2.0, 4.0, 0.0]]


def test_rows_that_lack_a_value_are_dropped_where_it_is_asked_for() -> None:
    frame = pd.DataFrame({"k": [1, None, 3], "name": ["a", "b", None], "v": [[1, 2]] * 3})
    assert to_inputs(frame, MIXED, missing="drop")["k"].tolist() == [1]
    both = to_inputs(frame, MIXED, missing={"k": 0, "name": "drop"})
    assert both["k"].tolist() == [1, 0]
    assert "column 'name', row 2" in str(refusal(frame, MIXED, missing={"k": 0}))


def test_raw_features_for_a_signature_of_examples_are_told_apart() -> None:
    """O04: the input's name, that it most probably takes tf.Example, and how to make them."""
    frame = pd.DataFrame({"age": [31.0], "city": ["Oslo"]})
    error = refusal(frame, EXAMPLES)
    assert "examples: string [?]" in str(error)
    assert "most probably takes serialised tf.Example" in error.hint
    assert "to_examples(serialized=True)" in error.hint
    unknown = signature({"inputs": ("string", None)}, OUT)
    assert "tf.Example" in refusal(frame, unknown).hint


def test_examples_are_made_of_rows() -> None:
    """O04: as dicts for classify and regress, or serialised for predict."""
    frame = pd.DataFrame(
        {
            "age": [31.0, np.nan],
            "n": [20, 21],
            "ok": [True, False],
            "city": ["Oslo", "Wien"],
            "kind": pd.Categorical(["a", "b"]),
            "tags": [["x"], []],
            "vec": [np.float32([0.5, 1]), [2, 3]],
        }
    )
    rows = to_examples(frame, EXAMPLES)
    assert rows[0] == {
        "age": 31.0,
        "n": 20,
        "ok": 1,
        "city": "Oslo",
        "kind": "a",
        "tags": ["x"],
        "vec": [0.5, 1.0],
    }
    serialized = to_examples(frame.iloc[:1], EXAMPLES, serialized=True)
    body = (
        b'{"examples":[{"age":31.0,"n":20,"ok":1,"city":"Oslo","kind":"a","tags":["x"],'
        b'"vec":[0.5,1.0]}]}'
    )
    assert serialized == parse_examples(body).examples
    with pytest.raises(InvalidArgumentError, match=r"takes no tf\.Example"):
        to_examples(frame, MIXED)
    with pytest.raises(InvalidArgumentError, match="column 'city', row 0"):
        to_examples(pd.DataFrame({"city": [None, "a"]}))
    assert to_examples(pd.DataFrame({"c": ["b", None]}), missing="drop") == [{"c": "b"}]
