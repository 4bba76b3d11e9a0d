"""A model of TensorFlow 1 with a vocabulary in a file of its own."""

import tempfile
from pathlib import Path

import tensorflow as tf
from saving import placeholder, predict, tf1


def vocabulary(base: Path) -> None:
    """The line of a word in ``assets/words.txt``, -1 for others; a main op fills the table."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf1.Session() as session:
        words = Path(folder, "words.txt")
        words.write_text("one\ntwo\n")
        asset = tf.constant(str(words), name="words")
        tf1.add_to_collection(tf1.GraphKeys.ASSET_FILEPATHS, asset)
        kinds = tf.lookup.TextFileIndex
        lines = tf.lookup.TextFileInitializer(
            asset, tf.string, kinds.WHOLE_LINE, tf.int64, kinds.LINE_NUMBER
        )
        word = placeholder("word", tf.string, [None])
        found = tf.lookup.StaticHashTable(lines, -1).lookup(word)
        builder = tf1.saved_model.Builder(str(base / "1"))
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.SERVING],
            signature_def_map={"serving_default": predict({"word": word}, {"id": found})},
            assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
            main_op=tf1.tables_initializer(),
        )
        builder.save()
