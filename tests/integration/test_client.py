"""The client and pandas with real models, through both servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import servers

from jupyter_tfserve.notebook.async_client import AsyncClient
from jupyter_tfserve.notebook.client import Client
from jupyter_tfserve.notebook.errors import (
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)

MODELS = (
    "half_plus_three",
    "mlp",
    "dtypes",
    "mixed",
    "scalar_out",
    "examples",
    "bytes",
    "my model",
)
DTYPES = {
    "float32": np.float32([0.1, -0.0, 1e-40, 3.4e38, np.inf, np.nan]),
    "float64": np.array([0.1, 5e-324, 1.7e308, -np.inf, np.nan]),
    "int8": np.int8([-128, 127]),
    "int16": np.int16([-(2**15), 2**15 - 1]),
    "int32": np.int32([-(2**31), 2**31 - 1]),
    "int64": np.array([-(2**63), 2**63 - 1, 2**53 + 1]),
    "uint8": np.uint8([0, 255]),
    "uint32": np.uint32([0, 2**32 - 1]),
    "uint64": np.uint64([0, 2**64 - 1]),
    "bool": np.array([True, False]),
}


@pytest.fixture(scope="module", params=["standalone", "jupyter"])
def client(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    model_dir: Path,
) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("server")
    config = folder / "models.config"
    entry = 'config {{ name: "{}" base_path: "{}" model_platform: "tensorflow" }}\n'
    entries = "".join(entry.format(name, model_dir / name) for name in MODELS)
    config.write_text(f"model_config_list {{\n{entries}}}\n")
    if request.param == "standalone":
        running = servers.standalone(folder, f"--model_config_file={config}")
    else:
        running = servers.jupyter(folder, f"--PoolManager.model_config_file={config}")
    with running as server:
        server.wait_for(*MODELS)
        token = "" if request.param == "standalone" else servers.TOKEN
        with Client(server.url, token) as made:
            yield made


def is_jupyter(client: Client) -> bool:
    return bool(client.server.token)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back_exactly(client: Client, dtype: str) -> None:
    """O10 and O09 through a real model, small and large."""
    for values in (DTYPES[dtype], np.tile(DTYPES[dtype], 2000)):
        answer = client.predict("dtypes", values, signature=dtype)
        assert answer.dtype == values.dtype
        assert answer.tobytes() == values.tobytes()
        frame = pd.DataFrame({"x": values})
        got = client.predict("dtypes", frame, signature=dtype)["y"].to_numpy()
        np.testing.assert_array_equal(got, values)


def test_bytes_and_text(client: Client) -> None:
    data = np.array([bytes(range(256)), b""], object)
    assert client.predict("bytes", data).tolist() == data.tolist()
    assert client.predict("bytes", [{"b64": "-__-"}]).tolist() == [b"\xfb\xff\xfe"]
    assert client.predict("bytes", ["é"], signature="text").tolist() == ["é"]


def test_a_frame_of_several_kinds(client: Client) -> None:
    frame = pd.DataFrame(
        {
            "id": [7, 8],
            "k": pd.array([1, None], "Int64"),
            "flag": [True, False],
            "name": pd.Categorical(["é", "b"]),
            "v": [[1, 2], np.float32([3, 4])],
        },
        index=["p", "q"],
    )
    with pytest.raises(InvalidArgumentError) as error:
        client.predict("mixed", frame)
    assert error.value.where == "column 'k', row 1 (index 'q')"
    answer = client.predict("mixed", frame, missing={"k": 2**60})
    assert answer.to_dict("index") == {
        "p": {"flag_out": False, "k_out": 2, "name_out": "éé", "v_out_0": 2.0, "v_out_1": 4.0},
        "q": {
            "flag_out": True,
            "k_out": 2**60 + 1,
            "name_out": "bb",
            "v_out_0": 6.0,
            "v_out_1": 8.0,
        },
    }


def test_many_rows_in_pieces_are_the_same_as_at_once(client: Client) -> None:
    rows = np.random.default_rng(0).standard_normal((3000, 16)).astype(np.float32)
    at_once = client.predict("mlp", rows)
    frame = pd.DataFrame(rows, columns=[f"f{at}" for at in range(16)])
    pieces = client.predict("mlp", frame, chunk_bytes=50_000, progress=False)
    assert list(pieces.columns) == [f"output_0_{at}" for at in range(4)]
    np.testing.assert_allclose(pieces.to_numpy(), at_once, rtol=1e-5)
    with pytest.raises(InvalidArgumentError, match="takes 16 columns, and the frame has 15"):
        client.predict("mlp", frame.drop(columns="f3"))


def test_scalars_and_models_without_a_declared_batch(client: Client) -> None:
    """O06: the form that the outputs need."""
    answer = client.predict("scalar_out", [1.0, 2.0], signature="scalar_and_vec")
    assert answer["s"] == 3.0
    assert answer["x2"].tolist() == [2.0, 4.0]
    assert client.predict("half_plus_three", [1.0, 2.0, 5.0]).tolist() == [3.5, 4.0, 5.5]
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    assert client.predict("half_plus_three", frame)["y"].tolist() == [3.5, 4.0]


def test_examples_in_all_their_forms(client: Client) -> None:
    """O04: classify, regress, and serialised for predict."""
    frame = pd.DataFrame(
        {"age": [1.0, 2.0], "n": [3, 4], "name": ["a", "b"], "tags": [["x"], ["y", "z"]]},
        index=["p", "q"],
    )
    scores = client.classify("examples", frame)
    assert scores.loc["q"].tolist() == ["b", 2.0, "4", 4.0]
    values = client.regress("examples", frame, signature="regress")
    assert values.to_dict() == {"p": 10.0, "q": 16.0}
    serialized = np.array(frame.tfserve.to_examples(serialized=True), object)
    assert client.predict("examples", serialized, signature="predict").tolist() == [[10.0], [16.0]]
    with pytest.raises(InvalidArgumentError, match=r"tf\.Example"):
        client.predict("examples", frame, signature="predict")


def test_errors_have_the_servers_text_and_the_signature(client: Client) -> None:
    with pytest.raises(NotFoundError, match=r"Servable not found for request: Latest\(nope\)"):
        client.predict("nope", [1.0])
    with pytest.raises(NotFoundError):
        client.status("nope")
    with pytest.raises(InvalidArgumentError) as error:
        client.predict("mlp", np.zeros((2, 3)))
    assert error.value.status == 400
    assert error.value.where == "shape [2, 3] for x: float [?, 16]"
    assert "serving_default takes x: float [?, 16]" in str(error.value)


def test_names_that_need_encoding(client: Client) -> None:
    """O11."""
    assert client.predict("my model", [2.0]).tolist() == [20.0]
    assert client.versions("my model") != []


def test_management_is_there_or_said_to_be_missing(client: Client) -> None:
    if not is_jupyter(client):
        with pytest.raises(UnimplementedError, match="can be managed"):
            client.models()
        return
    assert {model["name"] for model in client.models()} == set(MODELS)
    (version,) = client.versions("mlp")
    assert client.set_label("mlp", "stable", version) == {"stable": version}
    assert client.labels("mlp") == {"stable": version}
    rows = np.zeros((1, 16), np.float32)
    assert client.predict("mlp", rows, label="stable").shape == (1, 4)
    assert client.delete_label("mlp", "stable") == {}
    with pytest.raises(PermissionDeniedError, match="token"):
        Client(client.server.url, "wrong").status("mlp")


async def test_the_async_client(client: Client) -> None:
    async with AsyncClient(client.server.url, client.server.token) as calls:
        answer: Any = await calls.predict("half_plus_three", [1.0])
        assert answer.tolist() == [3.5]
