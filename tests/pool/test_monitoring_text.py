"""The monitoring config file."""

from pathlib import Path

import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.monitoring_text import load_monitoring_file


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("prometheus_config { enable: true }", "/monitoring/prometheus/metrics"),
        ('prometheus_config: { enable: true, path: "/m" } # ours', "/m"),
        ('prometheus_config { path: "/m" }', None),
        ("prometheus_config { enable: false }", None),
        ("", None),
    ],
)
def test_it_tells_whether_and_where(tmp_path: Path, text: str, path: str | None) -> None:
    file = tmp_path / "monitoring.config"
    file.write_text(text)
    assert load_monitoring_file(str(file)) == path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prometheus_config {\n  enabled: true\n}", ["2:3", "PrometheusConfig", '"enabled"']),
        ("prometheus_config { enable: maybe }", ["1:29", "maybe"]),
        ("\n\nprometheus { }", ["3:1", "MonitoringConfig", '"prometheus"']),
        ("prometheus_config { enable: true", ["1:"]),
    ],
)
def test_a_refusal_names_file_line_and_field(tmp_path: Path, text: str, words: list[str]) -> None:
    file = tmp_path / "monitoring.config"
    file.write_text(text)
    with pytest.raises(ServingError) as caught:
        load_monitoring_file(str(file))
    assert caught.value.code is Code.INVALID_ARGUMENT
    for word in [f"'{file}'", *words]:
        assert word in caught.value.message


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServingError) as caught:
        load_monitoring_file(str(tmp_path / "no"))
    assert caught.value.code is Code.NOT_FOUND
    assert str(tmp_path / "no") in caught.value.message
