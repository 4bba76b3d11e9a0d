"""TensorFlow Serving's REST API from request bytes to response bytes, whatever door they came by.

The order of the checks is TensorFlow Serving's, as it decides which error a caller sees.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

from ..codec.example import parse_examples
from ..codec.json_encode import encode_classify, encode_predict, encode_regress
from ..codec.json_tensor import parse_predict
from ..errors import ServingError, json_string
from ..routes import Api, Route, parse_route
from ..state import status_json
from ..wire import Request, Response
from . import inference
from .scheduler import error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..servable import ModelSpec
    from ..wire.connection import Buffer
    from .core.server_core import ServerCore
    from .scheduler import Scheduler
    from .servables.base import Servable
    from .statistics import Statistics

_MAX_INFLATED = 104_857_600
"""Largest body that TensorFlow Serving's HTTP server inflates, in bytes."""
_METADATA = """{{
"model_spec":{{
 "name": {name},
 "version": "{version}",
 "signature_name": ""
}}
,
"metadata": {{"signature_def": {signature_def}
}}
}}
"""


class RestApi:
    """Answers REST requests from the servables of a core."""

    def __init__(
        self,
        core: ServerCore[Servable],
        scheduler: Scheduler,
        statistics: Statistics,
        *,
        check_method_name: bool = False,
    ) -> None:
        self._core = core
        self._scheduler = scheduler
        self._statistics = statistics
        self._check_method = check_method_name

    def handle(
        self, request: Request, respond: Callable[[Response], None]
    ) -> Callable[[], None] | None:
        """Answer one request; called in the loop's thread and never blocks for long.

        Returns:
            What gives the call up, or None where it has been answered already.
        """
        try:
            route = parse_route(request.method, request.target)
            if not route.is_inference:
                respond(Response(200, self._tell(route)))
                return None
        except ServingError as error:
            respond(error_response(error))
            return None
        # The time that a call takes goes with the size of its body, here by powers of two.
        kind = (route, len(request.body).bit_length())
        work = partial(self._infer, route, request)
        return self._scheduler.submit(
            kind, route.spec.name, work, respond, request.timeout_ms / 1000
        )

    def _tell(self, route: Route) -> bytes:
        if route.api is Api.STATUS:
            return status_json(self._core.status(route.spec))
        return self._metadata(route.spec)

    def _metadata(self, spec: ModelSpec) -> bytes:
        with self._core.handle(spec) as handle:
            text = _METADATA.format(
                name=json_string(spec.name),
                version=handle.id.version,
                signature_def=handle.servable.metadata,
            )
        return text.encode("utf-8", "surrogateescape")

    def _infer(self, route: Route, request: Request) -> Response:
        body = request.body
        if "gzip" in request.content_encoding:
            body = _inflate(body)
        if route.api is Api.PREDICT:
            answer = self._predict(route.spec, body)
        else:
            answer = self._score(route, body)
        return Response(200, answer)

    def _predict(self, spec: ModelSpec, body: Buffer) -> bytes:
        document = parse_predict(body)
        with self._core.handle(spec) as handle, self._statistics.call(handle.id):
            servable = handle.servable
            signature = inference.predict_signature(servable, document.signature_name)
            inputs, form = document.tensors(signature.inputs)
            outputs = servable.call(signature.key, inputs)
            return encode_predict(outputs, signature.outputs, form)

    def _score(self, route: Route, body: Buffer) -> bytes:
        document = parse_examples(body)
        examples = document.examples
        with self._core.handle(route.spec) as handle, self._statistics.call(handle.id):
            score = inference.classify if route.api is Api.CLASSIFY else inference.regress
            result = score(
                handle.servable,
                document.signature_name,
                examples,
                check_method=self._check_method,
            )
        if isinstance(result, tuple):
            return encode_classify(*result, len(examples))
        return encode_regress(result)


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
