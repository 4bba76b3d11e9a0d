"""What of one loaded version may be batched, and what its runs have shown."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from .records import Observer, ignore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...codec.deep import Tensor
    from .queues import VersionQueues

log = logging.getLogger(__name__)

Aliases = tuple[str, ...] | None
"""The outputs of a run; None stands for all."""


class Mode(StrEnum):
    """How runs of a version are batched."""

    OFF = "off"
    GREEDY = "greedy"
    QUEUE = "queue"
    """By TensorFlow Serving's parameters."""


class VersionBatching:
    """Whether and how runs of one version are merged; may be asked from any thread.

    Attributes:
        mode: How.
        mergeable: The signatures whose runs may be merged, now.
        observe: Told of each batch that was run.
        queues: Where they wait for each other; None where nothing waits.
    """

    __slots__ = ("_name", "_proven", "_reasons", "_seen", "mergeable", "mode", "observe", "queues")

    def __init__(self, name: str = "", observe: Observer = ignore) -> None:
        """``name`` is the model's, for the log; ``observe`` is told of each batch."""
        self._name = name
        self.observe = observe
        self._reasons: dict[str, str] = {}
        # By signature and outputs: a number of rows that came back, and whether a second one did.
        self._seen: dict[tuple[str, Aliases], int] = {}
        self._proven: set[tuple[str, Aliases]] = set()
        self.mode = Mode.OFF
        self.mergeable: frozenset[str] = frozenset()
        self.queues: VersionQueues | None = None

    def switch(
        self, mode: Mode, signatures: Mapping[str, str | None], queues: VersionQueues | None = None
    ) -> None:
        """Batch in another way from now on.

        Args:
            mode: how.
            signatures: all signatures, each with the reason why it cannot be batched, or None.
            queues: where runs wait, in mode QUEUE.
        """
        self.mode = mode
        known = {key: reason for key, reason in signatures.items() if reason is not None}
        self._reasons = known | self._reasons
        self.mergeable = frozenset(signatures.keys() - self._reasons)
        self.queues = queues

    def stop(self) -> None:
        """Merge nothing from now on."""
        self.mode = Mode.OFF
        self.mergeable = frozenset()
        self.queues = None

    def refuse(self, signature: str, reason: str) -> None:
        """A run has shown that a signature cannot be batched; it never is again."""
        if signature not in self._reasons:
            self._reasons = {**self._reasons, signature: reason}
            self.mergeable -= {signature}
            log.warning("Signature %s of %s is not batched: %s", signature, self._name, reason)

    def has_a_row_for_each(
        self, signature: str, aliases: Aliases, outputs: Mapping[str, Tensor], rows: int
    ) -> bool:
        """Whether outputs of a run with ``rows`` rows may be cut into its callers' parts.

        Where one number of rows came back, that may be chance: an output of always 100 rows fits an
        input of 100. Two numbers that came back are taken for proof. A number that did not come
        back refuses the signature.
        """
        for alias, tensor in outputs.items():
            if tensor.shape[:1] != (rows,):
                shape = ",".join(map(str, tensor.shape))
                self.refuse(signature, f"output {alias} of {rows} rows has the shape [{shape}]")
                return False
        key = signature, aliases
        if key in self._proven:
            return True
        if self._seen.setdefault(key, rows) == rows:
            return False
        self._proven.add(key)
        return True

    def describe(self) -> dict[str, Any]:
        """The mode, and the signatures that are not batched with the reasons, for people."""
        reasons = self._reasons if self.mode is not Mode.OFF else {}
        return {"mode": str(self.mode), "not_batched": reasons}


NEVER = VersionBatching()
"""Of versions that nobody has asked to batch."""
