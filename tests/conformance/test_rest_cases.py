"""Both doors answer the REST API as TensorFlow Serving does, case by case, over real sockets.

The project's own cases run on the models of the tests. Where ``TFSERVE_CONFORMANCE_DIR`` names a
folder with ``rest-cases.jsonl``, ``models.config`` and ``models``, those run as well.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import doors
import pytest
from replay import Case, Door, Stable, difference, read_cases, send

HERE = Path(__file__).parent
FURTHER = os.environ.get("TFSERVE_CONFORMANCE_DIR")


@dataclass(frozen=True)
class Suite:
    """Cases, and the models that they are for; ``models`` is None for those of the tests."""

    name: str
    files: tuple[Path, ...]
    config: Path
    models: Path | None = None


SUITES = [Suite("own", tuple(sorted(HERE.glob("cases/*.jsonl"))), HERE / "cases" / "models.config")]
if FURTHER is not None:
    folder = Path(FURTHER).resolve()
    SUITES.append(
        Suite(
            "further", (folder / "rest-cases.jsonl",), folder / "models.config", folder / "models"
        )
    )

Start = Callable[[Path, Path], AbstractContextManager[Door]]
DOORS: dict[str, Start] = {"standalone": doors.standalone, "jupyter": doors.jupyter}


def beyond_jupyter(case: Case) -> str | None:
    """Why the Jupyter door does not get to see a request; None for those that it answers."""
    if not case.path.lower().startswith("/v1/"):
        return "below the base URL but outside /v1 Jupyter's own handlers answer"
    if case.method == "OPTIONS":
        return "Jupyter answers preflights, by its own settings of allowed origins"
    if case.method in ("TRACE", "FOO", "get"):
        return "Tornado answers methods that it does not know, with 405"
    return None


@cache
def cases_of(suite: Suite, door: str) -> list[Case]:
    cases = [case for path in suite.files for case in read_cases(path)]
    if door == "jupyter":
        return [case for case in cases if beyond_jupyter(case) is None]
    return cases


@dataclass(frozen=True)
class Setting:
    """One server: a door with the models of a suite."""

    suite: Suite
    door: str

    def __str__(self) -> str:
        return f"{self.suite.name}-{self.door}"


SETTINGS = [Setting(suite, door) for suite in SUITES for door in DOORS]
SINGLE = [
    pytest.param(setting, case, id=f"{setting}-{case.id}")
    for setting in SETTINGS
    for case in cases_of(setting.suite, setting.door)
    if case.stable is not Stable.SEQUENCE
]


@pytest.fixture(scope="module")
def door(
    request: pytest.FixtureRequest, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """A running server for the setting that the test is for."""
    setting: Setting = request.param
    folder = tmp_path_factory.mktemp(str(setting))
    config = folder / "models.config"
    models = setting.suite.models or model_dir
    config.write_text(setting.suite.config.read_text().replace("${MODELS}", str(models)))
    with DOORS[setting.door](config, folder) as running:
        yield running


@pytest.mark.parametrize(("door", "case"), SINGLE, indirect=["door"], scope="module")
def test_answers_as_recorded(door: Door, case: Case) -> None:
    assert difference(case, send(door, case)) is None


@pytest.mark.parametrize(
    ("door", "setting"),
    [(setting, setting) for setting in SETTINGS],
    indirect=["door"],
    ids=map(str, SETTINGS),
    scope="module",
)
def test_a_stateful_model_remembers_from_call_to_call(door: Door, setting: Setting) -> None:
    sequence = [c for c in cases_of(setting.suite, setting.door) if c.stable is Stable.SEQUENCE]
    assert sequence
    for case in sequence:
        assert difference(case, send(door, case)) is None, case.id
