"""What a pool counts of its calls."""

from __future__ import annotations

import pytest

from jupyter_tfserve.errors import Code, ServingError, invalid_argument
from jupyter_tfserve.metrics import Distribution, Family
from jupyter_tfserve.pool.call import error_response
from jupyter_tfserve.pool.statistics import Statistics, Tally
from jupyter_tfserve.routes import parse_route
from jupyter_tfserve.servable import ServableId
from jupyter_tfserve.wire import Response

M1 = ServableId("m", 1)
OK = Response(200, b"{}")


@pytest.fixture
def statistics() -> Statistics:
    return Statistics(lambda name: name == "m")


def predict(statistics: Statistics, answer: Response = OK) -> list[Response]:
    answers: list[Response] = []
    tally = Tally(statistics, answers.append)
    tally.route = parse_route("POST", "/v1/models/m:predict")
    tally.begin(M1)
    assert statistics.describe(M1)["in_flight"] == 1
    tally.runtime_s = 1e-9
    tally.end()
    tally.respond(answer)
    return answers


def family(statistics: Statistics, name: str) -> Family:
    families = statistics.requests.families()
    return next(f for f in families if f.name == f":tensorflow:serving:{name}")


def test_a_success_is_counted_for_its_model_and_version(statistics: Statistics) -> None:
    assert predict(statistics) == [OK]
    assert family(statistics, "request_count").cells == {("m", "OK"): 1}
    (latency,) = family(statistics, "request_latency").cells.items()
    (runtime,) = family(statistics, "runtime_latency").cells.items()
    assert (latency[0], runtime[0]) == (("m", "predict", "REST"), ("m", "Predict", "TF1"))
    assert isinstance(latency[1], Distribution)
    assert isinstance(runtime[1], Distribution)
    assert 0 < runtime[1].total < latency[1].total
    told = statistics.describe(M1)
    assert (told["requests"], told["errors"], told["in_flight"]) == (1, 0, 0)
    assert 0 < told["p50_ms"] == told["p99_ms"]


def test_a_refusal_is_counted_by_its_code_and_has_no_latency(statistics: Statistics) -> None:
    predict(statistics, error_response(invalid_argument("no")))
    predict(statistics, error_response(ServingError(Code.FAILED_PRECONDITION, "no")))
    assert family(statistics, "request_count").cells == {
        ("m", "INVALID_ARGUMENT"): 1,
        ("m", "FAILED_PRECONDITION"): 1,
    }
    assert family(statistics, "request_latency").cells == {}
    told = statistics.describe(M1)
    assert (told["requests"], told["errors"], told["p50_ms"]) == (2, 2, None)


def test_what_is_no_call_of_the_api_is_counted_without_a_name(statistics: Statistics) -> None:
    Tally(statistics, lambda _: None).respond(error_response(invalid_argument("Malformed request")))
    assert family(statistics, "request_count").cells == {("", "INVALID_ARGUMENT"): 1}


def test_a_call_that_is_given_up_is_counted_as_cancelled(statistics: Statistics) -> None:
    given_up = []
    tally = Tally(statistics, lambda _: None)
    tally.route = parse_route("POST", "/v1/models/m:predict")
    assert tally.cancellable(None) is None
    give_up = tally.cancellable(lambda: given_up.append(True))
    assert give_up is not None
    give_up()
    assert given_up == [True]
    assert family(statistics, "request_count").cells == {("m", "CANCELLED"): 1}


def test_percentiles_are_of_the_last_thousand_calls(statistics: Statistics) -> None:
    version = statistics.version(M1)
    for milliseconds in range(2001):
        version.answered(Code.OK, milliseconds / 1000)
    told = statistics.describe(M1)
    assert (told["requests"], told["p50_ms"], told["p99_ms"]) == (2001, 1500.0, 1990.0)


def test_the_counts_of_an_ended_version_are_gone(statistics: Statistics) -> None:
    predict(statistics)
    statistics.forget(M1)
    statistics.forget(ServableId("never", 1))
    assert statistics.versions() == []
    assert statistics.describe(M1)["requests"] == 0


def test_a_call_still_running_when_it_was_answered_counts_as_in_flight(
    statistics: Statistics,
) -> None:
    tally = Tally(statistics, lambda _: None)
    tally.begin(M1)
    tally.respond(error_response(ServingError(Code.DEADLINE_EXCEEDED, "late")))
    told = statistics.describe(M1)
    assert (told["errors"], told["in_flight"]) == (1, 1)
    tally.end()
    assert statistics.describe(M1)["in_flight"] == 0
