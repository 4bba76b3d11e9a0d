"""Large answers against small ones: written in pieces, they say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jupyter_tfserve.codec.deep import DeepTensor
from jupyter_tfserve.codec.document_tensors import Format
from jupyter_tfserve.codec.json_encode import encode_predict
from jupyter_tfserve.codec.json_pieces import encode_large
from jupyter_tfserve.codec.json_value import Object, Value
from jupyter_tfserve.codec.rapidjson import parse
from jupyter_tfserve.errors import ServingError

Outputs = dict[str, np.ndarray[Any, Any]]

dtypes = st.sampled_from(["f4", "f8", "i4", "u1", "u8", "?", "f2"])


@st.composite
def outputs(draw: st.DrawFn) -> Outputs:
    names = draw(st.sampled_from([["y"], ["y"], ["y", "z_bytes"], ["a", "y", "z"]]))
    first = draw(st.integers(0, 7))
    tensors = {}
    for name in names:
        inner = draw(st.lists(st.integers(0, 3), max_size=3))
        shape = (first, *inner) if draw(st.integers(0, 9)) else tuple(inner)
        if name == "z_bytes":
            array = np.empty(shape, np.object_)
            array[...] = draw(st.binary(max_size=3))
        else:
            array = draw(hnp.arrays(draw(dtypes), shape))
        tensors[name] = array
    return tensors


def plain(value: Value) -> Any:
    """Something that compares by what was written."""
    if isinstance(value, Object):
        return [(name, plain(member)) for name, member in value.members]
    return [plain(item) for item in value] if isinstance(value, list) else repr(value)


def encoded(encode: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return plain(parse(bytes(encode(*args, **kwargs))))
    except ServingError as error:
        return error.code, error.message


@given(outputs(), st.sampled_from(Format), st.integers(1, 20))
def test_pieces_say_what_the_whole_says(tensors: Outputs, form: Format, piece: int) -> None:
    whole = encoded(encode_predict, tensors, {}, form)
    assert encoded(encode_large, tensors, {}, form, large=0, piece=piece) == whole


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(
    "shape", [(100_000,), (100_000, 1), (1, 100_000), (200, 500), (2, 3, 20_000), (30, 30, 30, 3)]
)
def test_large_answers_are_the_same_to_the_byte(shape: tuple[int, ...], form: Format) -> None:
    random = np.random.default_rng(1)
    array = random.standard_normal(shape, np.float32) * np.float32(10) ** random.integers(-9, 9)
    array.flat[[7, 70_000]] = np.nan, -np.inf
    for tensors in ({"y": array}, {"y": array, "z": array.astype("f8"), "i": array > 0}):
        assert encode_large(tensors, {}, form) == encode_predict(tensors, {}, form)


def test_deep_tensors_are_written_too() -> None:
    deep = DeepTensor(np.arange(6, dtype=np.float32), (3, 2, *[1] * 70))
    for tensors in ({"y": deep}, {"y": deep, "z": np.arange(3)}):
        for form in Format:
            whole = encoded(encode_predict, tensors, {}, form)
            assert encoded(encode_large, tensors, {}, form, large=0, piece=1) == whole
