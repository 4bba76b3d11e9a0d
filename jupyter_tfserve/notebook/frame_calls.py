"""Calls with a DataFrame: rows go in pieces, answers come back on its index."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .answer import read_classify, read_regress, without_rows
from .columns import ERROR
from .errors import InvalidArgumentError
from .frame_answer import chosen_outputs, to_frame
from .frame_examples import example_columns, rows_of_columns
from .frames import Plan, without_missing
from .model_call import ModelCall
from .partial import CHUNK_BYTES, Run
from .request import context_text, predict_body, scored_body

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from ..servable import SignatureInfo
    from .casting import Array


def predict_frame(
    call: ModelCall,
    data: pd.DataFrame | pd.Series,
    *,
    columns: Mapping[str, Any] | Sequence[Any] | None = None,
    missing: Any = ERROR,
    outputs: Sequence[str] | str | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    progress: bool = True,
    stop: threading.Event | None = None,
) -> pd.DataFrame:
    """What a model predicts for the rows of a frame.

    Rows go in pieces of about ``chunk_bytes``, all of them to the same version, after all of them
    were checked. Memory beyond the frame and the answer is that of one piece.

    Args:
        call: The model.
        data: The rows. A Series is one column; or one row, where its labels are the inputs.
        columns: Which columns go where, if not by name and order; see
            :mod:`~jupyter_tfserve.notebook.frames`.
        missing: What becomes of missing values: ``"error"``, ``"drop"`` the row, or the value that
            takes its place; or a dict of these by column.
        outputs: The outputs to return; by default all.
        chunk_bytes: Size of a request's body.
        progress: Whether a bar shows how far it is, once it takes over half a second.
        stop: Ends the call before the next piece, as an interrupt does.

    Returns:
        A DataFrame on the index of the rows, laid out as
        :mod:`~jupyter_tfserve.notebook.frame_answer` says.

    Raises:
        InvalidArgumentError: where the frame does not fit the signature, naming column and row.
        TFServeError: with the server's reason; what was done by then is its ``partial``.
    """
    wanted = [outputs] if isinstance(outputs, str) else outputs

    def attempt(signature: SignatureInfo) -> Run:
        frame = _as_frame(data, signature)
        work = _Predict(call, frame, signature, columns=columns, missing=missing, outputs=wanted)
        run = Run(work, chunk_bytes=chunk_bytes, progress=progress, stop=stop)
        run.prepare()
        return run

    run, _ = call.with_signature("predict", attempt)
    answer: pd.DataFrame = run.finish()
    return answer


class _Predict:
    """The rows of a frame to predict; see :class:`~.partial.RowCall`."""

    def __init__(
        self,
        call: ModelCall,
        frame: pd.DataFrame,
        signature: SignatureInfo,
        *,
        columns: Any,
        missing: Any,
        outputs: Sequence[str] | None,
    ) -> None:
        self._call = call
        self._columns = columns
        self._missing = missing
        self._outputs = outputs
        self._frame = frame
        self._use(signature)
        self._frame = without_missing(frame, self._plan.positions(), missing)
        self.rows = len(self._frame)
        self._is_pinned = False

    def _use(self, signature: SignatureInfo) -> None:
        for name in self._outputs or ():
            if name not in signature.outputs:
                known = ", ".join(signature.outputs)
                raise InvalidArgumentError(f"There is no output {name!r}", f"There are: {known}.")
        self._signature = signature
        self._plan = Plan(self._frame, signature, self._columns, self._missing)

    def _tensors(self, start: int, stop: int) -> dict[str, Array]:
        return self._plan.tensors(self._frame, start, stop)

    def check(self, start: int, stop: int) -> None:
        """Convert the rows, and let go of them; the version that gets them is settled first."""
        if not self._is_pinned:
            self._pin()
        self._tensors(start, stop)

    def _pin(self) -> None:
        """Stay with the version that is the newest, or has the label, as the call begins."""
        self._call.cache.forget(self._call.spec)
        metadata, _ = self._call.cache.get(self._call.spec)
        spec = replace(self._call.spec, version=metadata.version, label=None)
        self._call = ModelCall(self._call.transport, self._call.cache, spec, self._call.key)
        self._use(metadata.signature(self._call.key))
        self._is_pinned = True

    def size(self, start: int, stop: int) -> int:
        return len(predict_body(self._tensors(start, stop), self._signature))

    def call(self, start: int, stop: int) -> dict[str, Array]:
        def make(signature: SignatureInfo) -> dict[str, Array]:
            if signature != self._signature:
                self._use(signature)
            return self._tensors(start, stop)

        outputs, signature = self._call.predict(make)
        return chosen_outputs(outputs, self._outputs, stop - start, signature)

    def assemble(self, pieces: list[dict[str, Array]], rows: int) -> pd.DataFrame:
        if not pieces:
            names = self._outputs or list(self._signature.outputs)
            return to_frame(_empty(names, self._signature), self._signature, self._frame.index[:0])
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        return to_frame(joined, self._signature, self._frame.index[:rows])


def _empty(names: Sequence[str], signature: SignatureInfo) -> dict[str, Array]:
    return {name: without_rows(signature.outputs[name]) for name in names}


def _as_frame(data: pd.DataFrame | pd.Series, signature: SignatureInfo) -> pd.DataFrame:
    if isinstance(data, pd.DataFrame):
        return data
    if all(name in data.index for name in signature.inputs):
        # One row: pandas has brought its values to one dtype, and the casts bring them back.
        return pd.DataFrame({name: [data[name]] for name in data.index}, index=[data.name])
    return data.to_frame(next(iter(signature.inputs)) if data.name is None else data.name)


def classify_frame(
    call: ModelCall, data: Any, context: Mapping[str, Any] | None, missing: Any
) -> pd.DataFrame:
    """The classes of the rows: columns ``label_0``, ``score_0``, ``label_1``, … on their index."""
    return _scored(_Scored(call, "classify", data, context, missing))


def regress_frame(
    call: ModelCall, data: Any, context: Mapping[str, Any] | None, missing: Any
) -> pd.Series:
    """One number for each row, a Series called ``value`` on their index."""
    return _scored(_Scored(call, "regress", data, context, missing))["value"]


def _scored(work: _Scored) -> pd.DataFrame:
    run = Run(work)
    run.prepare()
    frame: pd.DataFrame = run.finish()
    return frame


class _Scored:
    """The rows of a frame to classify or regress; see :class:`~.partial.RowCall`."""

    def __init__(self, call: ModelCall, verb: str, data: Any, context: Any, missing: Any) -> None:
        self._call = call
        self._verb = verb
        frame = data.to_frame() if isinstance(data, pd.Series) else data
        self._frame = without_missing(frame, list(range(frame.shape[1])), missing)
        self._missing = missing
        self._context = context_text(context)
        self.rows = len(self._frame)

    def _texts(self, start: int, stop: int) -> list[bytes]:
        rows = self._frame.iloc[start:stop]
        return rows_of_columns(example_columns(rows, self._missing, first_row=start))

    def check(self, start: int, stop: int) -> None:
        """Convert the rows, and let go of them."""
        self._texts(start, stop)

    def size(self, start: int, stop: int) -> int:
        return sum(map(len, self._texts(start, stop)))

    def call(self, start: int, stop: int) -> dict[str, Array]:
        texts = self._texts(start, stop)

        def attempt(signature: SignatureInfo) -> bytes:
            body = scored_body(texts, self._context, signature.key)
            return self._call.post(self._verb, body, signature)

        body, _ = self._call.with_signature(self._verb, attempt)
        if self._verb == "regress":
            return {"value": read_regress(body)}
        labels, scores = read_classify(body)
        return {
            f"{kind}_{at}": values[:, at]
            for at in range(labels.shape[1])
            for kind, values in (("label", labels), ("score", scores))
        }

    def assemble(self, pieces: list[dict[str, Array]], rows: int) -> pd.DataFrame:
        index = self._frame.index[:rows]
        if not pieces:
            return pd.DataFrame({"value": []} if self._verb == "regress" else {}, index=index)
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        return pd.DataFrame(joined, index=index)
