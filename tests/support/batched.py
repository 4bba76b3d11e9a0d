"""A model that tells what it was asked to run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jupyter_tfserve.errors import ServingError, invalid_argument
from jupyter_tfserve.pool.model_run import ModelRun
from jupyter_tfserve.pool.servables.base import Servable
from jupyter_tfserve.servable import SignatureInfo, TensorInfo

FREE = TensorInfo("float", None)


class Doubling(Servable):
    """Doubles its input, and refuses the number 13.

    Attributes:
        batches: The inputs of each run.
        before: Called before each run.
    """

    signatures: Mapping[str, SignatureInfo] = {
        "s": SignatureInfo("s", {"x": FREE}, {"y": FREE}),
        "scalar": SignatureInfo("scalar", {"x": TensorInfo("float", ())}, {"y": FREE}),
    }

    def __init__(self) -> None:
        self.batches: list[list[object]] = []
        self.before: Callable[[], None] = lambda: None

    def call(
        self,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray]:
        self.before()
        x = inputs["x"]
        self.batches.append(x.tolist())
        if (x == 13).any():
            raise invalid_argument("no thirteens")
        return {"y": self.compute(x)}

    def compute(self, x: np.ndarray) -> np.ndarray:
        return x * 2

    def debug_text(self, signature: str) -> str:
        return ""

    def close(self) -> None:
        pass

    def prove(self) -> None:
        """Let its outputs be known for rows, as two runs would."""
        for rows in (1, 2):
            self.batching.has_a_row_for_each("s", None, {"y": np.zeros(rows)}, rows)

    def run_of(self, *rows: object, signature: str = "s") -> ModelRun:
        x = np.array(rows, np.float32)
        return ModelRun(self, self.signatures[signature], {"x": x})


class Caller:
    """Waits for the end of one run."""

    def __init__(self, run: ModelRun) -> None:
        self.run = run
        self._ended = threading.Event()

    def __call__(self, error: Exception | None) -> None:
        assert not self._ended.is_set()
        self.error = error
        self._ended.set()

    @property
    def outcome(self) -> object:
        """The output, or the text of the error."""
        assert self._ended.wait(20)
        if self.error is not None:
            assert isinstance(self.error, ServingError)
            return self.error.message
        return self.run.outputs["y"].tolist()
