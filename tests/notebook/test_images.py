"""Arrays to the encoded strings that models decode."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from model_double import signature
from PIL import Image

from jupyter_tfserve.notebook.frames import to_inputs
from jupyter_tfserve.notebook.images import encode_array

RNG = np.random.default_rng(0)


def pixels(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4)])
def test_a_png_is_the_picture_itself(shape: tuple[int, ...]) -> None:
    picture = pixels(*shape)
    decoded = np.asarray(Image.open(BytesIO(encode_array(picture, "png"))))
    np.testing.assert_array_equal(decoded.reshape(shape), picture)


def test_a_jpeg_is_one() -> None:
    encoded = encode_array(pixels(8, 8, 3), "jpeg")
    assert encoded[:3] == b"\xff\xd8\xff"
    assert Image.open(BytesIO(encoded)).size == (8, 8)


def test_a_tensor_proto_is_what_tensorflow_parses() -> None:
    import tensorflow as tf

    for array in (
        np.float32([[1.5, -0.0]]),
        np.array([2**63 - 1, -1]),
        np.array(True),
        np.zeros((0, 3), np.uint8),
        np.arange(300, dtype=">i4").reshape(2, 150),
    ):
        parsed = tf.io.parse_tensor(
            encode_array(array, "tensorproto"), array.dtype.newbyteorder("=")
        )
        np.testing.assert_array_equal(parsed.numpy(), array)
        assert parsed.shape == array.shape


@pytest.mark.parametrize(
    ("array", "encoding", "reason"),
    [
        (np.zeros((2, 2)), "png", "uint8, not of float64"),
        (pixels(2), "png", r"not \(2,\)"),
        (pixels(2, 2, 5), "jpeg", "channels"),
        (np.array(["a"], object), "tensorproto", "object"),
        (pixels(2, 2), "gif", "not 'gif'"),
    ],
)
def test_what_cannot_be_encoded_is_said(array: np.ndarray, encoding: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_array(array, encoding)  # type: ignore[arg-type]


def test_a_column_of_pictures_becomes_one_of_strings() -> None:
    """O03: the encoding is said once, and the column fits."""
    frame = pd.DataFrame({"image_bytes": [pixels(4, 4, 3), pixels(4, 4, 3)]})
    frame["image_bytes"] = frame["image_bytes"].map(lambda picture: encode_array(picture, "png"))
    info = signature({"image_bytes": ("string", (-1,))}, {"y": ("float", (-1,))})
    tensors = to_inputs(frame, info)
    assert all(item.startswith(b"\x89PNG") for item in tensors["image_bytes"])
