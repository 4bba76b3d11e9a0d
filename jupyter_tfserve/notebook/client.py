"""A server's models from Python: what is served, and predictions."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, quote, urlsplit

from ..routes import model_path
from ..servable import ModelSpec
from .answer import Classified, error_text, read_classify, read_json, read_regress
from .errors import TFServeError, UnimplementedError
from .metadata import Metadata, VersionStatus, read_status
from .model_call import MetadataCache, ModelCall, checked, refusal
from .request import as_examples, examples_body, json_body
from .servers import Server, find_server
from .tensors import to_tensors
from .transport import Transport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from ..servable import SignatureInfo
    from .casting import Array

__all__ = ["Client", "TFServeError"]

_LOAD_S = 600.0
"""Loading a large model takes its time."""
_API = "/tfserve/api/"
_REST = re.compile(r"/v1(/models)?/?$")


class Client:
    """A server of models.

    It is a Jupyter server with jupyter_tfserve, a ``jupyter tfserve``, or TensorFlow Serving
    itself. A client may be shared by threads. Connections are kept and used again; :meth:`close`,
    or leaving a ``with`` block, ends them.

    Args:
        url: The server's address, with the ``base_url`` of a Jupyter server; by default the
            notebook's own server. A ``?token=…`` in it is used as the token.
        token: The token of a Jupyter server or hub.
        timeout: Seconds without a byte of an answer before a call is given up.
        patience: Seconds over which a call is sent again that was turned away, such as while the
            model's process starts. Nothing is sent again that may have run a model.
        verify: Whether the certificate of an https server is checked, or the file of those to
            trust.

    Raises:
        NoServerError: where no address is given and no server is found.
    """

    def __init__(
        self,
        url: str | Server | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        patience: float = 30.0,
        verify: bool | str = True,
    ) -> None:
        self.server = _server(url, token)
        root = self.server.url.rstrip("/")
        self._transport = Transport(
            root, self.server.headers, timeout=timeout, patience=patience, verify=verify
        )
        self._cache = MetadataCache(self._transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.server.url!r})"

    def close(self) -> None:
        """End the connections; a later call opens new ones."""
        self._transport.close()

    # Any server of TensorFlow Serving's API ------------------------------------------------------

    def status(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> list[VersionStatus]:
        """The states of a model's versions, newest first.

        Raises:
            NotFoundError: where the server has never had such a model or version.
        """
        reply = self._transport.send("GET", model_path(name, version, label))
        return read_status(read_json(checked(reply, self.server.url).body))

    def versions(self, name: str) -> list[int]:
        """The versions that answer, newest first."""
        return [told.version for told in self.status(name) if told.is_available]

    def metadata(self, name: str, version: int | None = None, label: str | None = None) -> Metadata:
        """The signatures of a model, asked for anew."""
        spec = ModelSpec(name, version, label)
        self._cache.forget(spec)
        return self._cache.get(spec)[0]

    def predict(
        self,
        name: str,
        data: Any,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        **frame_options: Any,
    ) -> Any:
        """What a model predicts.

        Args:
            name: The model.
            data: Arrays, lists, tensors, a dict of them by input, or a list of such dicts (rows);
                see :func:`~jupyter_tfserve.notebook.tensors.to_tensors`. Or a pandas DataFrame or
                Series; see :mod:`~jupyter_tfserve.notebook.frames`.
            version: The version that is to answer; by default the newest.
            label: Or the version with this label.
            signature: By default ``serving_default``, or the only one.
            frame_options: For pandas alone; see
                :func:`~jupyter_tfserve.notebook.frame_calls.predict_frame`.

        Returns:
            An array of the output's dtype, strings as ``str``, or a dict of arrays where there
            are several. For pandas, a DataFrame on the same index.

        Raises:
            InvalidArgumentError: where the data does not fit the signature; it says what was
                expected, and the first place that differs.
            TFServeError: of the kind that the server's status stands for, with its text.
        """
        call = self._call(name, version, label, signature)
        if is_pandas(data):
            from .frame_calls import predict_frame

            return predict_frame(call, data, **frame_options)
        if frame_options:
            raise TypeError(f"{', '.join(frame_options)}: these are for pandas DataFrames alone")
        return _sole(call.predict(lambda signature: to_tensors(data, signature))[0])

    def classify(
        self,
        name: str,
        examples: Any,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        missing: Any = "error",
    ) -> Any:
        """The classes of examples, and their scores.

        Args:
            name: The model.
            examples: Dicts of features, a dict of columns, or a DataFrame with a column for each
                feature. A feature is a number, a truth value, a string, bytes, or a list of one
                kind of them. Integers and floats are different kinds to ``tf.Example``.
            version: As in :meth:`predict`.
            label: As in :meth:`predict`.
            signature: By default the one that is made for it.
            context: Features that all examples share.
            missing: For a DataFrame alone, what becomes of missing values, as in
                :func:`~jupyter_tfserve.notebook.frame_calls.predict_frame`.

        Returns:
            ``(labels, scores)``, two arrays with a row for each example and a column for each
            class. For a DataFrame, one on its index with the columns ``label_0``, ``score_0``, ….

        Raises:
            TFServeError: as :meth:`predict` does.
        """
        call = self._call(name, version, label, signature)
        if is_pandas(examples):
            from .frame_calls import classify_frame

            return classify_frame(call, examples, context, missing)
        return self._scored(call, "classify", examples, context, read_classify)

    def regress(
        self,
        name: str,
        examples: Any,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        missing: Any = "error",
    ) -> Any:
        """One number for each example; arguments are those of :meth:`classify`.

        Returns:
            A float32 array. For a DataFrame, a Series on its index.

        Raises:
            TFServeError: as :meth:`predict` does.
        """
        call = self._call(name, version, label, signature)
        if is_pandas(examples):
            from .frame_calls import regress_frame

            return regress_frame(call, examples, context, missing)
        return self._scored(call, "regress", examples, context, read_regress)

    def _scored(self, call: ModelCall, verb: str, examples: Any, context: Any, read: Any) -> Any:
        rows = as_examples(examples)

        def attempt(signature: SignatureInfo) -> Array | Classified:
            body = examples_body(rows, context, signature.key)
            answer: Array | Classified = read(call.post(verb, body, signature))
            return answer

        return call.with_signature(verb, attempt)[0]

    def _call(
        self, name: str, version: int | None, label: str | None, signature: str | None
    ) -> ModelCall:
        if version is not None and label is not None:
            raise TypeError("A call is for a version or for a label, not for both")
        spec = ModelSpec(name, version, label)
        return ModelCall(self._transport, self._cache, spec, signature)

    # Servers with jupyter_tfserve's management API -----------------------------------------------

    def models(self) -> list[dict[str, Any]]:
        """What is served: a dict for each model, as the management API tells it."""
        models: list[dict[str, Any]] = self._manage("GET", "models")["models"]
        return models

    def pools(self) -> list[dict[str, Any]]:
        """The processes that hold models."""
        pools: list[dict[str, Any]] = self._manage("GET", "pools")["pools"]
        return pools

    def load(self, name: str, base_path: str, **options: Any) -> dict[str, Any]:
        """Serve the versions below ``base_path``; returns the model once one is AVAILABLE.

        Args:
            name: what the model is to be called.
            base_path: an absolute directory whose numeric children are versions.
            options: ``policy``, ``labels`` and ``options`` in the management API's form.

        Raises:
            TFServeError: with the server's reason.
        """
        return self._manage("POST", "models", {"name": name, "base_path": base_path, **options})

    def unload(self, name: str) -> None:
        """Serve the model no longer.

        Raises:
            TFServeError: where there is no such model.
        """
        self._manage("DELETE", f"models/{quote(name, safe='')}")

    def labels(self, name: str) -> dict[str, int]:
        """The labels of a model, and the versions that they stand for.

        Raises:
            TFServeError: where there is no such model.
        """
        for model in self.models():
            if model["name"] == name:
                return dict(model["labels"])
        # TensorFlow Serving's own words, from the server.
        self.status(name)
        return {}

    def set_label(self, name: str, label: str, version: int) -> dict[str, int]:
        """Let a label stand for a version; returns all labels of the model."""
        path = f"models/{quote(name, safe='')}/labels/{quote(label, safe='')}"
        return dict(self._manage("PUT", path, {"version": version})["labels"])

    def delete_label(self, name: str, label: str) -> dict[str, int]:
        """Take a label away; returns those that are left."""
        path = f"models/{quote(name, safe='')}/labels/{quote(label, safe='')}"
        return dict(self._manage("DELETE", path)["labels"])

    def adopt(self, pool_id: str) -> dict[str, Any]:
        """Tell the server of a pool in a notebook's kernel that has just been announced to it.

        Raises:
            TFServeError: where the server does not see it, or may not use it.
        """
        return self._manage("POST", "pools", {"id": pool_id})

    def _manage(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json_body(body)
        # What the server says now is the answer: a change is not asked for twice.
        reply = self._transport.send(method, _API + path, data, timeout=_LOAD_S, patience=0)
        if reply.status < 300:
            answer: dict[str, Any] = read_json(reply.body) if reply.body else {}
            return answer
        if _has_no_management(reply.status, reply.body):
            raise UnimplementedError(
                f"{self.server.url} has no jupyter_tfserve that can be managed.",
                "Install jupyter_tfserve in the environment of the Jupyter server and restart it; "
                "`jupyter server extension list` there shows whether it is enabled. "
                "A `jupyter tfserve` serves what its flags say, and nothing else.",
                reply.status,
            )
        raise refusal(reply, self.server.url)


def default_client() -> Client:
    """The client of the notebook's own server, which is kept with its connections.

    Raises:
        NoServerError: where no server is found.
    """
    server = find_server()
    if server not in _clients:
        _clients[server] = Client(server)
    return _clients[server]


_clients: dict[Server, Client] = {}


def _has_no_management(status: int, body: bytes) -> bool:
    """Whether it is a 404 for the path, not for what it names; our API always tells a reason."""
    return status == 404 and not error_text(body)


def _server(url: str | Server | None, token: str | None) -> Server:
    if isinstance(url, Server):
        return url if token is None else Server(url.url, token)
    if url is None:
        found = find_server()
        return found if token is None else Server(found.url, token)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"The address of a server begins with http:// or https://: {url}")
    root = f"{parts.scheme}://{parts.netloc}{_REST.sub('', parts.path).rstrip('/')}/"
    if token is None:
        token = parse_qs(parts.query).get("token", [""])[0]
    return Server(root, token)


def is_pandas(data: Any) -> bool:
    """Whether the data is a DataFrame or a Series."""
    # Who has such data has pandas loaded.
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series)


def _sole(outputs: dict[str, Array]) -> Array | dict[str, Array]:
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs
