"""The calls of the REST API that run a model: JSON in, JSON out.

The order of the checks is TensorFlow Serving's, as it decides which error a caller sees.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from ..codec.example import parse_examples
from ..codec.json_encode import encode_classify, encode_regress
from ..codec.json_pieces import encode_large
from ..codec.json_tensor import parse_predict
from ..routes import Api
from ..wire import Response
from . import inference, memory
from .call import Call
from .model_run import ModelRun

if TYPE_CHECKING:
    from ..codec.document_tensors import Format
    from ..routes import Route
    from ..servable import ModelSpec
    from ..wire import Request
    from ..wire.connection import Buffer
    from .core.harness import ServableHandle
    from .core.server_core import ServerCore
    from .servables.base import Servable
    from .statistics import Tally

_MAX_INFLATED = 104_857_600
"""Largest body that TensorFlow Serving's HTTP server inflates, in bytes."""


class _RestCall(Call):
    """What the REST calls have in common: a body, and a handle on the version that answers."""

    __slots__ = ("_core", "_handle", "_request", "_spec", "_tally")

    def __init__(
        self,
        core: ServerCore[Servable],
        tally: Tally,
        spec: ModelSpec,
        request: Request,
    ) -> None:
        self._core = core
        self._tally = tally
        self._spec = spec
        self._request: Request | None = request
        self._handle: ServableHandle[Servable] | None = None

    def _take_body(self) -> Buffer:
        """The request's body, which the call holds no longer than it needs it."""
        request, self._request = self._request, None
        assert request is not None
        if "gzip" in request.content_encoding:
            return _inflate(request.body)
        return request.body

    def _take_servable(self) -> Servable:
        handle = self._handle = self._core.handle(self._spec)
        self._tally.begin(handle.id)
        return handle.servable

    def close(self) -> None:
        """Let the version go."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._tally.end()
            handle.release()


class PredictCall(_RestCall):
    """``:predict``."""

    __slots__ = ("_form", "_large")

    _form: Format
    _large: bool

    def read(self) -> ModelRun:
        """Body, then model, then signature, then tensors."""
        body = self._take_body()
        self._large = len(body) >= memory.LARGE
        self._tidy()
        document = parse_predict(body)
        servable = self._take_servable()
        signature = inference.predict_signature(servable, document.signature_name)
        inputs, self._form = document.tensors(signature.inputs)
        return ModelRun(servable, signature, inputs)

    def answer(self, run: ModelRun) -> Response:
        """Outputs in the form of the request."""
        self._tally.runtime_s = run.seconds
        self._tidy()
        body = encode_large(run.outputs, run.signature.outputs, self._form)
        run.outputs = {}
        self._tidy()
        return Response(200, body)

    def _tidy(self) -> None:
        """Let a large call not pile up what each step leaves behind with the allocator."""
        if self._large:
            memory.give_back()


class ScoreCall(_RestCall):
    """``:classify`` and ``:regress``. Here all JSON work comes before the look-up."""

    __slots__ = ("_check_method", "_classify", "_n")

    _n: int

    def __init__(
        self,
        core: ServerCore[Servable],
        tally: Tally,
        route: Route,
        request: Request,
        *,
        check_method: bool,
    ) -> None:
        super().__init__(core, tally, route.spec, request)
        self._classify = route.api is Api.CLASSIFY
        self._check_method = check_method

    def read(self) -> ModelRun:
        """Body, then model, then signature."""
        document = parse_examples(self._take_body())
        self._n = len(document.examples)
        run_of = inference.classify_run if self._classify else inference.regress_run
        return run_of(
            self._take_servable(),
            document.signature_name,
            document.examples,
            check_method=self._check_method,
        )

    def answer(self, run: ModelRun) -> Response:
        """One result an example."""
        self._tally.runtime_s = run.seconds
        if self._classify:
            body = encode_classify(*inference.classes_and_scores(run, self._n), self._n)
        else:
            body = encode_regress(inference.regressions(run, self._n))
        return Response(200, body)


def _inflate(body: Buffer) -> bytes:
    """Gunzip as TensorFlow Serving's HTTP server does: a body that will not inflate is empty."""
    if len(body) < 4 or int.from_bytes(body[-4:], "little") > _MAX_INFLATED:
        return b""
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        inflated = inflater.decompress(body, _MAX_INFLATED)
    except zlib.error:
        return b""
    # The footer may lie about the size; the bound holds all the same.
    return inflated if inflater.eof else b""
