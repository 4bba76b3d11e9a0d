"""``df.tfserve``: predictions of a DataFrame's rows, and its rows as a model takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .client import default_client
from .columns import ERROR
from .errors import InvalidArgumentError
from .frame_examples import to_examples
from .frames import to_inputs, to_instances
from .metadata import Metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..servable import SignatureInfo
    from .casting import Array
    from .client import Client


class FrameAccessor:
    """What pandas shows as ``df.tfserve``.

    Where a signature is asked for, the name of a model stands for its default one. The rules are
    those of :mod:`~jupyter_tfserve.notebook.frames` and
    :mod:`~jupyter_tfserve.notebook.columns`.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def predict(
        self,
        model: str,
        version: int | None = None,
        label: str | None = None,
        signature: str | None = None,
        *,
        client: Client | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """What a model predicts for the rows, a DataFrame on the same index.

        Args:
            model: Its name.
            version: The version that is to answer; by default the newest.
            label: Or the version with this label.
            signature: By default ``serving_default``, or the only one.
            client: By default one of the notebook's own server.
            options: ``columns``, ``missing``, ``outputs``, ``chunk_bytes`` and ``progress``; see
                :func:`~jupyter_tfserve.notebook.frame_calls.predict_frame`.

        Raises:
            InvalidArgumentError: where the frame does not fit, naming the column and the row.
            TFServeError: with the server's reason; what was done by then is its ``partial``.
        """
        client = client or default_client()
        frame: pd.DataFrame = client.predict(
            model, self._frame, version, label, signature, **options
        )
        return frame

    def classify(
        self, model: str, *args: Any, client: Client | None = None, **options: Any
    ) -> pd.DataFrame:
        """The classes of the rows; see :meth:`~jupyter_tfserve.Client.classify`."""
        frame: pd.DataFrame = (client or default_client()).classify(
            model, self._frame, *args, **options
        )
        return frame

    def regress(
        self, model: str, *args: Any, client: Client | None = None, **options: Any
    ) -> pd.Series:
        """One number for each row; see :meth:`~jupyter_tfserve.Client.regress`."""
        series: pd.Series = (client or default_client()).regress(
            model, self._frame, *args, **options
        )
        return series

    def to_instances(
        self,
        signature: SignatureInfo | Metadata | str,
        columns: Mapping[str, Any] | list[Any] | None = None,
        missing: Any = ERROR,
    ) -> list[Any]:
        """The rows for the row form, ready for JSON: ``{"instances": …}``.

        Raises:
            InvalidArgumentError: naming the column and the row that does not fit.
        """
        return to_instances(self._frame, _signature(signature), columns, missing)

    def to_inputs(
        self,
        signature: SignatureInfo | Metadata | str,
        columns: Mapping[str, Any] | list[Any] | None = None,
        missing: Any = ERROR,
    ) -> dict[str, Array]:
        """The rows as one array for each input, of its very dtype.

        Raises:
            InvalidArgumentError: naming the column and the row that does not fit.
        """
        return to_inputs(self._frame, _signature(signature), columns, missing)

    def to_examples(
        self,
        signature: SignatureInfo | Metadata | str | None = None,
        missing: Any = ERROR,
        *,
        serialized: bool = False,
    ) -> list[Any]:
        """The rows as ``tf.Example``: dicts of features, or serialised protos.

        Raises:
            InvalidArgumentError: naming the column and the row that makes no feature.
        """
        known = None if signature is None else _signature(signature)
        return to_examples(self._frame, known, missing, serialized=serialized)


def _signature(given: Any) -> SignatureInfo:
    if isinstance(given, str):
        given = default_client().metadata(given)
    if isinstance(given, Metadata):
        return given.signature()
    if not hasattr(given, "inputs"):
        raise InvalidArgumentError(
            f"{type(given).__name__} is no signature",
            "Give the name of a model, or one of client.metadata(name).signatures.",
        )
    signature: SignatureInfo = given
    return signature
