"""SavedModels of TensorFlow 1 and 2, run through a session as TensorFlow Serving runs them.

``tf.saved_model.load`` refuses models that TensorFlow Serving takes (graph shapes, reference
variables); the session loader takes them all.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow_serving.apis import get_model_metadata_pb2

from ...codec.deep import DeepTensor
from ...errors import Code, ServingError
from ...servable import SignatureInfo, TensorInfo
from ..memory import collect_and_give_back
from .base import Servable
from .deep_call import DeepCall
from .footprint import LoadMeter
from .proto_text import debug_text, to_json
from .repeatable import because_of, unrepeatable_operation
from .session_call import (
    SINGLE_THREADED_EXECUTOR,
    SessionCall,
    dtype_name,
    serving_error,
    session_config,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorflow.core.protobuf import meta_graph_pb2

    from ...codec.deep import Tensor


class SavedModelServable(Servable):
    """A SavedModel's signatures, ready to be called."""

    def __init__(
        self, path: str, tags: Sequence[str] = ("serve",), *, side_by_side: bool = False
    ) -> None:
        """Load the SavedModel in the directory ``path``; blocks until it is restored.

        ``side_by_side`` lets branches of the graph run in several threads, where each call runs in
        its caller's alone otherwise; see :mod:`.executors`.

        Raises:
            ServingError: with TensorFlow's reason.
        """
        self._side_by_side = side_by_side
        meter = LoadMeter()
        # The single-threaded executor takes no reference variables and no control flow of
        # TensorFlow 1; that shows when the calls are prepared.
        try:
            self._load(path, tags, "" if side_by_side else SINGLE_THREADED_EXECUTOR)
            self._prepare_all()
        except ServingError:
            self.close()
            self._load(path, tags, "")
        self.footprint = meter.footprint(_size_of_variables(path))

    def _load(self, path: str, tags: Sequence[str], executor: str) -> None:
        graph = tf.Graph()
        self._session = tf.compat.v1.Session(graph=graph, config=session_config(executor))
        self._calls: dict[tuple[str, tuple[str, ...], type], SessionCall | DeepCall] = {}
        # By signature, what the commonest call needs: all outputs, of arrays.
        self._plain: dict[str, tuple[tuple[str, ...], Any, tuple[str, ...]]] = {}
        try:
            with graph.as_default():
                self._meta = tf.compat.v1.saved_model.load(self._session, list(tags), path)
        except tf.errors.OpError as error:
            self.close()
            raise serving_error(error) from error
        except (OSError, RuntimeError, ValueError) as error:
            self.close()
            raise ServingError(_code_of(error), str(error)) from error
        self.signatures = {
            key: _signature_info(key, definition)
            for key, definition in sorted(self._meta.signature_def.items())
        }

    def _prepare_all(self) -> None:
        for signature in self.signatures.values():
            if signature.inputs and signature.outputs:
                self._call(signature, tuple(signature.outputs), SessionCall)

    def _call(
        self,
        signature: SignatureInfo,
        outputs: tuple[str, ...],
        kind: type[SessionCall | DeepCall],
    ) -> SessionCall | DeepCall:
        call = self._calls.get((signature.key, outputs, kind))
        if call is None:
            call = self._calls[signature.key, outputs, kind] = kind(
                self._session,
                [info.tensor for info in signature.inputs.values()],
                [signature.outputs[alias].tensor for alias in outputs],
                caller_thread=not self._side_by_side,
            )
        return call

    @cached_property
    def metadata(self) -> str:  # type: ignore[override]
        """All signatures as TensorFlow Serving's printer writes them."""
        return to_json(
            get_model_metadata_pb2.SignatureDefMap(signature_def=self._meta.signature_def)
        )

    def call(
        self,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Tensor]:
        """Run one signature; see :meth:`Servable.call`."""
        plain = self._plain.get(signature) if outputs is None else None
        if plain is None:
            return self._call_any(signature, inputs, outputs)
        feeds, call, aliases = plain
        arguments = [inputs[alias] for alias in feeds]
        if DeepTensor in map(type, arguments):
            return self._call_any(signature, inputs, outputs)
        return dict(zip(aliases, call(*arguments), strict=True))

    def _call_any(
        self, signature: str, inputs: Mapping[str, Tensor], outputs: Sequence[str] | None
    ) -> dict[str, Tensor]:
        info = self.signatures[signature]
        aliases = tuple(info.outputs) if outputs is None else tuple(outputs)
        arguments = [inputs[alias] for alias in info.inputs]
        deep = any(type(argument) is DeepTensor for argument in arguments)
        call: Any = self._call(info, aliases, DeepCall if deep else SessionCall)
        if outputs is None and not deep:
            self._plain[signature] = tuple(info.inputs), call, aliases
        return dict(zip(aliases, call(*arguments), strict=True))

    def why_not_repeatable(self, signature: str) -> str | None:
        """See :meth:`Servable.why_not_repeatable`."""
        fetches = [info.tensor for info in self.signatures[signature].outputs.values()]
        operation = unrepeatable_operation(self._meta.graph_def, fetches)
        return None if operation is None else because_of(operation)

    def debug_text(self, signature: str) -> str:
        """The signature as errors quote it; see :meth:`Servable.debug_text`."""
        return debug_text(self._meta.signature_def[signature])

    def close(self) -> None:
        """Release the prepared calls, then the session that they belong to."""
        self._plain.clear()
        self._calls.clear()
        session = self.__dict__.pop("_session", None)
        if session is not None:
            session.close()
            del session
            # A graph is full of cycles: left to the collector's own pace, those of several old
            # versions lie about with all their constants.
            collect_and_give_back()


def _signature_info(key: str, definition: meta_graph_pb2.SignatureDef) -> SignatureInfo:
    return SignatureInfo(
        key,
        {alias: _tensor_info(info) for alias, info in sorted(definition.inputs.items())},
        {alias: _tensor_info(info) for alias, info in sorted(definition.outputs.items())},
        definition.method_name,
        frozenset(definition.defaults),
    )


def _tensor_info(info: meta_graph_pb2.TensorInfo) -> TensorInfo:
    shape = info.tensor_shape
    dims = None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)
    if not info.HasField("tensor_shape"):
        dims = None
    return TensorInfo(dtype_name(info.dtype), dims, info.name)


def _code_of(error: Exception) -> Code:
    # TensorFlow's loader raises the same for a file that is not there and for one that is damaged.
    if str(error).startswith("Cannot parse file"):
        return Code.DATA_LOSS
    return Code.NOT_FOUND if isinstance(error, OSError) else Code.INVALID_ARGUMENT


def _size_of_variables(path: str) -> int:
    files = (Path(path) / "variables").glob("variables.data-*")
    return sum(file.stat().st_size for file in files)
