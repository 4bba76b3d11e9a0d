"""The aspired configuration: refusals in TensorFlow Serving's words, and a way there and back."""

from __future__ import annotations

import pytest

from jupyter_tfserve.config import (
    All,
    Latest,
    ModelConfig,
    ModelServerConfig,
    Specific,
    policy_from_dict,
    policy_to_dict,
)
from jupyter_tfserve.errors import Code, ServingError


@pytest.mark.parametrize(
    ("models", "text"),
    [
        (
            (ModelConfig("m", "/a"), ModelConfig("m", "/b")),
            "Illegal to list model m multiple times in config list",
        ),
        (
            (ModelConfig("", "/a"),),
            "Illegal to list a model without a name in config list; got base_path()=/a",
        ),
        (
            (ModelConfig("m", "relative/path"),),
            "Expected model m to have an absolute path or URI; got base_path()=relative/path",
        ),
        ((ModelConfig("m", "/a", "pytorch"),), "Model m requests unsupported platform pytorch"),
        (
            (ModelConfig("m", "/a", ""),),
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
            "ModelServerConfig::model_platform, model name is m",
        ),
        ((ModelConfig("\ud800", "/a"),), r"Model '\ud800' has a text that is no UTF-8: '\ud800'"),
        (
            (ModelConfig("m", "/a", labels={"\udcff": 1}),),
            r"Model 'm' has a text that is no UTF-8: '\udcff'",
        ),
        (
            (ModelConfig("m", "/a\0b"),),
            r"Model m has a base path with a NUL character: '/a\x00b'",
        ),
        (
            (ModelConfig("m", "/a", policy=Specific(frozenset({2**63}))),),
            "Model m lists version 9223372036854775808, beyond int64",
        ),
        (
            (ModelConfig("m", "/a", labels={"x": -(2**63) - 1}),),
            "Model m lists version -9223372036854775809, beyond int64",
        ),
        (
            (ModelConfig("m", "/a", policy=Latest(2**32)),),
            "Model m asks for 4294967296 versions, beyond uint32",
        ),
        (
            (ModelConfig("m", "/a", batching="much"),),
            "Model m asks for batching 'much'; expected one of off, greedy",
        ),
    ],
)
def test_a_bad_list_is_refused(models: tuple[ModelConfig, ...], text: str) -> None:
    with pytest.raises(ServingError) as refused:
        ModelServerConfig(models).validate()
    assert (refused.value.code, refused.value.message) == (Code.INVALID_ARGUMENT, text)


def test_a_configuration_crosses_the_wire_unchanged() -> None:
    config = ModelServerConfig(
        (
            ModelConfig("a", "/models/a", policy=All(), labels={"stable": 1}),
            ModelConfig("b", "gs://bucket/b", policy=Specific(frozenset({3, 1}))),
            ModelConfig("c", "/models/c", policy=Latest(2)),
            ModelConfig("d", "/models/d", batching="greedy"),
        )
    )
    assert ModelServerConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("policy", [Latest(), Latest(3), All(), Specific(frozenset({1, 2}))])
def test_policies_read_back(policy: Latest | All | Specific) -> None:
    assert policy_from_dict(policy_to_dict(policy)) == policy


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"newest": {}},
        {"latest": {"num_versions": "2"}},
        {"all": {}, "latest": {}},
        {"specific": {}},
    ],
)
def test_a_policy_that_is_none_is_refused_with_an_example(data: dict[str, object]) -> None:
    with pytest.raises(ServingError, match="Expected a version policy such as"):
        policy_from_dict(data)


def test_zero_versions_means_the_default() -> None:
    assert policy_from_dict({"latest": {"num_versions": 0}}) == Latest(1)
