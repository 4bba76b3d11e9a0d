"""What every kind of model looks like to the rest of the pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..batching.shapes import why_not_rowwise
from ..batching.version import NEVER, VersionBatching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...codec.deep import Tensor
    from ...servable import SignatureInfo
    from ..warmup import Warmup


@dataclass(frozen=True, slots=True)
class Footprint:
    """Where a servable's values live and an estimate of their size in bytes."""

    device: str = "CPU"
    host_bytes: int = 0
    device_bytes: int = 0


class Servable(ABC):
    """One loaded version: signatures that can be called from several threads at once.

    The core treats servables as opaque; the APIs call them between acquiring and releasing a
    handle, so :meth:`close` never meets a running call.
    """

    signatures: Mapping[str, SignatureInfo]
    metadata: str
    """All signatures as TensorFlow Serving's printer writes a ``SignatureDefMap``."""
    footprint: Footprint
    batching: VersionBatching = NEVER
    """Which signatures may be run in batches, and how."""
    path: str | None = None
    """The version's directory or file; None for a model that was made in this process."""
    warmup: Warmup | None = None
    """How it was warmed up; None where there was nothing to replay."""

    @abstractmethod
    def call(
        self,
        signature: str,
        inputs: Mapping[str, Tensor],
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Tensor]:
        """Run one signature and return its outputs by alias.

        Args:
            signature: a key of :attr:`signatures`.
            inputs: a tensor for each input alias, of the dtype that the signature names; strings
                are object arrays of bytes. Shapes are passed to the model as they are.
            outputs: the aliases to compute; all by default.

        Raises:
            ServingError: with the code and text of the runtime.
        """

    def why_not_batched(self) -> dict[str, str | None]:
        """All signatures, each with the reason why its runs must not be merged, or None.

        What is not seen here shows at run time, where it shows: see :mod:`..batching.version`.
        """
        return {
            key: why_not_rowwise(signature) or self.why_not_repeatable(key)
            for key, signature in self.signatures.items()
        }

    def why_not_repeatable(self, signature: str) -> str | None:
        """Why a row's outputs depend on more than the row: state, chance; None where they do not.

        Rows that look at each other cannot be found out.
        """
        return None

    @abstractmethod
    def debug_text(self, signature: str) -> str:
        """A ``SignatureDef`` in protobuf's debug form, as TensorFlow Serving's errors quote it."""

    @abstractmethod
    def close(self) -> None:
        """Give back everything held; the servable is not called again."""
