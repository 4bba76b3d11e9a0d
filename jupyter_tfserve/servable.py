"""What a servable is called and what its signatures look like: plain, frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class ServableId:
    """One version of one model."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"{{name: {self.name} version: {self.version}}}"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """How a request names a servable: a version, a label, or neither (the latest version)."""

    name: str
    version: int | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One input or output of a signature.

    ``dtype`` is TensorFlow's name as error texts spell it (``float``, ``double``, ``int32``,
    ``string``, ``half``, ...). ``shape`` has -1 for a free dimension; ``None`` is unknown rank.
    ``tensor`` is the name in the graph, such as ``x:0``; empty for live functions.
    """

    dtype: str
    shape: tuple[int, ...] | None
    tensor: str = ""


@dataclass(frozen=True, slots=True)
class SignatureInfo:
    """A named way to call a servable: its inputs and outputs by alias."""

    key: str
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    method_name: str = ""
    defaults: frozenset[str] = field(default_factory=frozenset)
