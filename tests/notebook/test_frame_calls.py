"""Predictions of DataFrames: in pieces, on their index, and never lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_double import ModelDouble, Received, Scripted, signature

from jupyter_tfserve.errors import invalid_argument
from jupyter_tfserve.notebook.async_client import AsyncClient
from jupyter_tfserve.notebook.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)

if TYPE_CHECKING:
    from jupyter_tfserve.notebook.client import Client
    from jupyter_tfserve.notebook.partial import PartialResult

ROWS = 5000
FRAME = pd.DataFrame(
    {"a": np.arange(ROWS, dtype=np.float32), "b": np.float32(1)},
    index=[f"r{row}" for row in range(ROWS)],
)
SMALL = {"chunk_bytes": 10_000, "progress": False}


@pytest.fixture(autouse=True)
def sums(double: ModelDouble) -> ModelDouble:
    """A model ``m`` that adds up the columns, in an output for each of their shapes."""
    outputs = {
        "sum": ("float", (-1, 1)),
        "pair": ("float", (-1, 2)),
        "cube": ("float", (-1, 1, 2)),
        "text": ("string", (-1,)),
    }

    def add(x: Any) -> dict[str, Any]:
        return {
            "sum": x.sum(axis=1, keepdims=True),
            "pair": x,
            "cube": x[:, np.newaxis],
            "text": np.array([b"%d" % row for row in x[:, 0]], object),
        }

    double.serve("m", signature({"x": ("float", (-1, 2))}, outputs), add)
    double.serve(
        "m",
        signature({"x": ("float", (-1, -1))}, {"y": ("float", (-1,))}, key="one"),
        lambda x: {"y": x.sum(axis=1)},
    )
    return double


def rows_of(request: Received) -> list[list[float]]:
    return request.json.get("instances") or request.json["inputs"]


def test_the_answer_is_laid_out_by_the_signature(client: Client) -> None:
    answer = client.predict("m", FRAME[:3])
    assert list(answer.columns) == ["cube", "pair_0", "pair_1", "sum", "text"]
    assert list(answer.index) == ["r0", "r1", "r2"]
    assert answer["sum"].tolist() == [1.0, 2.0, 3.0]
    assert answer["sum"].dtype == np.float32
    assert answer["pair_1"].tolist() == [1.0, 1.0, 1.0]
    assert answer["cube"].iloc[1].tolist() == [[1.0, 1.0]]
    assert answer["text"].tolist() == ["0", "1", "2"]
    assert list(client.predict("m", FRAME[:3], outputs="sum").columns) == ["sum"]
    assert list(client.predict("m", FRAME[:3], outputs=["text", "pair"]).columns) == [
        "pair_0",
        "pair_1",
        "text",
    ]
    with pytest.raises(InvalidArgumentError, match="no output 'smu'"):
        client.predict("m", FRAME, outputs=["smu"])


def test_two_outputs_never_share_a_column(double: ModelDouble, client: Client) -> None:
    outputs = {"a": ("float", (-1, 2)), "a_1": ("float", (-1,))}
    double.serve(
        "n",
        signature({"x": ("float", (-1, 2))}, outputs),
        lambda x: {"a": x, "a_1": x[:, 0]},
    )
    answer = client.predict("n", FRAME[:2])
    assert list(answer.columns) == ["a", "a_1"]
    assert answer["a"].iloc[1].tolist() == [1.0, 1.0]


def test_no_rows_give_the_same_columns(double: ModelDouble, client: Client) -> None:
    answer = client.predict("m", FRAME[:0])
    assert list(answer.columns) == ["cube", "pair_0", "pair_1", "sum", "text"]
    assert len(answer) == 0
    assert double.posts() == []


def test_any_index_is_kept(client: Client) -> None:
    for index in (
        pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["k", "n"]),
        pd.Index([1, 1, 2, 2]),
        pd.date_range("2026-01-01", periods=4),
    ):
        frame = FRAME[:4].set_axis(index)
        assert client.predict("m", frame, outputs="sum").index.equals(index)


def test_many_rows_go_in_pieces_of_about_the_size_asked_for(
    double: ModelDouble, client: Client
) -> None:
    answer = client.predict("m", FRAME, outputs="sum", **SMALL)
    assert answer["sum"].tolist() == (FRAME["a"] + 1).tolist()
    assert answer.index.equals(FRAME.index)
    sizes = [len(request.body) for request in double.posts()]
    assert len(sizes) > 5
    assert max(sizes) < 20_000


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.integers(0, 700), chunk=st.integers(50, 9000))
def test_pieces_of_any_size_join_to_the_same(client: Client, rows: int, chunk: int) -> None:
    answer = client.predict("m", FRAME[:rows], signature="one", chunk_bytes=chunk, progress=False)
    assert answer["y"].tolist() == (FRAME["a"][:rows] + 1).tolist()


def test_nothing_is_sent_where_a_late_row_does_not_fit(double: ModelDouble, client: Client) -> None:
    """O27: refused before sending, with column and row."""
    frame = FRAME.astype(object)
    frame.iloc[4321, 1] = None
    with pytest.raises(InvalidArgumentError) as refused:
        client.predict("m", frame, **SMALL)
    assert refused.value.where == "column 'b', row 4321 (index 'r4321')"
    assert double.posts() == []


def test_rows_to_drop_leave_the_answer_too(client: Client) -> None:
    frame = FRAME.copy()
    frame.iloc[::2, 0] = np.nan
    answer = client.predict("m", frame, outputs="sum", missing="drop", **SMALL)
    assert answer.index.equals(FRAME.index[1::2])
    assert answer["sum"].tolist() == (FRAME["a"][1::2] + 1).tolist()
    filled = client.predict("m", frame[:2], outputs="sum", missing={"a": 5})
    assert filled["sum"].tolist() == [6.0, 2.0]


def failing_at(double: ModelDouble, number: int, scripted: Scripted) -> None:
    """Let the call of that number, from 1, have another answer."""
    scripted.when = lambda request: request.method == "POST" and len(double.posts()) == number
    double.script.append(scripted)


@pytest.fixture
def broken(double: ModelDouble, client: Client) -> PartialResult:
    """What is left of a call whose fourth piece failed."""
    failing_at(double, 4, Scripted(500, b'{"error": "out of memory"}'))
    with pytest.raises(InternalError, match="out of memory") as error:
        client.predict("m", FRAME, outputs="sum", **SMALL)
    partial = error.value.partial
    assert partial is not None
    rows = partial.rows
    note = "".join(error.value.__notes__)
    assert f"Rows {rows.start} to {rows.stop - 1} of {ROWS} were under way" in note
    return partial


def test_what_was_done_before_an_error_is_kept(broken: PartialResult) -> None:
    done = broken.rows.start
    assert 0 < done < broken.rows.stop < ROWS
    assert broken.frame.index.equals(FRAME.index[:done])
    assert broken.frame["sum"].tolist() == (FRAME["a"][:done] + 1).tolist()


def test_it_goes_on_from_there(double: ModelDouble, broken: PartialResult) -> None:
    before = len(double.posts())
    answer = broken.resume()
    assert answer["sum"].tolist() == (FRAME["a"] + 1).tolist()
    again = double.posts()[before]
    assert rows_of(again)[0][0] == broken.rows.start


def test_an_error_in_one_piece_says_nothing_of_pieces(double: ModelDouble, client: Client) -> None:
    double.script.append(Scripted(500, b'{"error": "no"}'))
    with pytest.raises(InternalError) as error:
        client.predict("m", FRAME[:3])
    assert error.value.partial is None


def test_an_interrupt_keeps_what_is_done(double: ModelDouble, client: Client) -> None:
    calls = 0

    def interrupted(x: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == 3:
            stop.set()
        return {"y": x.sum(axis=1)}

    stop = threading.Event()
    double.serve("m", signature({"x": ("float", (-1, 2))}, {"y": ("float", (-1,))}), interrupted)
    with pytest.raises(KeyboardInterrupt) as error:
        client.predict("m", FRAME, stop=stop, **SMALL)
    partial = error.value.partial  # type: ignore[attr-defined]
    assert calls == 3
    assert len(partial.frame) == partial.rows.start > 0
    stop.clear()
    assert partial.resume()["y"].tolist() == (FRAME["a"] + 1).tolist()


def test_a_real_interrupt_in_the_middle_of_a_piece(double: ModelDouble, client: Client) -> None:
    released = threading.Event()

    def interrupting(x: Any) -> dict[str, Any]:
        if len(double.posts()) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            assert released.wait(60)
        return {"y": x.sum(axis=1)}

    double.serve("m", signature({"x": ("float", (-1, 2))}, {"y": ("float", (-1,))}), interrupting)
    with pytest.raises(KeyboardInterrupt) as error:
        client.predict("m", FRAME, **SMALL)
    released.set()
    partial = error.value.partial  # type: ignore[attr-defined]
    assert partial.rows.start == 2 * len(partial.rows)
    assert partial.resume()["y"].tolist() == (FRAME["a"] + 1).tolist()


def test_a_frame_for_a_signature_that_has_changed_is_taken(
    double: ModelDouble, client: Client
) -> None:
    client.predict("m", FRAME[:2])
    info = signature({"a": ("int64", (-1,))}, {"y": ("int64", (-1,))})
    double.serve("m", info, lambda a: {"y": a})
    assert client.predict("m", FRAME)["y"].tolist() == list(range(ROWS))
    double.serve(
        "m", signature({"b": ("float", (-1,))}, {"y": ("float", (-1,))}), lambda b: {"y": b}
    )
    assert client.predict("m", FRAME[:2])["y"].tolist() == [1.0, 1.0]
    with pytest.raises(InvalidArgumentError, match="takes one column, and the frame has 2"):
        client.predict("m", FRAME.set_axis(["p", "q"], axis=1))


def test_a_body_that_is_too_large_is_made_smaller(double: ModelDouble, client: Client) -> None:
    double.script += [Scripted(413, b'{"error": "too large"}')] * 2
    answer = client.predict("m", FRAME, outputs="sum", progress=False)
    assert answer["sum"].tolist() == (FRAME["a"] + 1).tolist()
    sizes = [len(rows_of(request)) for request in double.posts()]
    assert sizes[:4] == [5000, 2500, 1250, 1250]
    double.script += [Scripted(413, b'{"error": "too large"}')]
    with pytest.raises(ResourceExhaustedError):
        client.predict("m", FRAME[:1])


def test_all_pieces_go_to_one_version(double: ModelDouble, client: Client) -> None:
    client.predict("m", FRAME, **SMALL)
    assert {request.path for request in double.posts()} == {"/v1/models/m/versions/1:predict"}
    double.version = 2
    answer = client.predict("m", FRAME, outputs="sum", **SMALL)
    assert len(answer) == ROWS
    assert double.posts()[-1].path == "/v1/models/m/versions/2:predict"


def test_a_version_that_goes_meanwhile_is_not_mixed_with_the_next(
    double: ModelDouble, client: Client
) -> None:
    def leave(x: Any) -> dict[str, Any]:
        double.version = 2
        return {"y": x.sum(axis=1)}

    double.serve("m", signature({"x": ("float", (-1, 2))}, {"y": ("float", (-1,))}), leave)
    with pytest.raises(NotFoundError) as error:
        client.predict("m", FRAME, **SMALL)
    assert error.value.partial is not None
    assert error.value.partial.rows.start > 0


def test_outputs_without_a_row_each_are_refused_with_the_way_out(
    double: ModelDouble, client: Client
) -> None:
    """O06 and O19: on an index only rows can stand; an output can be left out."""
    outputs = {"y": ("float", (-1,)), "total": ("float", ())}
    double.serve(
        "n",
        signature({"x": ("float", (-1, 2))}, outputs),
        lambda x: {"y": x[:, 0], "total": x.sum()},
    )
    with pytest.raises(InvalidArgumentError, match="not a row for each of the 3 sent") as error:
        client.predict("n", FRAME[:3])
    assert "outputs=[...]" in error.value.hint
    assert client.predict("n", FRAME[:3], outputs=["y"])["y"].tolist() == [0.0, 1.0, 2.0]


def test_a_refusal_of_the_server_is_told_with_the_rows(double: ModelDouble, client: Client) -> None:
    def fail(x: Any) -> Any:
        if x[0, 0] > 1000:
            raise invalid_argument("not finite : Tensor had NaN values")
        return {"y": x.sum(axis=1)}

    double.serve("m", signature({"x": ("float", (-1, 2))}, {"y": ("float", (-1,))}), fail)
    with pytest.raises(InvalidArgumentError, match="not finite") as error:
        client.predict("m", FRAME, **SMALL)
    assert error.value.partial is not None
    assert any("were under way" in line for line in error.value._render_traceback_())


def test_a_series_is_a_column_or_a_row(double: ModelDouble, client: Client) -> None:
    """O28: a row taken by iloc, where pandas has made floats of integers."""
    info = signature({"k": ("int64", (-1,)), "v": ("float", (-1,))}, {"y": ("float", (-1,))})
    double.serve("pair", info, lambda k, v: {"y": k + v})
    frame = pd.DataFrame({"k": [3, 4], "v": [0.5, 0.25]}, index=["p", "q"])
    answer = client.predict("pair", frame.iloc[1])
    assert answer["y"].tolist() == [4.25]
    assert list(answer.index) == ["q"]
    assert client.predict("pair", dict(frame.iloc[0])).tolist() == [3.5]
    double.serve(
        "one", signature({"x": ("float", (-1,))}, {"y": ("float", (-1,))}), lambda x: {"y": x}
    )
    assert client.predict("one", frame["v"])["y"].tolist() == [0.5, 0.25]
    assert client.predict("one", frame["v"].rename(None)).index.tolist() == ["p", "q"]


def test_scores_of_rows(double: ModelDouble, client: Client) -> None:
    info = signature({"inputs": ("string", (-1,))}, {}, "c", "classify")

    def classify(examples: list[bytes]) -> dict[str, Any]:
        n = len(examples)
        return {
            "classes": np.array([[b"cat", b"dog"]] * n, object),
            "scores": np.arange(2 * n, dtype=np.float32).reshape(n, 2),
        }

    double.serve("s", info, classify)
    regress = signature({"inputs": ("string", (-1,))}, {}, "r", "regress")
    double.serve("s", regress, lambda examples: {"outputs": np.zeros(len(examples), np.float32)})
    frame = pd.DataFrame({"age": [1.0, 2.0], "tags": [["a"], []]}, index=["p", "q"])
    answer = client.classify("s", frame)
    assert list(answer.columns) == ["label_0", "score_0", "label_1", "score_1"]
    assert answer.loc["q"].tolist() == ["cat", 2.0, "dog", 3.0]
    values = client.regress("s", frame)
    assert (values.name, list(values.index)) == ("value", ["p", "q"])
    assert double.posts()[-1].json["examples"][0] == {"age": 1.0, "tags": ["a"]}
    gaps = frame.assign(age=pd.array([1, None], "Int64"))
    with pytest.raises(InvalidArgumentError, match="column 'age', row 1"):
        client.regress("s", gaps)
    assert list(client.regress("s", gaps, missing="drop").index) == ["p"]
    client.regress("s", gaps, missing=5)
    assert double.posts()[-1].json["examples"][1]["age"] == 5


class Clock:
    """Time that goes on by a second at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_long_call_shows_how_far_it_is(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client.predict("m", FRAME[:10])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("jupyter_tfserve.notebook.progress.time.monotonic", Clock())
    client.predict("m", FRAME, chunk_bytes=10_000)
    assert "row" in capsys.readouterr().err
    client.predict("m", FRAME, chunk_bytes=10_000, progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    client.predict("m", FRAME, chunk_bytes=10_000)
    assert "5000 of 5000 rows, 100 %\n" in capsys.readouterr().err


async def test_the_async_client_does_the_same(double: ModelDouble) -> None:
    async with AsyncClient(double.url, patience=5) as client:
        answer = await client.predict("m", FRAME, outputs="sum", **SMALL)
        assert answer["sum"].tolist() == (FRAME["a"] + 1).tolist()
