"""How a line of ``%tfserve publish`` reads."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from jupyter_tfserve.notebook.publish_line import parse_publish


@pytest.mark.parametrize(
    ("line", "model", "name", "version", "weights"),
    [
        ("model", "model", "model", None, None),
        ("model --name mnist --freeze", "model", "mnist", None, "freeze"),
        ("--follow --version 7 model --name 'my mnist'", "model", "my mnist", 7, "follow"),
        ('models["a"]', 'models["a"]', None, None, None),
        ("make(1,2) --name=m", "make(1,2)", "m", None, None),
    ],
)
def test_a_line_names_a_model_and_how_it_is_served(
    line: str, model: str, name: str | None, version: int | None, weights: str | None
) -> None:
    read = parse_publish(line)
    assert (read.model, read.name, read.version, read.weights) == (model, name, version, weights)


def test_a_line_may_ask_for_batching() -> None:
    assert parse_publish("model").batching is None
    assert parse_publish("model --batching greedy").batching == "greedy"


def test_labels_signatures_and_the_way_to_the_servers_pool_are_read() -> None:
    line = (
        'm --label stable --label "a b" --signatures {"serving_default":m.f,"x":m.g} --to managed'
    )
    read = parse_publish(line)
    assert read.label == ["stable", "a b"]
    assert read.signatures == '{"serving_default":m.f,"x":m.g}'
    assert read.to == "managed"
    read = parse_publish("m")
    assert (read.label, read.signatures, read.to) == ([], None, None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("m --to elsewhere", "invalid choice"),
        ("", "required: model"),
        ("model other", "unrecognized arguments: other"),
        ("model --version one", "invalid int value"),
        ("model --freeze --follow", "not allowed with"),
        ("model --batching much", "invalid choice: 'much'"),
        ("'model", "No closing quotation"),
    ],
)
def test_a_line_that_does_not_read_shows_the_usage(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        parse_publish(line)
    assert "Usage: %tfserve publish MODEL" in str(refused.value)
