"""One column to an input: the rule for each dtype of pandas."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import pandas as hpd

from jupyter_tfserve.notebook.columns import column_array
from jupyter_tfserve.notebook.errors import InvalidArgumentError
from jupyter_tfserve.servable import TensorInfo

nan, inf = np.nan, np.inf


def values(column: Any, dtype: str, **options: Any) -> list[Any]:
    series = column if isinstance(column, pd.Series) else pd.Series(column)
    return column_array(series.rename("c"), "x", TensorInfo(dtype, (-1,)), **options).tolist()


def refusal(column: Any, dtype: str, **options: Any) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as refused:
        values(column, dtype, **options)
    assert "column 'c'" in str(refused.value)
    return refused.value


WHEN = pd.to_datetime(["2026-01-31 12:00", "2026-02-01 00:00"])
FLOATS = ("float", "double")
NUMBERS = (*FLOATS, "int64", "int32", "uint8")
FLAGS = (*NUMBERS, "bool")


class Rule(NamedTuple):
    """A column, the dtypes of inputs that take it, and what they get; all others refuse it."""

    column: Any
    taken_by: tuple[str, ...] = ()
    values: list[Any] | None = None


def of_objects(*items: Any) -> pd.Series:
    return pd.Series(items, dtype=object)


RULES = {
    "float64": Rule([0.5, 1.0], FLOATS, [0.5, 1.0]),
    "whole float64": Rule([0.0, 1.0], FLAGS, [0, 1]),
    "float32": Rule(pd.Series([0.1], dtype="float32"), FLOATS, [np.float32(0.1)]),
    "int64": Rule([2, 3], NUMBERS, [2, 3]),
    "uint64": Rule(pd.Series([2**63], dtype="uint64"), FLOATS, [2.0**63]),
    "large int64": Rule([2**53 + 1], ("int64",), [2**53 + 1]),
    "bool": Rule([True, False], FLAGS, [1, 0]),
    "Int64": Rule(pd.array([2**53 + 1], "Int64"), ("int64",), [2**53 + 1]),
    "UInt8": Rule(pd.array([255], "UInt8"), NUMBERS, [255]),
    "Float64": Rule(pd.array([0.5], "Float64"), FLOATS, [0.5]),
    "Float32": Rule(pd.array([0.5], "Float32"), FLOATS, [0.5]),
    "boolean": Rule(pd.array([True], "boolean"), FLAGS, [1]),
    "category of int": Rule(pd.Categorical([30, 20, 30]), NUMBERS, [30, 20, 30]),
    "category of str": Rule(pd.Categorical(["b", "a"]), ("string",), [b"b", b"a"]),
    "str": Rule(["é", "b"], ("string",), ["é".encode(), b"b"]),
    "string": Rule(pd.array(["é"], "string"), ("string",), ["é".encode()]),
    "bytes": Rule([b"\xff\x00"], ("string",), [b"\xff\x00"]),
    "datetime64": Rule(WHEN, ("string",), [b"2026-01-31T12:00:00", b"2026-02-01T00:00:00"]),
    "with a zone": Rule(WHEN[:1].tz_localize("UTC"), ("string",), [b"2026-01-31T12:00:00+00:00"]),
    "timedelta64": Rule(pd.to_timedelta(["1 day 2 s"]), ("string",), [b"P1DT0H0M2S"]),
    "period": Rule(pd.period_range("2026-01", periods=1, freq="M"), ("string",), [b"2026-01"]),
    "interval": Rule(pd.interval_range(0, 2)),
    "complex": Rule([1j]),
    "object of int": Rule(of_objects(7, 2), NUMBERS, [7, 2]),
    "object of both": Rule(of_objects(2**53 + 1, 1.0, True), ("int64",), [2**53 + 1, 1, 1]),
    "object of str and bytes": Rule(of_objects("a", b"b"), ("string",), [b"a", b"b"]),
    "object of str and int": Rule(of_objects("a", 1)),
    "object of Decimal": Rule(of_objects(Decimal("0.1"))),
    "Sparse": Rule(pd.arrays.SparseArray([0, 5]), NUMBERS, [0, 5]),
}


@pytest.mark.parametrize("dtype", [*FLAGS, "string"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_every_dtype_has_its_rule(rule: Rule, dtype: str) -> None:
    if dtype in rule.taken_by:
        assert values(rule.column, dtype) == rule.values
    else:
        refusal(rule.column, dtype)


def test_nan_and_infinity_are_floats_to_a_float_input() -> None:
    """O27: they pass, where both of pandas' own JSON writers change one of them."""
    np.testing.assert_array_equal(values([1.0, nan, inf], "float"), [1.0, nan, inf])
    assert "is no integer" in str(refusal([1.0, inf], "int64"))


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ([1.0, nan], "int64"),
        ([1.0, nan], "bool"),
        (["a", None], "string"),
        (["a", nan], "string"),
        (pd.array([1, None], "Int64"), "float"),
        (pd.array([1.5, None], "Float64"), "float"),
        (pd.array([True, None], "boolean"), "bool"),
        (pd.Series([1.5, None], dtype=object), "float"),
        (pd.Categorical(["a", None]), "string"),
        (pd.Categorical([1, None]), "int64"),
        (pd.to_datetime(["2026-01-01", None]), "string"),
    ],
)
def test_what_is_missing_has_to_be_decided(column: Any, dtype: str) -> None:
    """O27: the column and the first row with its label; what can be done."""
    series = pd.Series(column)
    series.index = ["first", "second"]
    error = refusal(series, dtype)
    assert error.where == "column 'c', row 1 (index 'second')"
    assert 'missing="drop"' in error.hint


