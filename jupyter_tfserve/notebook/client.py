"""A server's models from Python: what is served, and predictions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

from ..routes import model_path
from ..servable import ModelSpec
from .answer import Classified, read_classify, read_json, read_regress
from .management import Management
from .metadata import Metadata, VersionStatus, read_status
from .model_call import MetadataCache, ModelCall, checked
from .request import as_examples, examples_body
from .servers import Server, find_server, server_at
from .tensors import to_tensors
from .transport import Transport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from ..servable import SignatureInfo
    from .casting import Array


class Client(Management):
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
        self.server = server_at(url, token)
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

        Args:
            name: the model's.
            release: whether to end the process that held it, so that all its memory returns, where
                it holds no other.

        Returns:
            The ``pool`` that held it, whether that was ``released``, and its ``remaining`` models.

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


def is_pandas(data: Any) -> bool:
    """Whether the data is a DataFrame or a Series."""
    # Who has such data has pandas loaded.
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series)


def _sole(outputs: dict[str, Array]) -> Array | dict[str, Array]:
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs
