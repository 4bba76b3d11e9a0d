"""Cases in the form of recorded ones: our own, and a folder of recordings where one is given.

A file holds one JSON object a line. ``kind`` is ``predict`` (``inputs``: name to dtype, ``body`` to
``parsed`` tensors in protobuf text and ``format``), ``classify`` (``body`` to ``parsed``) or
``encode`` (``format`` and ``tensors`` to ``json_text``); each with ``code`` and ``error`` instead
where ``ok`` is false. ``body_b64`` stands for a body that is no UTF-8.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from jupyter_tfserve.codec.dtypes import dtype_of
from jupyter_tfserve.codec.example import parse_examples
from jupyter_tfserve.codec.json_encode import encode_predict
from jupyter_tfserve.codec.json_tensor import Format, parse_predict
from jupyter_tfserve.errors import ServingError, invalid_argument
from jupyter_tfserve.servable import TensorInfo

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
example_pb2 = pytest.importorskip("tensorflow.core.example.example_pb2")
tensor_pb2 = pytest.importorskip("tensorflow.core.framework.tensor_pb2")

OWN = Path(__file__).with_name("cases.jsonl")
RECORDED = os.environ.get("TFSERVE_CONFORMANCE_DIR")
FIELDS = {
    "float": "float_val",
    "double": "double_val",
    "string": "string_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
}


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def own_cases() -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in load(OWN)]


def recorded_cases() -> list[Any]:
    if not RECORDED:
        reason = pytest.mark.skip(reason="TFSERVE_CONFORMANCE_DIR is not set")
        return [pytest.param({}, marks=reason, id="none")]
    cases = load(Path(RECORDED) / "codec-cases.jsonl")
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", own_cases())
def test_own_case_agrees(case: dict[str, Any]) -> None:
    agree(case)


@pytest.mark.parametrize("case", recorded_cases())
def test_recorded_case_agrees(case: dict[str, Any]) -> None:
    agree(case)


def agree(case: dict[str, Any]) -> None:
    run = {"predict": agree_predict, "classify": agree_classify, "encode": agree_encode}
    run[case["kind"]](case)


def body_of(case: dict[str, Any]) -> bytes:
    if "body_b64" in case:
        return base64.b64decode(str(case["body_b64"]))
    return str(case["body"]).encode("utf-8", "surrogatepass")


def agree_predict(case: dict[str, Any]) -> None:
    inputs = {
        name: TensorInfo(enum.removeprefix("DT_").lower(), None)
        for name, enum in case["inputs"].items()
    }
    if len(inputs) > 1 and re.match(r'\{"instances":\[\{"b64"', case.get("body", "")):
        pytest.skip("the input that is fed depends on the order of a hash map")
    try:
        body = parse_predict(body_of(case))
        if not inputs:
            # This one check is the caller's, who knows the signature.
            name = body.signature_name or "DEFAULT"
            raise invalid_argument(f"Failed to get input map for signature: {name}")
        tensors, form = body.tensors(inputs)
    except ServingError as error:
        assert_error(case, error)
        return
    assert case["ok"], case
    assert form == case["format"]
    expected = parse_request(case["parsed"])
    assert tensors.keys() == expected.keys()
    for name, array in tensors.items():
        proto = expected[name]
        info = inputs[name]
        assert array.dtype == dtype_of(info.dtype).numpy
        assert list(array.shape) == [dim.size for dim in proto.tensor_shape.dim]
        # A repeated name appends more values than the shape holds; the runtime reads the first.
        values = list(getattr(proto, FIELDS.get(info.dtype, "int_val")))[: array.size]
        assert_values(array, values)


def assert_values(array: np.ndarray[Any, Any], values: list[Any]) -> None:
    if array.dtype == np.object_:
        assert array.ravel().tolist() == values
        return
    wide = np.array(values, np.float64 if array.dtype.kind == "f" else np.object_)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            expected = wide.astype(array.dtype)
        # The original's own parser may be one unit in the last place off.
        ulps = 1 if array.dtype == np.float64 else 0
        np.testing.assert_array_max_ulp(array.ravel(), expected, maxulp=ulps)
        return
    bits = 8 * array.dtype.itemsize
    got = [int(value) % 2**bits for value in array.ravel().tolist()]
    assert got == [int(value) % 2**bits for value in values]


def parse_request(text: str) -> dict[str, Any]:
    """Read the ``inputs`` of a PredictRequest, whose own proto may not be installed."""
    text = re.sub(r"^model_spec \{.*?\} ", "", text)
    tensors = {}
    for key, value in re.findall(r'inputs \{ key: "(\w+)" value \{(.*?)\} \}(?= inputs|$)', text):
        tensors[key] = text_format.Parse(value, tensor_pb2.TensorProto())
    return tensors


def agree_classify(case: dict[str, Any]) -> None:
    try:
        body = parse_examples(body_of(case))
    except ServingError as error:
        assert_error(case, error)
        return
    assert case["ok"], case
    context, examples = parse_input(case["parsed"])
    expected = [context + example.SerializeToString() for example in examples]
    got = [example_pb2.Example.FromString(data) for data in body.examples]
    for one, other in zip(got, expected, strict=True):
        # As text: a NaN equals itself there.
        assert str(one) == str(example_pb2.Example.FromString(other))


def parse_input(text: str) -> tuple[bytes, list[Any]]:
    match = re.fullmatch(r"input \{ example_list(?:_with_context)? \{ (.*) \} \}", text)
    assert match is not None
    inner = match[1]
    context = example_pb2.Example()
    if found := re.search(r" context \{(.*)\}$", inner):
        text_format.Parse(found[1], context)
        inner = inner[: found.start()]
    examples = [
        text_format.Parse(part, example_pb2.Example())
        for part in re.findall(r"examples \{(.*?)\}(?= examples|$)", inner)
    ]
    return context.SerializeToString(), examples


def agree_encode(case: dict[str, Any]) -> None:
    outputs = {}
    infos = {}
    for tensor in case["tensors"]:
        dtype = dtype_of(tensor["dtype"].removeprefix("DT_").lower())
        infos[tensor["name"]] = TensorInfo(dtype.name, tuple(tensor["dims"]))
        outputs[tensor["name"]] = array_of(tensor, dtype.name)
    try:
        text = encode_predict(outputs, infos, Format(case["format"])).decode("utf-8")
    except ServingError as error:
        if "inconsistent batch size" in case["error"]:
            # Which output is named depends on the order of a hash map.
            case = case | {"error": error.message}
            assert "has inconsistent batch size: " in case["error"]
        assert_error(case, error)
        return
    assert case["ok"], case
    assert same(loads(case["json_text"]), loads(text))
    digits = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?")
    if "key_order" not in case:
        # The layout is the same too, whatever the digits.
        assert digits.sub("0", text) == digits.sub("0", case["json_text"])


def array_of(tensor: dict[str, Any], name: str) -> np.ndarray[Any, Any]:
    values = tensor["values"]
    if name == "string":
        proto = text_format.Parse(
            " ".join(f"string_val: {value}" for value in values), tensor_pb2.TensorProto()
        )
        array = np.empty(len(values), np.object_)
        array[:] = list(proto.string_val)
    elif name == "bool":
        array = np.array([value == "true" for value in values], np.bool_)
    elif name in ("float", "double"):
        array = np.array([float(value) for value in values], dtype_of(name).numpy)
    else:
        array = np.array([int(value) for value in values], dtype_of(name).numpy)
    return array.reshape(tensor["dims"])


class Number(str):
    """A JSON number, kept as its text."""

    __slots__ = ()


def loads(text: str) -> Any:
    return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)


def same(want: Any, got: Any) -> bool:
    """JSON equality: floats by value, as float32 where no more digits are given."""
    if isinstance(want, Number) and isinstance(got, Number):
        floating = re.compile(r"[.eNI]")
        if bool(floating.search(want)) != bool(floating.search(got)):
            return False
        digits = len(re.sub(r"e.*|[^0-9]", "", want).lstrip("0"))
        one, other = float(want), float(got)
        if digits <= 9 and abs(one) < 1e39:
            one, other = float(np.float32(one)), float(np.float32(other))
        return want == got or one == other
    if isinstance(want, dict) and isinstance(got, dict):
        return want.keys() == got.keys() and all(same(want[key], got[key]) for key in want)
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(same, want, got))
    return type(want) is type(got) and bool(want == got)


def assert_error(case: dict[str, Any], error: ServingError) -> None:
    assert not case["ok"], error
    message = error.message.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    expected = case["error"]
    if "18446744073709553000.0" in expected:
        # The original's shortest-digits algorithm is off by one digit near a power of two.
        message = message.replace("18446744073709552000.0", "18446744073709553000.0")
    assert (error.code.name, message) == (case["code"], expected)
