"""Rows are joined, padded and cut as TensorFlow Serving does."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from jupyter_tfserve.pool.batching.tensors import cut, even_out, join


def part(*rows: object, dtype: type = np.float32) -> dict[str, np.ndarray]:
    return {"x": np.array(rows, dtype)}


def test_rows_are_joined_in_order_and_cut_again() -> None:
    parts = [part(1, 2), part(3), part(4, 5, 6)]
    joined = join(parts)
    assert joined["x"].tolist() == [1, 2, 3, 4, 5, 6]
    assert [each["x"].tolist() for each in cut(joined, [2, 1, 3])] == [[1, 2], [3], [4, 5, 6]]


def test_the_first_row_of_the_last_request_fills_a_batch_up() -> None:
    joined = join([part([1, 1], [2, 2]), part([3, 3], [4, 4])], 7)
    assert joined["x"].tolist() == [[1, 1], [2, 2], [3, 3], [4, 4], [3, 3], [3, 3], [3, 3]]
    assert join([part(5)], 3)["x"].tolist() == [5, 5, 5]
    strings = join([part(b"a", b"b", dtype=object)], 3)["x"]
    assert strings.tolist() == [b"a", b"b", b"a"]


def test_rows_beyond_the_callers_are_dropped() -> None:
    assert [each["x"].tolist() for each in cut(part(1, 2, 3, 3), [1, 2])] == [[1], [2, 3]]


def test_shorter_rows_are_filled_with_their_own_first_element() -> None:
    small = {"x": np.array([[[1, 2], [3, 4]]], np.float32)}
    large = {"x": np.full((1, 3, 3), 9, np.float32)}
    padded = even_out([small, large])
    assert_array_equal(padded[0]["x"], [[[1, 2, 1], [3, 4, 1], [1, 1, 1]]])
    assert padded[1]["x"] is large["x"]


def test_each_dimension_is_padded_to_its_largest() -> None:
    shapes = [(1, 2, 5), (2, 4, 1)]
    padded = even_out([{"x": np.ones(shape)} for shape in shapes])
    assert [each["x"].shape for each in padded] == [(1, 4, 5), (2, 4, 5)]


def test_strings_and_empty_rows_are_padded_too() -> None:
    words = [{"x": np.array([[b"a"]], object)}, {"x": np.array([[b"b", b"c"]], object)}]
    assert even_out(words)[0]["x"].tolist() == [[b"a", b"a"]]
    empty = [{"x": np.zeros((1, 0), object)}, words[1]]
    assert even_out(empty)[0]["x"].tolist() == [[b"", b""]]
    assert even_out([{"x": np.zeros((1, 0))}, {"x": np.ones((1, 1))}])[0]["x"].tolist() == [[0.0]]
