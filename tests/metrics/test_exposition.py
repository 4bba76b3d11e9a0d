"""The text that Prometheus reads: TensorFlow Serving's names in its way, ours by the library."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jupyter_tfserve.metrics import Distribution, Family, Histogram, Kind, expose


def counter(*values: str) -> Family:
    name = ":tensorflow:serving:request_count"
    return Family(name, Kind.COUNTER, ("model_name", "status"), cells={values: 2})


def test_counters_are_written_as_tensorflow_serving_does() -> None:
    assert expose([counter("m", "OK")]) == (
        b"# TYPE :tensorflow:serving:request_count counter\n"
        b':tensorflow:serving:request_count{model_name="m",status="OK"} 2\n'
    )


def test_a_metric_without_labels_has_empty_braces() -> None:
    family = Family(":tensorflow:serving:batching_session:wrapped_run_count", Kind.COUNTER, ())
    family.cells[()] = 1
    assert expose([family]).splitlines()[1] == (
        b":tensorflow:serving:batching_session:wrapped_run_count{} 1"
    )


def test_buckets_are_cumulated_and_numbers_have_six_digits() -> None:
    bounds = (1.0, 10 * 1.8**3, 10 * 1.8**25)
    family = Family(":tensorflow:x", Kind.HISTOGRAM, ("API",), bounds=bounds)
    family.cells[("predict",)] = Distribution((1, 0, 2, 1), 1234567.8)
    assert expose([family]).decode().splitlines() == [
        "# TYPE :tensorflow:x histogram",
        ':tensorflow:x_bucket{API="predict",le="1"} 1',
        ':tensorflow:x_bucket{API="predict",le="58.32"} 1',
        ':tensorflow:x_bucket{API="predict",le="2.40887e+07"} 3',
        ':tensorflow:x_bucket{API="predict",le="+Inf"} 4',
        ':tensorflow:x_sum{API="predict"} 1.23457e+06',
        ':tensorflow:x_count{API="predict"} 4',
    ]


@pytest.mark.parametrize(("inclusive", "bucket"), [(False, 1), (True, 0)])
def test_bounds_are_exclusive_in_tensorflows_histograms_alone(
    *, inclusive: bool, bucket: int
) -> None:
    histogram = Histogram((2.0, 4.0), inclusive=inclusive)
    histogram.observe(2.0)
    assert histogram.read().buckets[bucket] == 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ('a"b\\c', r"a\"b\\c"),
        ('m"} 1\n:tensorflow:evil 1', r"m\"} 1\n:tensorflow:evil 1"),
        ("caf\u00e9", "caf\u00e9"),
        ("\udcff", r"\\udcff"),
        ("\ud800", r"\\ud800"),
    ],
)
def test_no_name_can_break_the_text(name: str, label: str) -> None:
    ours = Family("jupyter_tfserve_x", Kind.GAUGE, ("model",), "X", cells={(name,): 1})
    lines = expose([counter(name, "OK"), ours]).decode().splitlines()
    assert lines[1] == f':tensorflow:serving:request_count{{model_name="{label}",status="OK"}} 2'
    assert lines[-1] == f'jupyter_tfserve_x{{model="{label}"}} 1.0'
    assert len(lines) == 5


def test_what_is_ours_is_written_by_the_library() -> None:
    latency = Family("jupyter_tfserve_s", Kind.HISTOGRAM, ("model",), "Seconds", (0.5, 1.0))
    latency.cells[("m",)] = Distribution((1, 1, 1), 3.25)
    calls = Family("jupyter_tfserve_calls", Kind.COUNTER, ("model",), "Calls", cells={("m",): 3})
    text = expose([latency, calls]).decode()
    first, second = text_string_to_metric_families(text)
    assert (first.name, first.type, first.documentation) == (
        "jupyter_tfserve_calls",
        "counter",
        "Calls",
    )
    assert [(s.name, s.labels, s.value) for s in first.samples] == [
        ("jupyter_tfserve_calls_total", {"model": "m"}, 3.0)
    ]
    assert [(s.labels.get("le"), s.value) for s in second.samples] == [
        ("0.5", 1.0),
        ("1", 2.0),
        ("+Inf", 3.0),
        (None, 3.0),
        (None, 3.25),
    ]


def test_theirs_come_first_and_all_are_sorted() -> None:
    families = [
        Family("jupyter_tfserve_a", Kind.GAUGE, (), "A"),
        Family(":tensorflow:b", Kind.COUNTER, ()),
        Family(":tensorflow:a", Kind.COUNTER, ()),
    ]
    types = [x for x in expose(families).decode().splitlines() if x.startswith("# TYPE")]
    assert types == [
        "# TYPE :tensorflow:a counter",
        "# TYPE :tensorflow:b counter",
        "# TYPE jupyter_tfserve_a gauge",
    ]
