"""What a server tells of a model: its versions' states and its signatures."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..servable import SignatureInfo, TensorInfo
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_SIGNATURE = "serving_default"
METHODS = {
    "predict": "tensorflow/serving/predict",
    "classify": "tensorflow/serving/classify",
    "regress": "tensorflow/serving/regress",
}


@dataclass(frozen=True, slots=True)
class VersionStatus:
    """One version of a model: ``state`` is START, LOADING, AVAILABLE, UNLOADING or END.

    ``error`` is why it failed, or empty.
    """

    version: int
    state: str
    error: str = ""

    @property
    def is_available(self) -> bool:
        """Whether it answers."""
        return self.state == "AVAILABLE"


@dataclass(frozen=True)
class Metadata:
    """The signatures of one version of a model."""

    name: str
    version: int
    signatures: Mapping[str, SignatureInfo]

    def signature(self, key: str | None = None) -> SignatureInfo:
        """One signature: that of the name, or the default one, or the only one.

        Raises:
            InvalidArgumentError: where there is none of that name, listing what there is.
        """
        callable_ = {k: s for k, s in self.signatures.items() if s.inputs}
        if key is None:
            if DEFAULT_SIGNATURE not in callable_ and len(callable_) == 1:
                return next(iter(callable_.values()))
            key = DEFAULT_SIGNATURE
        if key in self.signatures:
            return self.signatures[key]
        text = f"Model {self.name} version {self.version} has no signature {key!r}"
        raise InvalidArgumentError(
            f"{text}{did_you_mean(key, callable_)}", f"It has: {', '.join(sorted(callable_))}."
        )

    def __repr__(self) -> str:
        lines = [f"{self.name} version {self.version}"]
        for signature in self.signatures.values():
            lines.append(f"{signature.key}  {signature.method_name}".rstrip())
            for title, tensors in (("in", signature.inputs), ("out", signature.outputs)):
                lines += [f"  {title:4}{describe(name, tensors[name])}" for name in tensors]
        return "\n".join(lines)


def read_status(answer: Mapping[str, Any]) -> list[VersionStatus]:
    """The answer of ``GET /v1/models/NAME``, newest version first."""
    return [
        VersionStatus(
            int(told["version"]), told["state"], (told.get("status") or {}).get("error_message", "")
        )
        for told in answer.get("model_version_status", ())
    ]


def read_metadata(answer: Mapping[str, Any]) -> Metadata:
    """The answer of ``GET /v1/models/NAME/metadata``."""
    spec = answer["model_spec"]
    told = answer["metadata"]["signature_def"]["signature_def"]
    signatures = {key: _signature(key, value) for key, value in told.items()}
    return Metadata(spec["name"], int(spec["version"]), signatures)


def _signature(key: str, told: Mapping[str, Any]) -> SignatureInfo:
    return SignatureInfo(
        key,
        _tensors(told.get("inputs", {})),
        _tensors(told.get("outputs", {})),
        told.get("method_name", ""),
        frozenset(told.get("defaults", ())),
    )


def _tensors(told: Mapping[str, Any]) -> dict[str, TensorInfo]:
    # The server's order is that of a hash table, and changes from run to run.
    return {name: _tensor(told[name]) for name in sorted(told)}


def _tensor(told: Mapping[str, Any]) -> TensorInfo:
    shape = told.get("tensor_shape")
    sizes: tuple[int, ...] | None = None
    if shape is not None and not shape.get("unknown_rank"):
        sizes = tuple(int(dim["size"]) for dim in shape.get("dim", ()))
    dtype = told.get("dtype", "DT_INVALID").removeprefix("DT_").lower()
    return TensorInfo(dtype, sizes, told.get("name", ""))


def describe(name: str, info: TensorInfo) -> str:
    """One tensor in short, such as ``x: float [?, 2]``."""
    if info.shape is None:
        return f"{name}: {info.dtype} of any shape"
    sizes = ", ".join("?" if size < 0 else str(size) for size in info.shape)
    return f"{name}: {info.dtype} [{sizes}]"


def describe_inputs(signature: SignatureInfo) -> str:
    """What a signature takes, in one line."""
    inputs = "; ".join(describe(name, info) for name, info in signature.inputs.items())
    return f"{signature.key} takes {inputs or 'nothing'}"


def did_you_mean(name: str, known: Any) -> str:
    """``": did you mean 'a'?"`` where a known name is close to this one; or empty."""
    names = {str(other).casefold(): other for other in known}
    close = get_close_matches(str(name).casefold(), names, 1, 0.7)
    return f": did you mean {names[close[0]]!r}?" if close else ""
