"""The URL grammar, case by case; rules are TensorFlow Serving's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.routes import Api, Route, model_path, parse_route
from jupyter_tfserve.servable import ModelSpec


@pytest.mark.parametrize(
    ("method", "target", "api", "spec"),
    [
        ("GET", "/v1/models/m", Api.STATUS, ModelSpec("m")),
        ("GET", "/V1/Models/M", Api.STATUS, ModelSpec("M")),
        ("GET", "/v1/models/m/versions/0001", Api.STATUS, ModelSpec("m", 1)),
        ("GET", "/v1/models/m/labels/stable", Api.STATUS, ModelSpec("m", label="stable")),
        ("GET", "/v1/models/m/metadata", Api.METADATA, ModelSpec("m")),
        ("GET", "/v1/models/m/METADATA", Api.STATUS, ModelSpec("m")),
        ("GET", "/v1/models/m/versions/7/metadata", Api.METADATA, ModelSpec("m", 7)),
        ("GET", "/v1/models/metadata", Api.STATUS, ModelSpec("metadata")),
        ("GET", "/v1/models/metadata/metadata", Api.METADATA, ModelSpec("metadata")),
        ("GET", "/v1/models/versions", Api.STATUS, ModelSpec("versions")),
        ("GET", "/v1/models/m?x=1", Api.STATUS, ModelSpec("m?x=1")),
        ("POST", "/v1/models/m:predict", Api.PREDICT, ModelSpec("m")),
        ("POST", "/v1/models/m/versions/3:classify", Api.CLASSIFY, ModelSpec("m", 3)),
        ("POST", "/v1/models/m/labels/a%20b:regress", Api.REGRESS, ModelSpec("m", label="a b")),
        ("POST", "/v1/models/team%2Fresnet:predict", Api.PREDICT, ModelSpec("team/resnet")),
        ("POST", "/v1/models/a%3Ab+c:predict", Api.PREDICT, ModelSpec("a:b+c")),
        ("POST", "/v1/models/%FF:predict", Api.PREDICT, ModelSpec("\udcff")),
    ],
)
def test_a_call_is_understood(method: str, target: str, api: Api, spec: ModelSpec) -> None:
    assert parse_route(method, target) == Route(api, spec)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/v1/models/m/"),
        ("GET", "/v1/models/m/version/1"),
        ("GET", "/v1/models/m/versions/abc"),
        ("GET", "/v1/models/m/versions/-1"),
        ("GET", "/v1/models/m/versions/\N{ARABIC-INDIC DIGIT ONE}"),
        ("GET", "/v1/models/m/versions/1/labels/x"),
        ("GET", "/v1/models/m/metadata?x=1"),
        ("GET", "/v1/models/m:predict"),
        ("POST", "/v1/models/m"),
        ("POST", "/v1/models/m/metadata"),
        ("POST", "/v1/models/m:PREDICT"),
        ("POST", "/v1/models/m:predict?x=1"),
        ("POST", "/v1/models/:predict"),
        ("POST", "/v1/models/a/b:predict"),
        ("PUT", "/v1/models/m:predict"),
        ("DELETE", "/v1/models/m"),
        ("HEAD", "/v1/models/m"),
    ],
)
def test_anything_else_is_malformed_and_quoted(method: str, target: str) -> None:
    with pytest.raises(ServingError) as refused:
        parse_route(method, target)
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message == f"Malformed request: {method} {target}"


@pytest.mark.parametrize("target", ["/v1/models", "/v1/models/versions/1", "/v1/models/labels/x"])
def test_a_query_without_a_name_says_so(target: str) -> None:
    with pytest.raises(ServingError, match="Missing model name in request"):
        parse_route("GET", target)


@pytest.mark.parametrize("digits", [str(2**63), "9" * 5000])  # the latter is too long for int()
def test_a_version_beyond_int64_has_an_error_without_text(digits: str) -> None:
    with pytest.raises(ServingError) as refused:
        parse_route("POST", f"/v1/models/m/versions/{digits}:predict")
    assert (refused.value.http_status, refused.value.message) == (400, "")


@pytest.mark.parametrize("version", [0, 1, 2**63 - 1])
def test_zeros_before_a_version_do_not_count(version: int) -> None:
    for zeros in ("", "0" * 5000):
        target = f"/v1/models/m/versions/{zeros}{version}"
        assert parse_route("GET", target).spec == ModelSpec("m", version)


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_every_name_can_be_addressed(name: str) -> None:
    assert parse_route("POST", f"{model_path(name)}:predict").spec == ModelSpec(name)
    assert parse_route("GET", model_path("m", label=name)).spec == ModelSpec("m", label=name)
