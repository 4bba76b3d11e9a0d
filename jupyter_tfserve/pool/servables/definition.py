"""``SignatureDef`` messages of models that are no SavedModels and so have none of their own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2

from .base import Servable
from .proto_text import debug_text, to_json

if TYPE_CHECKING:
    from ...servable import SignatureInfo, TensorInfo

PREDICT_METHOD = "tensorflow/serving/predict"


class DefinedServable(Servable):
    """A servable whose ``SignatureDef`` messages are made from its signatures."""

    @cached_property
    def metadata(self) -> str:  # type: ignore[override]
        """All signatures as TensorFlow Serving's printer writes them."""
        definitions = {key: _definition(info) for key, info in self.signatures.items()}
        return to_json(get_model_metadata_pb2.SignatureDefMap(signature_def=definitions))

    def debug_text(self, signature: str) -> str:
        """The signature as errors quote it; see :meth:`Servable.debug_text`."""
        return debug_text(_definition(self.signatures[signature]))


def _definition(info: SignatureInfo) -> meta_graph_pb2.SignatureDef:
    return meta_graph_pb2.SignatureDef(
        inputs={name: _tensor(tensor) for name, tensor in info.inputs.items()},
        outputs={name: _tensor(tensor) for name, tensor in info.outputs.items()},
        method_name=info.method_name,
    )


def _tensor(info: TensorInfo) -> meta_graph_pb2.TensorInfo:
    tensor = meta_graph_pb2.TensorInfo(
        name=info.tensor, dtype=types_pb2.DataType.Value(f"DT_{info.dtype.upper()}")
    )
    if info.shape is None:
        tensor.tensor_shape.unknown_rank = True
    else:
        tensor.tensor_shape.SetInParent()
        for size in info.shape:
            tensor.tensor_shape.dim.add(size=size)
    return tensor
