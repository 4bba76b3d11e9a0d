"""Keras files: exported once, called by the names of their layers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.pool.servables import keras_file
from jupyter_tfserve.pool.servables.kinds import Kind, find_model
from jupyter_tfserve.pool.servables.loaders import PathLoader

if TYPE_CHECKING:
    from jupyter_tfserve.pool.servables.base import Servable


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "tfserve" / "keras"


def load(path: Path) -> Servable:
    return PathLoader(str(path)).load()


def test_layers_give_names_and_dtypes(model_dir: Path) -> None:
    servable = load(model_dir / "keras" / "1")
    signature = servable.signatures["serving_default"]
    inputs = {name: (info.dtype, info.shape) for name, info in signature.inputs.items()}
    assert inputs == {"age": ("int32", (-1, 1)), "text": ("string", (-1, 1))}
    assert list(signature.outputs) == ["score"]
    given = {
        "age": np.array([[3], [40]], np.int32),
        "text": np.array([[b"b"], [b"a"]], object),
    }
    score = servable.call("serving_default", given)["score"]
    np.testing.assert_array_equal(score, np.array([[5.0], [41.0]]))
    servable.close()


def test_a_file_is_exported_once_wherever_it_lies(
    model_dir: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(model_dir / "keras_files" / "double.h5").close()
    (export,) = cache.iterdir()
    copyfile(model_dir / "keras_files" / "double.h5", tmp_path / "copy.h5")
    monkeypatch.setattr(keras_file, "_export", None)  # nothing is left to do
    servable = load(tmp_path / "copy.h5")
    x = np.array([[1, 2]], np.float32)
    np.testing.assert_array_equal(servable.call("serving_default", {"x": x})["y"], x * 2)
    assert list(cache.iterdir()) == [export]
    servable.close()


def test_a_cache_that_cannot_be_written_holds_nothing_up(model_dir: Path, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("in the way")
    servable = load(model_dir / "keras_files" / "double.keras")
    x = np.array([[1, 2]], np.float32)
    np.testing.assert_array_equal(servable.call("serving_default", {"x": x})["y"], x * 2)
    servable.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own_layer.keras", "Could not locate class '_Own'. Make sure custom classes"),
        ("no_inputs.keras", "has no fixed inputs. Give it an Input layer and save it again"),
    ],
)
def test_a_model_that_keras_cannot_load_is_refused_with_the_reason(
    model_dir: Path, cache: Path, name: str, words: str
) -> None:
    file = model_dir / "keras_files" / name
    with pytest.raises(ServingError, match="Keras cannot load ") as refused:
        load(file)
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert str(file) in refused.value.message
    assert words in refused.value.message
    assert list(cache.iterdir()) == []


def test_half_a_file_is_told_from_a_model(model_dir: Path, tmp_path: Path) -> None:
    whole = (model_dir / "keras_files" / "double.keras").read_bytes()
    half = tmp_path / "double.keras"
    half.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ServingError, match="is damaged or not yet complete") as refused:
        load(half)
    assert refused.value.code is Code.DATA_LOSS


def test_a_file_that_is_changed_meanwhile_is_refused(
    model_dir: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "double.keras"
    copyfile(model_dir / "keras_files" / "double.keras", file)

    def export(_file: str, target: Path) -> None:
        target.mkdir()
        os.utime(file, ns=(1, 1))

    monkeypatch.setattr(keras_file, "_export", export)
    with pytest.raises(ServingError, match="was changed while it was loaded"):
        load(file)
    assert list(cache.iterdir()) == []


def test_old_exports_make_room_and_fresh_ones_stay(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras_file, "_MAX_EXPORTS", 2)
    monkeypatch.setattr(keras_file, "_key", lambda file: Path(file).stem)
    monkeypatch.setattr(keras_file, "_export", lambda _file, target: target.mkdir())
    day_ago = time.time() - 86_400
    for name in ("a", "b", "c", "d"):
        file = tmp_path / f"{name}.h5"
        file.write_bytes(b"model")
        with keras_file.exported(str(file)):
            pass
        if name != "c":
            os.utime(cache / name, (day_ago, day_ago))
            day_ago += 1
    file = tmp_path / "e.h5"
    file.write_bytes(b"model")
    with keras_file.exported(str(file)) as folder:
        assert folder == str(cache / "e")
    assert sorted(path.name for path in cache.iterdir()) == ["c", "e"]


def test_which_kind_a_directory_holds(tmp_path: Path) -> None:
    kinds = {
        "a": (["saved_model.pb", "model.keras", "model.tflite"], Kind.SAVED_MODEL),
        "b": (["saved_model.pbtxt"], Kind.SAVED_MODEL),
        "c": (["net.h5", "model.tflite"], Kind.KERAS),
        "d": (["model.tflite", "notes.txt"], Kind.TFLITE),
        "e": ([], Kind.SAVED_MODEL),
    }
    for folder, (names, kind) in kinds.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
        assert find_model(str(tmp_path / folder))[0] is kind
        if "model.tflite" in names:
            assert find_model(str(tmp_path / folder), prefer_tflite=True)[0] is Kind.TFLITE
    (tmp_path / "c" / "second.keras").touch()
    with pytest.raises(ServingError, match=r"holds 2 Keras files: net\.h5, second\.keras"):
        find_model(str(tmp_path / "c"))
