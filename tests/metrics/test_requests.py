"""TensorFlow Serving's metrics of requests."""

import pytest

from jupyter_tfserve.errors import Code
from jupyter_tfserve.metrics import Distribution, RequestMetrics


@pytest.fixture
def served() -> set[str]:
    return {"m"}


@pytest.fixture
def requests(served: set[str]) -> RequestMetrics:
    return RequestMetrics(served.__contains__)


def counts(requests: RequestMetrics) -> dict[tuple[str, ...], object]:
    return dict(requests.families()[0].cells)


def test_requests_are_counted_by_model_and_status(requests: RequestMetrics) -> None:
    for code in (Code.OK, Code.OK, Code.UNAUTHENTICATED, Code.INVALID_ARGUMENT):
        requests.record("m", "predict", code, 11e-6, 12e-6)
    requests.record("", "", Code.INVALID_ARGUMENT, 1)
    count, latency, runtime = requests.families()
    assert (count.name, count.labels) == (
        ":tensorflow:serving:request_count",
        ("model_name", "status"),
    )
    assert count.cells == {
        ("m", "OK"): 2,
        ("m", "UNAUTHENTICATED"): 1,
        ("m", "INVALID_ARGUMENT"): 1,
        ("", "INVALID_ARGUMENT"): 1,
    }
    assert latency.labels == ("model_name", "API", "entrypoint")
    assert latency.bounds[:3] == (10.0, 18.0, pytest.approx(32.4))
    assert len(latency.bounds) == 33
    assert latency.cells == {("m", "predict", "REST"): Distribution((0, 2, *[0] * 32), 22.0)}
    assert runtime.labels == ("model_name", "API", "runtime")
    assert runtime.cells == {("m", "Predict", "TF1"): Distribution((0, 4, *[0] * 32), 48.0)}


def test_names_that_nobody_serves_are_told_apart_while_they_are_few(
    requests: RequestMetrics, served: set[str]
) -> None:
    for number in range(1000):
        requests.record(f"x{number}", "", Code.NOT_FOUND, 1)
    requests.record("m", "predict", Code.OK, 1)
    requests.record("x0", "", Code.NOT_FOUND, 1)
    seen = counts(requests)
    assert len(seen) == 102
    assert seen["x0", "NOT_FOUND"] == 2
    assert seen["(other)", "NOT_FOUND"] == 900
    assert seen["m", "OK"] == 1
    served.add("x999")
    requests.record("x999", "predict", Code.OK, 1)
    assert counts(requests)["x999", "OK"] == 1


def test_a_long_name_that_nobody_serves_is_not_kept(requests: RequestMetrics) -> None:
    requests.record("x" * 5000, "", Code.NOT_FOUND, 1)
    assert counts(requests) == {("(other)", "NOT_FOUND"): 1}
