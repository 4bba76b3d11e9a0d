"""Classify and regress bodies to tf.Examples, read back by TensorFlow's own protos."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.codec.example import parse_examples
from jupyter_tfserve.errors import Code, ServingError

example_pb2 = pytest.importorskip("tensorflow.core.example.example_pb2")


def features(body: bytes, index: int = 0) -> dict[str, tuple[str | None, list[Any]]]:
    """The features of one example: name to kind and values."""
    example = example_pb2.Example.FromString(parse_examples(body).examples[index])
    read = {}
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof("kind")
        read[name] = (kind, list(getattr(feature, kind).value) if kind else [])
    return read


def test_the_first_element_decides_the_kind() -> None:
    body = b'{"examples":[{"i":[1,true,-5],"f":[1.5,1e39,NaN],"s":["a",{"b64":"/w=="}],"e":[]}]}'
    got = features(body)
    assert got["i"] == ("int64_list", [1, 1, -5])
    assert got["f"][1][:2] == [1.5, math.inf]
    assert math.isnan(got["f"][1][2])
    assert got["s"] == ("bytes_list", [b"a", b"\xff"])
    assert got["e"] == (None, [])


def test_scalars_are_lists_of_one() -> None:
    got = features(b'{"examples":[{"a":1,"b":2.5,"c":"x","d":false,"e":{"b64":"AQ"}}]}')
    assert [got[name][1] for name in "abcde"] == [[1], [2.5], [b"x"], [0], [b"\1"]]


def test_integers_beyond_64_bits_are_floats() -> None:
    body = b'{"examples":[{"a":18446744073709551616,"b":9223372036854775807}]}'
    got = features(body)
    assert got["a"] == ("float_list", [2.0**64])
    assert got["b"] == ("int64_list", [2**63 - 1])


def test_the_last_of_repeated_features_wins() -> None:
    assert features(b'{"examples":[{"a":1,"a":"x"}]}')["a"] == ("bytes_list", [b"x"])


def test_an_empty_object_is_an_empty_example() -> None:
    assert parse_examples(b'{"examples":[{}]}').examples == [b""]


def test_the_context_is_merged_in_front_and_examples_win() -> None:
    body = b'{"examples":[{"a":1},{"b":[2.5]}],"context":{"a":7,"c":"q"}}'
    assert features(body)["a"] == ("int64_list", [1])
    assert features(body)["c"] == ("bytes_list", [b"q"])
    assert features(body, 1)["a"] == ("int64_list", [7])
    assert features(body, 1)["b"] == ("float_list", [2.5])


def test_the_signature_is_read() -> None:
    assert parse_examples(b'{"examples":[{}]}').signature_name == ""
    assert parse_examples(b'{"signature_name":"s","examples":[{}]}').signature_name == "s"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"[]", "JSON Value: [] Is not object"),
        (
            b"{}",
            "JSON Value: {} When method is classify, key 'examples' is expected and was not found",
        ),
        (
            b'{"examples":{}}',
            "JSON Value: {\n    \"examples\": {}\n} Expecting 'examples' value to be an list/array",
        ),
        (
            b'{"examples":[]}',
            "JSON Value: {\n    \"examples\": []\n} 'examples' value is an empty array",
        ),
        (b'{"examples":[1]}', "Example must be JSON object but got JSON Number"),
        (b'{"examples":[{},null]}', "Example must be JSON object but got JSON Null"),
        (b'{"context":[],"examples":5}', "Example must be JSON object but got JSON Array"),
        (b'{"examples":[{"a":null}]}', "Feature: a has element with unexpected JSON type: Null"),
        (b'{"examples":[{"a":[[1]]}]}', "Feature: a has element with unexpected JSON type: Array"),
        (
            b'{"examples":[{"a":{"b64":1}}]}',
            "Feature: a has element with unexpected JSON type: Object",
        ),
        (b'{"examples":[{"a":{"b64":"!"}}]}', "Unable to base64 decode"),
        (
            b'{"examples":[{"a":[1.5,2]}]}',
            "Unexpected element type in feature: a expecting type: float",
        ),
        (
            b'{"examples":[{"a":[1,2.5]}]}',
            "Unexpected element type in feature: a expecting type: int64",
        ),
        (
            b'{"examples":[{"a":["x",true]}]}',
            "Unexpected element type in feature: a expecting type: bytes",
        ),
        (
            b'{"examples":[{"a":9223372036854775808}]}',
            "Feature: a has uint64_t element. Only int64_t is supported.",
        ),
        (
            b'{"examples":[{"a":["x",9223372036854775808]}]}',
            "Unexpected element type in feature: a expecting type: bytes",
        ),
        (
            b'{"signature_name":1,"examples":[]}',
            'JSON Value: {\n    "signature_name": 1,\n    "examples": []\n} not formatted '
            "correctly. 'signature_name' key must be a string value.",
        ),
    ],
)
def test_refusals(body: bytes, text: str) -> None:
    with pytest.raises(ServingError) as caught:
        parse_examples(body)
    assert (caught.value.code, caught.value.message) == (Code.INVALID_ARGUMENT, text)


values = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=300)),
)


@given(st.dictionaries(st.text("abcé", max_size=200), values, max_size=5))
def test_the_wire_format_is_protobufs(members: dict[str, list[Any]]) -> None:
    body = json.dumps({"examples": [members]}).encode()
    got = features(body)
    assert got.keys() == members.keys()
    for name, expected in members.items():
        encoded = [item.encode() if isinstance(item, str) else item for item in expected]
        assert got[name][1] == encoded
        if expected and isinstance(expected[0], float):
            assert np.signbit(got[name][1]).tolist() == np.signbit(expected).tolist()
