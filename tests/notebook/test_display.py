"""What is served, as text and as HTML."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from jupyter_tfserve.notebook.display import Labelled, Loaded, Status

URL = "http://localhost:8888/"


def version(number: int, state: str = "AVAILABLE", **rest: Any) -> dict[str, Any]:
    return {"version": number, "state": state, "error": None, "requests": 0, **rest}


def model(name: str, *versions: dict[str, Any], **rest: Any) -> dict[str, Any]:
    owner = {"pool": "p", "kind": "managed", "notebook": None}
    return {
        "name": name,
        "owner": owner,
        "labels": {},
        "problem": None,
        "versions": [*versions],
        **rest,
    }


def text_of(html: str) -> str:
    """The text of an output as a reader without styles gets it; fails for unbalanced HTML."""
    root = ET.fromstring(f"<body>{html}</body>".replace("<br>", "<br/>"))
    for style in root.findall("style"):
        root.remove(style)
    return " ".join(" ".join(root.itertext()).split())


def test_a_status_is_a_table_with_a_line_for_each_version() -> None:
    status = Status(
        [
            model("zeta", version(1, device="CPU", memory={"host": 34_918, "device": 0})),
            model(
                "mnist",
                version(10, requests=118_630),
                version(9, "UNLOADING"),
                labels={"stable": 10},
            ),
        ],
        URL,
    )
    assert repr(status).splitlines() == [
        "2 models in 1 pool · http://localhost:8888/v1/models/NAME",
        "Model  Version  State        Labels  Pool     Device    Memory  Requests",
        "mnist       10  ● AVAILABLE  stable  managed  –              –   118,630",
        "             9  ◒ UNLOADING                   –              –         0",
        "zeta         1  ● AVAILABLE          managed  CPU     34.1 KiB         0",
    ]
    html = text_of(status._repr_html_())
    assert "mnist 10 ● AVAILABLE stable managed" in html
    assert "zeta 1 ● AVAILABLE" in html


def test_a_failure_tells_its_reason_beneath() -> None:
    status = Status([model("m", version(2, "END", error="no <op> here"), version(1))], URL)
    assert "▲ END, error" in repr(status)
    assert "  no <op> here" in repr(status).splitlines()
    assert "no <op> here" in text_of(status._repr_html_())


def test_a_model_without_versions_tells_its_problem() -> None:
    status = Status([model("m", problem="no numbered folders in /m")], URL)
    assert "○ START" in repr(status)
    assert "no numbered folders in /m" in repr(status)


def test_ended_versions_are_few() -> None:
    ended = [version(number, "END") for number in range(20, 0, -1)]
    assert repr(Status([model("m", version(21), *ended)], URL)).count("□ END") == 3


def test_nothing_served_says_how_to_begin() -> None:
    assert repr(Status([], URL)) == "Nothing is served. %tfserve load NAME PATH"
    assert text_of(Status([], URL)._repr_html_()) == "Nothing is served. %tfserve load NAME PATH"


@pytest.mark.parametrize("name", ["<script>", 'a"b', "team/resnet", "größe"])
def test_names_are_text_in_html_and_encoded_in_urls(name: str) -> None:
    loaded = Loaded(model(name, version(3), labels={"stable": 3}), URL, 1.234)
    assert repr(loaded).startswith(f"● AVAILABLE {name} version 3, label stable · 1.2 s")
    assert "<script>" not in loaded._repr_html_().partition("</style>")[2]
    assert f"{name} version 3, label stable" in text_of(loaded._repr_html_())
    assert repr(Status([model(name, version(1))], URL)).count(name) == 1
    assert " " not in repr(loaded).splitlines()[1].removeprefix("POST ")


def test_a_label_is_told_with_the_address_that_it_gives() -> None:
    labelled = Labelled("team/m", "a<b", 3, "http://host:8888/")
    url = "http://host:8888/v1/models/team%2Fm/labels/a%3Cb:predict"
    assert repr(labelled) == f"● a<b is version 3 of team/m\nPOST {url}"
    html = labelled._repr_html_()
    assert '<span class="label">a&lt;b</span> is version 3 of team/m' in html
    assert f"<code>POST {url}</code>" in html


def test_a_label_that_was_removed_is_told_so() -> None:
    labelled = Labelled("m", "stable", None, "http://host:8888/")
    assert repr(labelled) == "□ stable is no label of m any more"
    assert '□ <span class="label">stable</span> is no label of m any more' in (
        labelled._repr_html_()
    )
