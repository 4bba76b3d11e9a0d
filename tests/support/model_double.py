"""A server of TensorFlow Serving's REST API in this process, over real HTTP, without TensorFlow.

Models are functions of arrays behind declared signatures; bodies are read and written by the
codec, as a pool does it. Anything else that a server may say can be scripted.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from jupyter_tfserve.codec.example import parse_examples
from jupyter_tfserve.codec.json_encode import encode_classify, encode_predict, encode_regress
from jupyter_tfserve.codec.json_tensor import parse_predict
from jupyter_tfserve.errors import Code, ServingError, error_json, invalid_argument
from jupyter_tfserve.routes import Api, parse_route
from jupyter_tfserve.servable import SignatureInfo, TensorInfo

Shape = tuple[int, ...] | None
Spec = Mapping[str, tuple[str, Shape]]
Function = Callable[..., Mapping[str, Any]]


def signature(inputs: Spec, outputs: Spec, key: str = "serving_default", method: str = "predict"):
    """A signature from ``{"x": ("float", (-1, 2))}``."""
    return SignatureInfo(
        key,
        {name: TensorInfo(dtype, shape) for name, (dtype, shape) in inputs.items()},
        {name: TensorInfo(dtype, shape) for name, (dtype, shape) in outputs.items()},
        f"tensorflow/serving/{method}",
    )


@dataclass
class Received:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Scripted:
    """An answer that is given in place of the next one for which ``when`` holds."""

    status: int
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    when: Callable[[Received], bool] = lambda request: request.method == "POST"


class ModelDouble:
    """What the server knows, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.connections = 0
        self.script: deque[Scripted] = deque()
        self.version = 1
        self._models: dict[str, dict[str, tuple[SignatureInfo, Function]]] = {}

    def serve(self, name: str, info: SignatureInfo, function: Function) -> None:
        """Add a signature to a model, or replace it."""
        self._models.setdefault(name, {})[info.key] = (info, function)

    def posts(self) -> list[Received]:
        """The calls of models so far."""
        return [request for request in self.received if request.method == "POST"]

    def asked(self, ending: str) -> int:
        """How many requests there were for paths that end so."""
        return sum(request.path.endswith(ending) for request in self.received)

    def answer(self, request: Received) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body."""
        self.received.append(request)
        if self.script and self.script[0].when(request):
            scripted = self.script.popleft()
            return scripted.status, scripted.headers, scripted.body
        try:
            return 200, {}, self._served(request)
        except ServingError as error:
            return error.http_status, {}, error_json(error.message)

    def _served(self, request: Received) -> bytes:
        route = parse_route(request.method, request.path)
        name = route.spec.name
        if name not in self._models or route.spec.version not in (None, self.version):
            text = f"Servable not found for request: Latest({name})"
            raise ServingError(Code.NOT_FOUND, text)
        model = self._models[name]
        if route.api is Api.STATUS:
            status = {"error_code": "OK", "error_message": ""}
            told = {"version": str(self.version), "state": "AVAILABLE", "status": status}
            return json.dumps({"model_version_status": [told]}).encode()
        if route.api is Api.METADATA:
            return _metadata(name, self.version, [info for info, _ in model.values()])
        if route.api is Api.PREDICT:
            return _predict(request.body, model)
        return _score(request.body, model, route.api)


def _metadata(name: str, version: int, signatures: list[SignatureInfo]) -> bytes:
    told = {info.key: _signature_json(info) for info in signatures}
    spec = {"name": name, "version": str(version), "signature_name": ""}
    metadata = {"signature_def": {"signature_def": told}}
    return json.dumps({"model_spec": spec, "metadata": metadata}).encode()


def _signature_json(info: SignatureInfo) -> dict[str, Any]:
    return {
        "inputs": {name: _tensor_json(tensor) for name, tensor in info.inputs.items()},
        "outputs": {name: _tensor_json(tensor) for name, tensor in info.outputs.items()},
        "method_name": info.method_name,
        "defaults": {},
    }


def _tensor_json(info: TensorInfo) -> dict[str, Any]:
    dims = [{"size": str(size), "name": ""} for size in info.shape or ()]
    shape = {"dim": dims, "unknown_rank": info.shape is None}
    return {"name": "", "dtype": f"DT_{info.dtype.upper()}", "tensor_shape": shape}


def _predict(body: bytes, model: Mapping[str, tuple[SignatureInfo, Function]]) -> bytes:
    request = parse_predict(body)
    key = request.signature_name or "serving_default"
    if key not in model:
        raise invalid_argument(f'Serving signature name: "{key}" not found in signature def')
    info, function = model[key]
    tensors, form = request.tensors(info.inputs)
    outputs = {name: np.asarray(value) for name, value in function(**tensors).items()}
    return encode_predict(outputs, info.outputs, form)


def _score(body: bytes, model: Mapping[str, tuple[SignatureInfo, Function]], api: Api) -> bytes:
    request = parse_examples(body)
    _, function = model[request.signature_name or "serving_default"]
    answer = function(request.examples)
    if api is Api.REGRESS:
        return encode_regress(answer["outputs"])
    return encode_classify(answer.get("classes"), answer.get("scores"), len(request.examples))


@contextmanager
def model_double() -> Iterator[ModelDouble]:
    """A double that listens until the block ends."""
    double = ModelDouble()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            double.connections += 1

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Received(self.command, self.path, dict(self.headers), body)
            status, headers, answer = double.answer(request)
            if status == 0:  # hang up without a word
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  (the library's names)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True  # connections are kept open by clients

    with Server(("127.0.0.1", 0), Handler) as server:
        double.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()
