"""Who answers a target."""

import pytest

from jupyter_tfserve.http.routing import is_path, is_rest, not_found

METRICS = "/monitoring/prometheus/metrics"


@pytest.mark.parametrize("target", ["/v1/models/m", "/V1/x", "/v1/", "/v1//models", "/v1/?a"])
def test_rest_api(target):
    assert is_rest(target)


@pytest.mark.parametrize("target", ["", "/", "*", "/v1", "/v2/models/m", "//v1/models/x", "/v1?/"])
def test_nothing_that_the_rest_api_answers(target):
    assert not is_rest(target)


def test_path_is_exact_but_for_query_and_fragment():
    assert is_path(METRICS, METRICS)
    assert is_path(METRICS + "?a", METRICS)
    assert is_path(METRICS + "#a?b", METRICS)
    assert not is_path(METRICS + "/", METRICS)
    assert not is_path(METRICS.upper(), METRICS)


def test_not_found_is_a_page_that_ends_the_connection():
    response = not_found()
    assert (response.status, response.content_type, response.close) == (404, "text/html", True)
    assert b"404 Not Found" in response.body
