"""One call of a model, cut into steps, so that many calls can take each step together."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import Code, ServingError, error_json
from ..wire import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from .model_run import ModelRun
    from .pace import Pace

log = logging.getLogger(__name__)


class Call(ABC):
    """What a caller wants of a model.

    The steps are taken once each and in their order, :meth:`close` whatever became of the others.
    They may be taken in any thread, one at a time, and raise ServingError for the caller.

    Attributes:
        model, pace, respond, response, run, seconds, timeout_s, withdraw: Notes of those who take
            the steps.
    """

    __slots__ = (
        "model", "pace", "respond", "response", "run", "seconds", "timeout_s", "withdraw"
    )  # fmt: skip

    model: str
    pace: Pace
    respond: Callable[[Response], None]
    response: Response | None
    run: ModelRun
    seconds: float
    timeout_s: float
    withdraw: Callable[[], bool] | None

    @abstractmethod
    def read(self) -> ModelRun:
        """Understand the request: what is to be run, and on what."""

    @abstractmethod
    def answer(self, run: ModelRun) -> Response:
        """Write down what came out of the run."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what the call holds; does nothing where there is nothing."""


def conclude(call: Call, error: Exception | None) -> Response:
    """The answer of a call that has been run, or has failed with ``error``; the call is closed."""
    try:
        if error is not None:
            raise error
        response = call.answer(call.run)
    except Exception as failed:  # noqa: BLE001 - whatever it is, the caller is told
        response = failure(failed)
    call.close()
    return response


def failure(error: Exception) -> Response:
    """The answer that tells of an error, which is logged where nobody foresaw it."""
    if not isinstance(error, ServingError):
        log.error("A call failed in an unforeseen way", exc_info=error)
        error = ServingError(Code.INTERNAL, f"{type(error).__name__}: {error}")
    return error_response(error)


@dataclass(slots=True)
class Refusal(Response):
    """An answer that tells an error, whose code the status alone does not tell."""

    code: Code = Code.UNKNOWN


def error_response(error: ServingError) -> Refusal:
    """A refusal as the answer that tells of it."""
    return Refusal(error.http_status, error_json(error.message), code=error.code)
