"""TFRecord files, by TensorFlow's own reader and writer: checksums and words are its."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import tensorflow as tf

from .session_call import serving_error


def read_records(path: str) -> Iterator[bytes]:
    """The records of a file, one after the other.

    Raises:
        ServingError: DATA_LOSS where the file is damaged or of another format; NOT_FOUND.
    """
    try:
        # The reader that TensorFlow recommends instead wraps every error in its own words.
        yield from tf.compat.v1.io.tf_record_iterator(path)
    except tf.errors.OpError as error:
        raise serving_error(error) from error


def write_records(path: str, records: Iterable[bytes]) -> None:
    """Write a new file.

    Raises:
        ServingError: with the file system's reason.
    """
    try:
        with tf.io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)
    except tf.errors.OpError as error:
        raise serving_error(error) from error