def test_a_value_takes_the_place_of_what_is_missing() -> None:
    """O27 and O30: exact integers stay exact where a gap is filled."""
    assert values([1.0, nan], "int64", missing=-1) == [1, -1]
    assert values([1.0, nan, inf], "float", missing=0) == [1.0, 0.0, inf]
    assert values(["a", None], "string", missing="?") == [b"a", b"?"]
    big = pd.array([2**53 + 1, None], "Int64")
    assert values(big, "int64", missing=0) == [2**53 + 1, 0]
    assert values(pd.Categorical(["a", None]), "string", missing="other") == [b"a", b"other"]
    assert values(pd.array([True, None], "boolean"), "bool", missing=False) == [True, False]
    error = refusal([1.0, nan], "int64", missing=0.5)
    assert "0.5 is not a whole number" in str(error)


def test_an_id_that_became_a_float_is_refused() -> None:
    """O30: pandas keeps 9007199254740993 beside a gap as 9007199254740992.0."""
    column = pd.Series([9007199254740993, None])
    assert "2**53" in str(refusal(column, "int64", missing=0))
    assert values(column.astype(float).where(column < 0, 2.0), "int64") == [2, 2]


def test_rows_are_named_by_position_and_by_label() -> None:
    series = pd.Series([1, 2, 300], index=[10, 20, 30])
    assert refusal(series, "uint8").where == "column 'c', row 2 (index 30)"
    assert refusal([1, 2, 300], "uint8").where == "column 'c', row 2"
    assert refusal([1, 300], "uint8", first_row=100).where == "column 'c', row 101 (index 1)"


def test_what_would_do_is_said() -> None:
    assert ".dt.total_seconds()" in refusal(pd.to_timedelta([1]), "float").hint
    assert '.astype("int64")' in refusal(WHEN, "int64").hint
    assert "astype(str)" in refusal([1], "string").hint
    assert "encode_array" in refusal(pd.Series([np.zeros(2)]), "string").hint


def test_cells_that_are_lists_or_arrays_make_dimensions() -> None:
    assert values([[1, 2], (3, 4)], "float") == [[1, 2], [3, 4]]
    assert values([np.eye(2), [[1, 2], [3, 4]]], "int64")[1] == [[1, 2], [3, 4]]
    assert values([["a", "b"], [b"\xff", "d"]], "string") == [[b"a", b"b"], [b"\xff", b"d"]]
    assert "shape [1]" in str(refusal([[1, 2], [3]], "float"))
    assert refusal([[1, 2], [3, 0.5]], "int64").where == "column 'c', row 1[1]"


def test_arrow_columns_are_their_numpy_form() -> None:
    pytest.importorskip("pyarrow")
    assert values(pd.array([2**53 + 1], "int64[pyarrow]"), "int64") == [2**53 + 1]
    assert values(pd.array(["a"], "string[pyarrow]"), "string") == [b"a"]
    refusal(pd.array([1, None], "int64[pyarrow]"), "int64")


@given(
    series=hpd.series(elements=st.integers(-(2**63), 2**63 - 1), dtype=np.int64)
    | hpd.series(elements=st.floats(width=32), dtype=np.float32)
    | hpd.series(elements=st.booleans(), dtype=bool)
)
def test_a_column_of_the_inputs_dtype_arrives_as_it_is(series: pd.Series) -> None:
    dtype = {"int64": "int64", "float32": "float", "bool": "bool"}[series.dtype.name]
    array = column_array(series, "x", TensorInfo(dtype, (-1,)))
    assert array.dtype == series.dtype
    np.testing.assert_array_equal(array, series.to_numpy())


@given(items=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), fill=st.integers(0, 9))
def test_nullable_integers_keep_every_digit_around_their_gaps(
    items: list[int | None], fill: int
) -> None:
    column = pd.Series(pd.array(items, "Int64"))
    expected = [fill if item is None else item for item in items]
    assert values(column, "int64", missing=fill) == expected


@given(items=st.lists(st.text() | st.binary(), max_size=8))
def test_text_and_bytes_keep_every_byte(items: list[str | bytes]) -> None:
    encodable = [i for i in items if isinstance(i, bytes) or i.isprintable()]
    expected = [i if isinstance(i, bytes) else i.encode() for i in encodable]
    assert values(pd.Series(encodable, dtype=object), "string") == expected
