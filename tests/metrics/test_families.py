"""Metrics as values: sent between processes and added up."""

import json

from jupyter_tfserve.metrics import Distribution, Family, Kind, merge


def histogram(**cells: tuple[int, ...]) -> Family:
    family = Family("h", Kind.HISTOGRAM, ("model",), "Help", (1.0, 2.0))
    for name, buckets in cells.items():
        family.cells[(name,)] = Distribution(buckets, 1.5)
    return family


def test_a_family_crosses_processes_as_json() -> None:
    counter = Family("c", Kind.COUNTER, ("a", "b"), cells={("x", "y"): 3})
    for family in (counter, histogram(m=(1, 2, 3))):
        assert Family.from_dict(json.loads(json.dumps(family.to_dict()))) == family


def test_what_several_processes_counted_is_added_up() -> None:
    counters = [
        Family("c", Kind.COUNTER, ("a",), cells={("x",): 3, ("y",): 1}),
        Family("c", Kind.COUNTER, ("a",), cells={("x",): 4}),
    ]
    c, h = merge([*counters, histogram(m=(1, 2, 3), n=(1, 0, 0)), histogram(m=(1, 1, 1))])
    assert c.cells == {("x",): 7, ("y",): 1}
    assert h.cells == {
        ("m",): Distribution((2, 3, 4), 3.0),
        ("n",): Distribution((1, 0, 0), 1.5),
    }
    assert counters[0].cells == {("x",): 3, ("y",): 1}


def test_a_metric_of_another_shape_is_left_out() -> None:
    other = Family("h", Kind.HISTOGRAM, ("model",), bounds=(1.0,))
    other.cells[("m",)] = Distribution((9, 9), 9.0)
    (merged,) = merge([histogram(m=(1, 2, 3)), other])
    assert merged.cells == {("m",): Distribution((1, 2, 3), 1.5)}
