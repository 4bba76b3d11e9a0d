"""Warm-up: recorded requests are replayed to a version before anybody can call it.

The rules and texts are TensorFlow Serving's (``servables/tensorflow/saved_model_warmup_util.cc``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import Code, ServingError, invalid_argument
from .core.loader import Loader
from .proto_inference import Task, multi_inference, predict_run, score_task
from .servables.records import read_records

if TYPE_CHECKING:
    from .servables.base import Servable

log = logging.getLogger(__name__)

WARMUP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
"""Where a version's directory has the requests: a TFRecord file of ``PredictionLog`` messages."""
MAX_RECORDS = 1000


@dataclass(frozen=True, slots=True)
class Warmup:
    """What became of one warm-up.

    Attributes:
        path: The version's directory.
        records: How many were replayed.
        seconds: How long it took.
        error: What it failed with, if it did.
    """

    path: str
    records: int
    seconds: float
    error: ServingError | None = None


WarmedUp: TypeAlias = Callable[[Warmup], None]


class WarmingLoader(Loader["Servable"]):
    """Another loader, whose version is warmed up before it counts as loaded.

    Args:
        loader: what loads.
        path: the version's directory.
        iterations: how often each request is replayed.
        warmed_up: told of every warm-up, in the load thread.
    """

    def __init__(
        self,
        loader: Loader[Servable],
        path: str,
        iterations: int = 1,
        warmed_up: WarmedUp = lambda _warmup: None,
    ) -> None:
        self._loader = loader
        self._path = path
        self._iterations = iterations
        self._warmed_up = warmed_up

    def load(self) -> Servable:
        """Load and warm up; see :meth:`Loader.load`.

        Raises:
            ServingError: the request's own error, which names the record; INVALID_ARGUMENT,
                DATA_LOSS or UNIMPLEMENTED for a file that is refused.
        """
        servable = self._loader.load()
        try:
            self._warm_up(servable)
        except BaseException:
            self._loader.unload()
            raise
        return servable

    def unload(self) -> None:
        """Unload it."""
        self._loader.unload()

    def _warm_up(self, servable: Servable) -> None:
        file = Path(self._path, WARMUP_FILE)
        if not file.is_file():
            _tell_lookalikes(file)
            return
        began = time.perf_counter()
        replay = _Replay(servable, str(file), self._iterations)
        error = None
        try:
            replay.run()
        except ServingError as failed:
            error = failed
            raise
        finally:
            seconds = time.perf_counter() - began
            servable.warmup = Warmup(self._path, replay.records, seconds, error)
            self._warmed_up(servable.warmup)
        log.info("Replayed %d warm-up records of %s in %.3f s", replay.records, file, seconds)


class _Replay:
    """The requests of one file, run in their order."""

    def __init__(self, servable: Servable, path: str, iterations: int) -> None:
        self._servable = servable
        self._path = path
        self._iterations = iterations
        self.records = 0

    def run(self) -> None:
        for record in self._read():
            message = self._parse(record)
            for _ in range(self._iterations):
                self._replay(message)
            self.records += 1
            if self.records > MAX_RECORDS:
                raise invalid_argument(
                    f"Number of warmup records exceeds the maximum ({MAX_RECORDS}) at {self._path}"
                )

    def _read(self) -> Iterator[bytes]:
        try:
            yield from read_records(self._path)
        except ServingError as error:
            if error.code is not Code.DATA_LOSS:
                raise
            text = f"{error.message}. Please verify your warmup data is in TFRecord format."
            raise ServingError(Code.DATA_LOSS, text) from error

    def _parse(self, record: bytes) -> Any:
        from google.protobuf.message import DecodeError
        from tensorflow_serving.apis import prediction_log_pb2

        try:
            return prediction_log_pb2.PredictionLog.FromString(record)
        except DecodeError as error:
            quoted = record.decode("utf-8", "surrogateescape")
            raise invalid_argument(
                f"Failed to parse warmup record: {quoted} from {self._path}"
            ) from error

    def _replay(self, message: Any) -> None:
        try:
            replay(self._servable, message)
        except ServingError as error:
            # The text is the request's own; which request it was, only this place knows.
            where = f"(warm-up record {self.records + 1} of {self._path})"
            raise ServingError(error.code, f"{error.message} {where}") from error


def replay(servable: Servable, message: Any) -> None:
    """Run the request of one ``PredictionLog``; a message without one is passed over.

    Raises:
        ServingError: as the call would; UNIMPLEMENTED for a kind that is not replayed.
    """
    match message.WhichOneof("log_type"):
        case "predict_log":
            predict_run(servable, message.predict_log.request).run()
        case "classify_log" | "regress_log" as kind:
            request = getattr(message, kind).request
            _score(score_task(servable, request, classify=kind == "classify_log"))
        case "multi_inference_log":
            for task in multi_inference(servable, message.multi_inference_log.request):
                _score(task)
        case None:
            pass
        case kind:
            number = message.DESCRIPTOR.fields_by_name[kind].number
            raise ServingError(Code.UNIMPLEMENTED, f"Unsupported log_type for warmup: {number}")


def _score(task: Task) -> None:
    task.run.run()
    task.result()


def _tell_lookalikes(file: Path) -> None:
    """A misspelt name has no effect in TensorFlow Serving, which puzzles whoever made it."""
    folder = file.parent
    if not folder.is_dir():
        return
    for other in folder.iterdir():
        if "warmup" in other.name.lower().replace("-", "").replace("_", ""):
            log.warning(
                "%s looks like a warm-up file, but is not read: it has to be called %s",
                other,
                file.name,
            )
