import os

import pytest

from jupyter_tfserve.pool.core.directory import (
    explain,
    fingerprint,
    list_versions,
    parse_version,
)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("0", 0),
        ("7", 7),
        ("00000123", 123),
        ("20240131235959", 20240131235959),
        (" 5\t", 5),
        ("+5", 5),
        ("-5", -5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("1.0", None),
        ("0x1", None),
        ("1_0", None),
        ("+ 1", None),
        ("--1", None),
        ("v1", None),
        ("2.denied", None),
        ("", None),
        ("\u0663", None),  # a digit, but not ASCII
    ],
)
def test_version_numbers_are_decimal_int64(name, version):
    assert parse_version(name) == version


def test_only_numbered_complete_directories_are_versions(tmp_path, add_version):
    add_version(tmp_path, 1)
    add_version(tmp_path, 2, "saved_model.pbtxt")
    add_version(tmp_path, 3, "model.tflite")
    add_version(tmp_path, 4, "net.keras")
    add_version(tmp_path, 5, "weights.h5")
    add_version(tmp_path, 6, "variables.index")
    add_version(tmp_path, "tmp")
    add_version(tmp_path, ".ipynb_checkpoints")
    (tmp_path / "7").write_text("a file")

    listing = list_versions(str(tmp_path))

    assert listing.versions == {n: str(tmp_path / str(n)) for n in range(1, 6)}
    assert listing.incomplete == (str(tmp_path / "6"), str(tmp_path / "7"))
    assert listing.others == ("tmp",)


@pytest.mark.parametrize("name", ["net.keras", "net.h5", "net.tflite"])
def test_a_model_file_as_the_base_path_is_version_1(tmp_path, name):
    file = tmp_path / name
    with pytest.raises(FileNotFoundError):
        list_versions(str(file))
    file.write_text("model")
    listing = list_versions(str(file))
    assert (listing.versions, listing.incomplete) == ({1: str(file)}, ())
    before = fingerprint(str(file))
    file.write_text("another model")
    assert fingerprint(str(file)) != before


def test_another_file_as_the_base_path_is_no_model(tmp_path):
    file = tmp_path / "saved_model.pb"
    file.write_text("model")
    with pytest.raises(NotADirectoryError):
        list_versions(str(file))


def test_of_two_names_for_one_number_the_last_counts(tmp_path, add_version):
    add_version(tmp_path, "0001")
    add_version(tmp_path, "001")
    assert list_versions(str(tmp_path)).versions == {1: str(tmp_path / "001")}


def test_no_versions_is_explained_by_what_was_found(tmp_path, add_version):
    add_version(tmp_path, "v1")
    text = explain(list_versions(str(tmp_path)), str(tmp_path), "m")
    assert text == (
        f"No versions of servable m found under base path {tmp_path}. Did you forget to name your "
        "leaf directory as a number (eg. '/1/')? Found v1."
    )


def test_many_names_are_cut_short(tmp_path, add_version):
    for number in range(9):
        add_version(tmp_path, f"v{number}")
    text = explain(list_versions(str(tmp_path)), str(tmp_path), "m")
    assert text.endswith("Found v0, v1, v2, v3, v4 and 4 more.")


def test_an_empty_base_path_is_explained(tmp_path):
    assert explain(list_versions(str(tmp_path)), str(tmp_path), "m").endswith("It is empty.")


def test_a_base_path_that_is_a_saved_model_is_recognised(tmp_path):
    (tmp_path / "saved_model.pb").write_text("model")
    text = explain(list_versions(str(tmp_path)), str(tmp_path), "m")
    assert "This folder itself is a SavedModel" in text
    assert f"such as {tmp_path}/1." in text


def test_a_folder_of_model_files_tells_how_to_serve_one(tmp_path):
    (tmp_path / "prices.keras").write_text("model")
    text = explain(list_versions(str(tmp_path)), str(tmp_path), "m")
    assert text.endswith(f"give its own path, such as {tmp_path}/prices.keras.")


def test_an_incomplete_version_is_explained_beside_complete_ones(tmp_path, add_version):
    add_version(tmp_path, 1)
    add_version(tmp_path, 2, "part")
    text = explain(list_versions(str(tmp_path)), str(tmp_path), "m")
    assert text.startswith(f"{tmp_path}/2 holds no complete model (yet)")


def test_all_well_needs_no_explanation(tmp_path, add_version):
    add_version(tmp_path, 1)
    add_version(tmp_path, "tmp")
    assert explain(list_versions(str(tmp_path)), str(tmp_path), "m") is None


def test_fingerprint_sees_growth_below_the_top_level(tmp_path, add_version):
    version = add_version(tmp_path, 1)
    data = version / "variables" / "variables.data"
    data.parent.mkdir()
    data.write_bytes(b"half")
    before = fingerprint(str(version))
    assert fingerprint(str(version)) == before

    data.write_bytes(b"whole")
    assert fingerprint(str(version)) != before


def test_fingerprint_sees_a_file_rewritten_at_the_same_size(tmp_path, add_version):
    version = add_version(tmp_path, 1)
    before = fingerprint(str(version))
    os.utime(version / "saved_model.pb", ns=(1, 1))
    assert fingerprint(str(version)) != before


def test_fingerprint_of_nothing_is_no_error(tmp_path):
    assert fingerprint(str(tmp_path / "gone")) == fingerprint(str(tmp_path / "gone too"))
