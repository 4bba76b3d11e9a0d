"""The target that the grammar sees."""

import pytest

from jupyter_tfserve.server.targets import is_uri, raw_target

PREFIX = "/a%40b"


@pytest.mark.parametrize(
    ("below", "seen"),
    [
        ("/v1/models/m", "/v1/models/m"),
        ("/v1/models/team%2Fresnet", "/v1/models/team%2Fresnet"),
        ("/v1/models/m?", "/v1/models/m?"),
        ("/v1/models/m?x=1&&y", "/v1/models/m?x=1&&y"),
        ("/v1/models/m?token=t", "/v1/models/m"),
        ("/v1/models/m?token", "/v1/models/m"),
        ("/v1/models/m?%74oken=t", "/v1/models/m"),
        ("/v1/models/m?token=t&token=u", "/v1/models/m"),
        ("/v1/models/m?x=%20&token=t&y=?", "/v1/models/m?x=%20&y=?"),
        ("/v1/models/m?tokens=t", "/v1/models/m?tokens=t"),
        ("/v1/models/caf\u00c3\u00a9", "/v1/models/café"),
        ("/v1/models/\u00ff", "/v1/models/\udcff"),
    ],
)
def test_only_the_prefix_and_the_token_are_taken_off(below: str, seen: str) -> None:
    assert raw_target(PREFIX + below, len(PREFIX)) == seen


@pytest.mark.parametrize(
    ("target", "valid"),
    [
        ("/v1/models/team%2Fresnet", True),
        ("/v1/models/m!$&'()*+,;=:@-._~?x=/?#f?", True),
        ("/v1/models/m%zz", False),
        ("/v1/models/m%2", False),
        ("/v1/models/a b", False),
        ('/v1/models/a"b', False),
        ("/v1/models/[m]", False),
        ("/v1/models/caf\u00e9", False),
        ("/v1/models/m#a#b", False),
    ],
)
def test_what_is_no_uri_is_known_as_such(target: str, valid: bool) -> None:
    assert is_uri(target) is valid
