"""Recording real calls, to be replayed when the model is next loaded; see :mod:`.warmup`."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Code, ServingError, invalid_argument
from ..routes import Api
from ..servable import ModelSpec
from .call import Call
from .servables.records import write_records
from .tensor_proto import fill
from .warmup import MAX_RECORDS, WARMUP_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codec.deep import Tensor
    from ..servable import ServableId
    from ..wire import Response
    from .core.server_core import ServerCore
    from .model_run import ModelRun
    from .servables.base import Servable

log = logging.getLogger(__name__)

DEFAULT_LIMIT = 100
_MAX_BYTES = 256 << 20
"""A recording ends by itself where it becomes larger than this."""


class Recorder:
    """Keeps one recording for each model; used from any thread."""

    def __init__(self, core: ServerCore[Servable]) -> None:
        self._core = core
        self._recordings: dict[str, _Recording] = {}

    def watch(self, api: Api, name: str, call: Call) -> Call:
        """The call, made to be recorded where its model is; every call passes here."""
        recording = self._recordings.get(name)
        if recording is None or not recording.running:
            return call
        return _RecordedCall(call, recording, api)

    def start(
        self, name: str, version: int | None = None, limit: int = DEFAULT_LIMIT
    ) -> dict[str, Any]:
        """Record the next calls of one version that succeed; what was recorded before is dropped.

        Args:
            name: the model's.
            version: its version; None for the latest that is available now.
            limit: how many calls to record, at most 1000.

        Returns:
            The state of the recording, as :meth:`state` tells it.

        Raises:
            ServingError: NOT_FOUND where the version is not available, INVALID_ARGUMENT for a limit
                that a warm-up file cannot have.
        """
        if not 1 <= limit <= MAX_RECORDS:
            raise invalid_argument(f"A recording holds 1 to {MAX_RECORDS} calls; got {limit}")
        with self._core.handle(ModelSpec(name, version)) as handle:
            recording = _Recording(handle.id, handle.servable, limit)
        self._recordings[name] = recording
        return recording.describe()

    def stop(self, name: str) -> dict[str, Any]:
        """Record no more; what was recorded is kept to be saved.

        Raises:
            ServingError: NOT_FOUND where there is no recording.
        """
        recording = self._get(name)
        recording.running = False
        return recording.describe()

    def state(self, name: str) -> dict[str, Any]:
        """What is recorded, and whether it still goes on.

        Raises:
            ServingError: NOT_FOUND where there is no recording.
        """
        return self._get(name).describe()

    def save(self, name: str, path: str | None = None, *, replace: bool = False) -> dict[str, Any]:
        """Stop, and write the file that the version is warmed up from at its next load.

        Args:
            name: the model's.
            path: where to write instead of into the version's own directory.
            replace: whether a file that is there may go.

        Raises:
            ServingError: NOT_FOUND where there is no recording; FAILED_PRECONDITION where nothing
                was recorded, or the version has no directory; ALREADY_EXISTS; PERMISSION_DENIED
                where the file cannot be written.
        """
        recording = self._get(name)
        recording.running = False
        recording.save(path, replace=replace)
        return recording.describe()

    def _get(self, name: str) -> _Recording:
        recording = self._recordings.get(name)
        if recording is None:
            raise ServingError(Code.NOT_FOUND, f"Model {name} is not being recorded")
        return recording


class _Recording:
    """The calls of one version, as serialized ``PredictionLog`` messages."""

    def __init__(self, servable_id: ServableId, servable: Servable, limit: int) -> None:
        self._id = servable_id
        self._servable = weakref.ref(servable)  # it may be unloaded meanwhile
        self._path = servable.path
        self._limit = limit
        self._lock = threading.Lock()
        self._records: list[bytes] = []
        self._size = 0
        self._file: str | None = None
        self.running = True

    def is_of(self, servable: Servable | None) -> bool:
        """Whether it records calls of this servable."""
        return servable is not None and self._servable() is servable

    def add(self, api: Api, signature: str, inputs: Mapping[str, Tensor]) -> None:
        """Record a call that has succeeded."""
        record = _log(api, self._id.name, signature, inputs).SerializeToString()
        with self._lock:
            if not self.running:
                return
            self._records.append(record)
            self._size += len(record)
            self.running = len(self._records) < self._limit and self._size < _MAX_BYTES

    def describe(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "model": self._id.name,
            "version": self._id.version,
            "recording": self.running,
            "recorded": len(self._records),
            "limit": self._limit,
            "bytes": self._size,
            "file": self._file,
        }

    def save(self, path: str | None, *, replace: bool) -> None:
        with self._lock:
            records = list(self._records)
        if not records:
            raise ServingError(
                Code.FAILED_PRECONDITION,
                f"No call of {self._id} has succeeded since the recording began",
            )
        file = Path(path) if path is not None else self._own_file()
        if file.exists() and not replace:
            raise ServingError(
                Code.ALREADY_EXISTS, f"{file} is there already; ask to replace it, or name another"
            )
        try:
            if path is None:
                file.parent.mkdir(exist_ok=True)
            _write(file, records)
        except OSError as error:
            raise ServingError(
                Code.PERMISSION_DENIED, f"{file} cannot be written: {error.strerror}"
            ) from error
        self._file = str(file)

    def _own_file(self) -> Path:
        if self._path is None or not Path(self._path).is_dir():
            raise ServingError(
                Code.FAILED_PRECONDITION,
                f"{self._id} has no directory that a warm-up file could lie in; name a path",
            )
        return Path(self._path, WARMUP_FILE)


class _RecordedCall(Call):
    """A call that is recorded once it is answered."""

    __slots__ = ("_api", "_call", "_inputs", "_recording", "_signature")

    def __init__(self, call: Call, recording: _Recording, api: Api) -> None:
        self._call = call
        self._recording = recording
        self._api = api
        self._inputs: Mapping[str, Tensor] | None = None

    def read(self) -> ModelRun:
        """As the call does."""
        run = self._call.read()
        if self._recording.is_of(run.servable):
            self._inputs, self._signature = run.inputs, run.signature.key
        return run

    def answer(self, run: ModelRun) -> Response:
        """As the call does."""
        response = self._call.answer(run)
        if self._inputs is not None:
            try:
                self._recording.add(self._api, self._signature, self._inputs)
            except Exception:
                # Such as a message beyond protobuf's 2 GiB: the caller has nothing to do with it.
                log.exception("A call could not be recorded")
        return response

    def close(self) -> None:
        """As the call does."""
        self._inputs = None
        self._call.close()


def _log(api: Api, name: str, signature: str, inputs: Mapping[str, Tensor]) -> Any:
    from tensorflow_serving.apis import prediction_log_pb2

    message = prediction_log_pb2.PredictionLog()
    logged: Any = {
        Api.PREDICT: message.predict_log,
        Api.CLASSIFY: message.classify_log,
        Api.REGRESS: message.regress_log,
    }[api]
    request = logged.request
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    if api is Api.PREDICT:
        for alias, tensor in inputs.items():
            fill(request.inputs[alias], tensor)
    else:
        for serialized in inputs["inputs"]:  # type: ignore[union-attr]  # a vector of examples
            request.input.example_list.examples.add().ParseFromString(serialized)
    return message


def _write(file: Path, records: list[bytes]) -> None:
    """Write the file beside its place and move it there: nobody ever reads half of it."""
    scratch = file.with_name(f".tfserve-{secrets.token_hex(8)}")
    scratch.touch(exist_ok=False)  # what cannot be is refused here, in the system's words
    try:
        write_records(str(scratch), records)
        scratch.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
