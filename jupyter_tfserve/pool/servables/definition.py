"""``SignatureDef`` messages of models that are no SavedModels and so have none of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2

from .proto_text import debug_text, to_json

if TYPE_CHECKING:
    from ...servable import SignatureInfo, TensorInfo

PREDICT_METHOD = "tensorflow/serving/predict"


def metadata_of(signatures: Mapping[str, SignatureInfo]) -> str:
    """Signatures as TensorFlow Serving's printer writes a ``SignatureDefMap``."""
    definitions = {key: _definition(info) for key, info in signatures.items()}
    return to_json(get_model_metadata_pb2.SignatureDefMap(signature_def=definitions))


def debug_text_of(signature: SignatureInfo) -> str:
    """A signature as TensorFlow Serving's errors quote it."""
    return debug_text(_definition(signature))


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
