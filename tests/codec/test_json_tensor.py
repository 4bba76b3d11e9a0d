"""Predict bodies to tensors: the two steps, and what the case files cannot say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from jupyter_tfserve.codec.dtypes import dtype_of
from jupyter_tfserve.codec.json_tensor import Format, parse_predict
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.servable import TensorInfo

FLOAT = {"x": TensorInfo("float", None)}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"[1]", "JSON Value: [1] Is not object"),
        (b'{"instances":[1]', "JSON Parse error: Missing a comma or '}' after an object member. "
         "at offset: 16"),
        (b'{"signature_name":5}', 'JSON Value: {\n    "signature_name": 5\n} not formatted '
         "correctly. 'signature_name' key must be a string value."),
    ],
)  # fmt: skip
def test_the_first_step_refuses_what_is_no_request(body: bytes, text: str) -> None:
    with pytest.raises(ServingError) as caught:
        parse_predict(body)
    assert (caught.value.code, caught.value.message) == (Code.INVALID_ARGUMENT, text)


def test_the_second_step_refuses_wrong_keys() -> None:
    parsed = parse_predict(b'{"signature_name":"s"}')
    assert parsed.signature_name == "s"
    with pytest.raises(ServingError) as caught:
        parsed.tensors(FLOAT)
    assert caught.value.message == "Missing 'inputs' or 'instances' key"


def test_a_signature_name_that_is_no_utf8_keeps_its_bytes() -> None:
    parsed = parse_predict(b'{"signature_name":"\xff","inputs":1}')
    assert parsed.signature_name == "\udcff"


@pytest.mark.parametrize("padding", [b"", b" " * 1000])
@pytest.mark.parametrize(
    ("dtype", "value"), [("float", b"1"), ("int8", b"1"), ("bool", b"true"), ("string", b'"1"')]
)
def test_arrays_have_the_dtype_of_the_signature(dtype: str, value: bytes, padding: bytes) -> None:
    body = b'{"instances":[%b,%b]}%b' % (value, value, padding)
    tensors, form = parse_predict(body).tensors({"x": TensorInfo(dtype, (5,))})
    assert form is Format.ROW
    assert (tensors["x"].dtype, tensors["x"].shape) == (dtype_of(dtype).numpy, (2,))


def test_no_warning_is_given_where_floats_overflow() -> None:
    for body in (b'{"inputs":[1e300,-1e39]}', b'{"inputs":[%b1e300]}' % (b"1," * 500)):
        with np.errstate(all="raise"):
            tensors, _ = parse_predict(body).tensors(FLOAT)
        assert tensors["x"][-1] in (np.inf, -np.inf)


@pytest.mark.parametrize("depth", [255, 100_000])
def test_more_dimensions_than_a_tensor_has_are_refused(depth: int) -> None:
    body = b'{"inputs":%b1%b}' % (b"[" * depth, b"]" * depth)
    with pytest.raises(ServingError) as caught:
        parse_predict(body).tensors(FLOAT)
    assert caught.value.message == "tensor parsing error: x"


def test_ragged_values_are_found_at_any_depth() -> None:
    body = b'{"inputs":%b1,[2]%b}' % (b"[" * 100_000, b"]" * 100_000)
    with pytest.raises(ServingError, match=r"^INVALID_ARGUMENT: Encountered list at unexpected"):
        parse_predict(body).tensors(FLOAT)


def test_ignored_members_may_be_as_deep_as_they_like() -> None:
    body = b'{"x":%b%b,"inputs":[1]}' % (b"[" * 100_000, b"]" * 100_000)
    assert parse_predict(body).tensors(FLOAT)[0]["x"].tolist() == [1.0]


def test_a_large_body_with_one_wrong_element_names_it() -> None:
    body = b'{"instances":[%b"a"]}' % (b"1.5," * 10_000)
    with pytest.raises(ServingError) as caught:
        parse_predict(body).tensors(FLOAT)
    assert caught.value.message == (
        "Failed to process element: 10000 of 'instances' list. Error: INVALID_ARGUMENT: "
        'JSON Value: "a" Type: String is not of expected type: float'
    )


def test_bodies_are_converted_in_many_threads_at_once() -> None:
    def convert(number: int) -> bool:
        parsed = parse_predict(b'{"instances":[%b]}' % b",".join([b"%d.5" % number] * 2000))
        tensors, _ = parsed.tensors(FLOAT)
        return bool(tensors["x"].tolist() == [number + 0.5] * 2000)

    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(convert, range(200)))
