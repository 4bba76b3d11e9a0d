"""Calls of one model: its signature known beforehand, errors told by it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..routes import model_path
from .answer import UnexpectedAnswerError, error_text, read_json, read_predict, without_rows
from .errors import InvalidArgumentError, NotFoundError, TFServeError, error_class
from .metadata import METHODS, Metadata, read_metadata
from .request import predict_body
from .tensors import first_difference, sends_half

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..servable import ModelSpec, SignatureInfo
    from .casting import Array
    from .transport import Reply, Transport

T = TypeVar("T")

_LET_IN = "Set JUPYTER_TFSERVE_URL and JUPYTER_TOKEN to the server's address and token."
_HALF = {"X-TFServe-Options": "half"}


class MetadataCache:
    """Signatures by model, version and label, as they were told last."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._known: dict[ModelSpec, Metadata] = {}
        self._lock = threading.Lock()

    def get(self, spec: ModelSpec) -> tuple[Metadata, bool]:
        """The metadata, and whether the server has told it just now.

        Raises:
            TFServeError: with the server's reason.
        """
        with self._lock:
            known = self._known.get(spec)
        if known is not None:
            return known, False
        path = f"{model_path(spec.name, spec.version, spec.label)}/metadata"
        answer = read_json(checked(self._transport.send("GET", path), self._transport.url).body)
        metadata = read_metadata(answer)
        with self._lock:
            self._known[spec] = metadata
        return metadata, True

    def forget(self, spec: ModelSpec) -> None:
        """Ask again next time."""
        with self._lock:
            self._known.pop(spec, None)


@dataclass(slots=True)
class ModelCall:
    """How one model, version or label is called.

    ``key`` is the signature's, or None for the one that fits the kind of call.
    """

    transport: Transport
    cache: MetadataCache
    spec: ModelSpec
    key: str | None = None
    _path: str = field(init=False)

    def __post_init__(self) -> None:
        self._path = model_path(self.spec.name, self.spec.version, self.spec.label)

    def signature(self, verb: str = "predict") -> tuple[SignatureInfo, bool]:
        """The signature to call, and whether it is fresh from the server.

        Without a name it is the default one; where that is made for another kind of call, and one
        signature alone for this, it is that one.

        Raises:
            TFServeError: with the server's reason; InvalidArgumentError where there is none.
        """
        metadata, fresh = self.cache.get(self.spec)
        if self.key is None and verb != "predict":
            method = METHODS[verb]
            made = [s for s in metadata.signatures.values() if s.method_name == method]
            default = metadata.signatures.get("serving_default")
            if len(made) == 1 and (default is None or default.method_name != method):
                return made[0], fresh
        return metadata.signature(self.key), fresh

    def predict(
        self, make: Callable[[SignatureInfo], Mapping[str, Array]]
    ) -> tuple[dict[str, Array], SignatureInfo]:
        """Call predict with the tensors that ``make`` makes for the signature.

        Raises:
            TFServeError: from ``make``, with the server's reason, or with what is between.
        """

        def attempt(signature: SignatureInfo) -> dict[str, Array]:
            tensors = make(signature)
            if _is_without_rows(tensors, signature):
                # JSON has no array without rows that keeps its other dimensions.
                return {name: without_rows(info) for name, info in signature.outputs.items()}
            try:
                body = self.post("predict", predict_body(tensors, signature), signature)
            except InvalidArgumentError as error:
                error.where = error.where or first_difference(tensors, signature)
                raise
            return read_predict(body, signature)

        return self.with_signature("predict", attempt)

    def with_signature(
        self, verb: str, attempt: Callable[[SignatureInfo], T]
    ) -> tuple[T, SignatureInfo]:
        """Try with the signature as known, and again where it has changed meanwhile.

        Raises:
            TFServeError: what the last attempt raised, with the signature added.
        """
        signature, fresh = self.signature(verb)
        try:
            return attempt(signature), signature
        except (InvalidArgumentError, UnexpectedAnswerError, NotFoundError) as error:
            if not fresh:
                self.cache.forget(self.spec)
                now, _ = self.signature(verb)
                if now != signature:
                    return attempt(now), now
            if error.signature is None and isinstance(error, InvalidArgumentError):
                error.signature = signature
            raise

    def post(self, verb: str, body: bytes, signature: SignatureInfo) -> bytes:
        """Send a body to one of the model's calls.

        Raises:
            TFServeError: with the server's reason.
        """
        headers = _HALF if sends_half(signature) else None
        reply = self.transport.send("POST", f"{self._path}:{verb}", body, headers=headers)
        return checked(reply, self.transport.url).body


def _is_without_rows(tensors: Mapping[str, Array], signature: SignatureInfo) -> bool:
    shapes = [array.shape for array in tensors.values()]
    declared = [info.shape for info in signature.outputs.values()]
    return (
        bool(shapes)
        and all(shape[:1] == (0,) for shape in shapes)
        and all(shape is not None and shape[:1] == (-1,) for shape in declared)
    )


def checked(reply: Reply, url: str) -> Reply:
    """The reply, if it is a success.

    Raises:
        TFServeError: of the kind that the status stands for, with the server's reason.
    """
    if reply.status < 300:
        return reply
    raise refusal(reply, url)


def refusal(reply: Reply, url: str) -> TFServeError:
    """What a server that did not do as it was asked says."""
    told: Mapping[str, Any] = error_text(reply.body)
    kind = error_class(reply.status, told.get("code"))
    if told:
        hint = told.get("hint") or (_LET_IN if reply.status in (401, 403) else "")
        return kind(told["error"], hint, reply.status)
    if reply.status in (401, 403) or 300 <= reply.status < 400:
        return error_class(403)(f"{url} does not let this notebook in.", _LET_IN, reply.status)
    if reply.status == 404:
        return kind(
            f"{url} has no models: no server of them answers there.",
            "Is jupyter_tfserve installed in the environment of that Jupyter server? "
            "`jupyter server extension list` there shows whether it is enabled.",
            reply.status,
        )
    text = reply.body[:200].decode("utf-8", "replace")
    return kind(f"{url} answered {reply.status}: {text}", "", reply.status)
