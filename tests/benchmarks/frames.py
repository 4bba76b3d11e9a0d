"""A large DataFrame to predictions and back: through the client, and as users write it by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import requests
from contenders import STANDALONE, standalone
from plan import Plan, say
from results import Results, RoundTrip
from works import SEED

from jupyter_tfserve import Client

MODEL = "column_sum"
NAME = "frame"
CLIENT, BY_HAND = "df.tfserve.predict", "requests, df.to_dict"
ROWS, COLUMNS = 100_000, 20
TITLE = f"DataFrame of {ROWS:,} rows × {COLUMNS} columns, {STANDALONE}"


def run(models: Path, scratch: Path, plan: Plan, results: Results) -> None:
    """Score the frame ``rounds`` times in both ways, by turns."""
    frame = _frame()
    expected = frame.to_numpy(np.float64).sum(axis=1)
    with standalone()(MODEL, models / MODEL, scratch / NAME) as (target,):
        client = Client(f"http://127.0.0.1:{target.port}")
        ways = {
            CLIENT: lambda: frame.tfserve.predict(MODEL, client=client)["sum"],
            BY_HAND: lambda: _by_hand(frame, f"http://127.0.0.1:{target.port}{target.predict}"),
        }
        trips = {name: RoundTrip(NAME, name) for name in ways}
        for number in range(1, plan.rounds + 1):
            say(f"{NAME}, round {number} of {plan.rounds}")
            for name, way in ways.items():
                trips[name].ms.append(_timed(way, expected))
    results.round_trips += trips.values()


def _frame() -> pd.DataFrame:
    values = np.random.default_rng(SEED).standard_normal((ROWS, COLUMNS), np.float32)
    return pd.DataFrame(values, columns=[f"c{number:02}" for number in range(COLUMNS)])


def _by_hand(frame: pd.DataFrame, url: str) -> pd.Series:
    answer = requests.post(url, json={"instances": frame.to_dict("records")}, timeout=600)
    answer.raise_for_status()
    return pd.Series(answer.json()["predictions"], index=frame.index)


def _timed(way: Callable[[], pd.Series], expected: np.ndarray) -> float:
    """Milliseconds that it takes.

    Raises:
        RuntimeError: the predictions are not those of the model.
    """
    start = time.perf_counter()
    predictions = way()
    ms = (time.perf_counter() - start) * 1000
    if not np.allclose(predictions, expected, atol=1e-4):
        raise RuntimeError("The predictions of the frame are wrong")
    return ms
