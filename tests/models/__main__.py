"""Make the models of the tests: ``python tests/models FOLDER [NAME...]``.

Each model becomes ``FOLDER/NAME/VERSION``; without names all are made. TensorFlow is loaded here
and nowhere else in the tests, so that those of the server can prove that they do without.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import arithmetic
import examples
import files
import rows
import tables
import tensors
import workloads

BUILDERS: dict[str, Callable[[Path], None]] = {
    "half_plus_two": arithmetic.half_plus_two,
    "half_plus_two_2v": arithmetic.half_plus_two_2v,
    "half_plus_three": arithmetic.half_plus_three,
    "versions": arithmetic.versions,
    "counter": arithmetic.counter,
    "numbered": arithmetic.numbered,
    "my model": arithmetic.name_with_blank,
    "mlp": arithmetic.mlp,
    "dtypes": tensors.dtypes,
    "multi_io": tensors.multi_io,
    "mixed": tensors.mixed,
    "bytes": tensors.bytes_,
    "scalar_out": tensors.scalar_out,
    "mixed_batch": tensors.mixed_batch,
    "empty_out": tensors.empty_out,
    "shapes": tensors.shapes,
    "vocabulary": tables.vocabulary,
    "fails": tensors.fails,
    "no_default": tensors.no_default,
    "no_inputs": tensors.no_inputs,
    "examples": examples.examples,
    "half_plus_three_tf2": workloads.half_plus_three_tf2,
    "digits_mlp": workloads.digits_mlp,
    "digits_convnet": workloads.digits_convnet,
    "image_size": workloads.image_size,
    "column_sum": workloads.column_sum,
    "rows": rows.rows,
    "functions": rows.functions,
    "keras": files.keras_functional,
    "keras_files": files.keras_files,
    "tflite": files.tflite,
    "tflite_signatures": files.tflite_signatures,
    "tflite_uint8": files.tflite_uint8,
    "tflite_flex": files.tflite_flex,
    "tflite_beside": files.tflite_beside,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BUILDERS))
    options = parser.parse_args()
    for name in options.names or BUILDERS:
        BUILDERS[name](options.folder / name)


if __name__ == "__main__":
    main()
