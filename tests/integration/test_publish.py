"""Models published from notebooks: real kernels of a real server, asked from outside."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from servers import PATIENCE_S, Server, jupyter, until

MODEL = """
import numpy as np, tensorflow as tf
from jupyter_tfserve import Signature, publish, publish_async, unpublish
get_ipython().run_line_magic("load_ext", "jupyter_tfserve")
def line(slope):
    x = tf.keras.Input((1,), name="x")
    model = tf.keras.Model(x, tf.keras.layers.Dense(1, name="y")(x))
    model.set_weights([np.array([[slope]]), np.zeros(1)])
    return model
model = line(2.0)
"""


def run(client: BlockingKernelClient, code: str) -> str:
    """All that a cell shows, errors too."""
    shown: list[str] = []

    def output(message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            shown.append(content["text"])
        elif message["msg_type"] in ("execute_result", "display_data"):
            shown.append(content["data"]["text/plain"])
        elif message["msg_type"] == "error":
            shown.append("\n".join(content["traceback"]))

    client.execute_interactive(code, output_hook=output, timeout=PATIENCE_S)
    return "\n".join(shown)


class Notebook:
    """A notebook's kernel, as the server starts it for a page."""

    def __init__(self, server: Server, path: str) -> None:
        self.server = server
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        status, answer = server.ask("POST", "/api/sessions", body)
        assert status == 201, answer
        session = json.loads(answer)
        self.id, self.kernel = session["id"], session["kernel"]["id"]
        self._connect()

    def _connect(self) -> None:
        file = self.server.folder / "runtime" / f"kernel-{self.kernel}.json"
        self.client = BlockingKernelClient(connection_file=str(file))
        self.client.load_connection_file()
        self.client.start_channels()
        until(self._speaks, "the kernel runs")

    def _speaks(self) -> bool:
        self.client.kernel_info()
        try:
            self.client.get_iopub_msg(timeout=1)
        except Empty:
            return False
        return True

    def run(self, code: str) -> str:
        """All that a cell shows, errors too."""
        return run(self.client, code)

    def begin(self, code: str) -> None:
        """Start a cell, and return once it runs."""
        self.client.execute(f"print('begun', flush=True)\n{code}")
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["msg_type"] == "stream" and "begun" in message["content"]["text"]:
                return

    def pid(self) -> int:
        return int(self.run("import os; print(os.getpid())"))

    def interrupt(self) -> None:
        """End the cell that runs, and return once the next one can."""
        self.server.ask("POST", f"/api/kernels/{self.kernel}/interrupt", {})
        until(lambda: "ready" in self.run("print('ready')"), "the cell has ended")

    def restart(self) -> None:
        self.client.stop_channels()
        assert self.server.ask("POST", f"/api/kernels/{self.kernel}/restart", {})[0] == 200
        self._connect()

    def close(self) -> None:
        self.client.stop_channels()
        self.server.ask("DELETE", f"/api/sessions/{self.id}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def notebook(server: Server) -> Iterator[Notebook]:
    """One kernel for all tests that leave it alive."""
    opened = Notebook(server, "train.ipynb")
    assert opened.run(MODEL) == ""
    yield opened
    opened.close()


def versions(server: Server, name: str) -> dict[int, str]:
    """The states of a model by version, as TensorFlow Serving tells them."""
    status, body = server.ask("GET", f"/v1/models/{name}")
    assert status == 200, body
    told = json.loads(body)["model_version_status"]
    return {int(version["version"]): version["state"] for version in told}


def test_a_model_answers_by_its_variables_name_until_it_is_unpublished(
    server: Server, notebook: Notebook
) -> None:
    shown = notebook.run("%tfserve publish model")
    assert "● AVAILABLE model version 1" in shown
    assert f"POST {server.url}v1/models/model:predict" in shown
    assert server.predict("model", [[1.0], [3.0]]) == (200, {"predictions": [[2.0], [6.0]]})
    metadata = server.ask("GET", "/v1/models/model/metadata")[1]
    signature = json.loads(metadata)["metadata"]["signature_def"]["signature_def"]
    assert set(signature["serving_default"]["inputs"]) == {"x"}
    rows = notebook.run("%tfserve status").splitlines()
    (row,) = [row for row in rows if row.startswith("model ")]
    assert "● AVAILABLE" in row
    assert "train.ipynb" in row
    assert "model is no longer served" in notebook.run("%tfserve unpublish model")
    rows = notebook.run("%tfserve status").splitlines()
    assert not [row for row in rows if row.startswith("model ")]
    assert versions(server, "model") == {1: "END"}
    assert server.predict("model", [[1.0]])[0] == 404


@pytest.mark.parametrize(
    "cell",
    ["import time; time.sleep(600)", "while True: pass"],
    ids=["sleeping", "busy"],
)
def test_it_answers_while_a_cell_runs(server: Server, notebook: Notebook, cell: str) -> None:
    notebook.run("publish(model, 'meanwhile')")
    notebook.begin(cell)
    try:
        for _ in range(20):
            start = time.monotonic()
            assert server.predict("meanwhile", [[4.0]]) == (200, {"predictions": [[8.0]]})
            assert time.monotonic() - start < 5
        assert versions(server, "meanwhile") != {}
    finally:
        notebook.interrupt()


def test_publishing_again_makes_the_next_version_and_no_call_fails(
    server: Server, notebook: Notebook
) -> None:
    assert "version 1" in notebook.run("publish(line(1.0), 'again')")
    notebook.begin("for slope in range(2, 12): publish(line(float(slope)), 'again')")
    seen = set()

    def done() -> bool:
        status, answer = server.predict("again", [[1.0]])
        assert status == 200, answer
        seen.add(answer["predictions"][0][0])
        return answer["predictions"] == [[11.0]]

    until(done, "the last version answers")
    assert seen <= {float(slope) for slope in range(1, 12)}
    states = until(
        lambda: (told := versions(server, "again"))[10] == "END" and told, "the old version ends"
    )
    assert states[11] == "AVAILABLE"
    shown = notebook.run("publish(line(0.0), 'again', version=40).version")
    assert shown == "40"
    assert "Version 40 of model again was published before" in notebook.run(
        "publish(model, 'again', version=40)"
    )


def test_frozen_weights_stay_and_followed_ones_do_not(server: Server, notebook: Notebook) -> None:
    notebook.run(
        "trained = line(2.0)\n"
        "%tfserve publish trained --name frozen\n"
        "%tfserve publish trained --name live --follow\n"
        "trained.set_weights([np.array([[7.0]]), np.zeros(1)])"
    )
    assert server.predict("frozen", [[1.0]]) == (200, {"predictions": [[2.0]]})
    assert server.predict("live", [[1.0]]) == (200, {"predictions": [[7.0]]})


def test_it_works_within_a_running_event_loop_in_both_forms(
    server: Server, notebook: Notebook
) -> None:
    shown = notebook.run(
        "import asyncio\n"
        "assert asyncio.get_running_loop().is_running()\n"
        "publish(model, name='loop')\n"
        "await publish_async(model, name='loop')\n"
        "(await publish_async(model, name='loop')).version"
    )
    assert shown == "3"
    assert server.predict("loop", [[1.0]]) == (200, {"predictions": [[2.0]]})


def test_a_plain_function_answers_with_what_it_declared(server: Server, notebook: Notebook) -> None:
    notebook.run(
        "def total(x): return x.sum(axis=1)\n"
        "publish(total, signatures=Signature(\n"
        "    {'x': ('float32', [-1, 2])}, {'y': ('float32', [-1])}))"
    )
    assert server.predict("total", [[1.0, 2.0]]) == (200, {"predictions": [3.0]})
    status, answer = server.predict("total", [[1.0, 2.0, 3.0]])
    assert status == 400
    assert "Input x has shape [1,3], expected [?,2]" in answer["error"]


def test_a_publishing_kernels_tensorflow_is_left_as_it_is(notebook: Notebook) -> None:
    shown = notebook.run(
        "import os; print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'), tf.get_logger().level)"
    )
    # What the kernel has inherited, and TensorFlow's own default.
    assert shown.split() == [str(os.environ.get("TF_CPP_MIN_LOG_LEVEL")), str(logging.INFO)]


def test_a_name_belongs_to_the_one_who_has_it(
    server: Server, notebook: Notebook, model_dir: Path
) -> None:
    notebook.run("publish(model, 'taken')")
    other = Notebook(server, "other.ipynb")
    try:
        other.run(MODEL)
        refused = other.run("%tfserve publish model --name taken")
        assert "Model taken is already served by train.ipynb." in refused
        assert "Traceback" not in refused
        body = {"name": "onfile", "base_path": str(model_dir / "half_plus_three")}
        assert server.ask("POST", "/tfserve/api/models", body)[0] == 201
        refused = other.run("%tfserve publish model --name onfile")
        assert "Model onfile is configured in the server, with base path" in refused
        assert server.predict("onfile", [2.0]) == (200, {"predictions": [4.0]})
        # Whoever may change the server's models may withdraw it, from anywhere.
        assert "taken is no longer served" in other.run("%tfserve unload taken")
        assert server.predict("taken", [[1.0]])[0] == 404
        assert "version 1" in other.run("%tfserve publish model --name taken")
        assert server.predict("taken", [[1.0]]) == (200, {"predictions": [[2.0]]})
    finally:
        server.ask("DELETE", "/tfserve/api/models/onfile")
        other.close()


@pytest.mark.parametrize("how", ["killed", "restarted", "closed"])
def test_with_its_kernel_a_model_ends_visibly_and_leaves_nothing(server: Server, how: str) -> None:
    notebook = Notebook(server, f"{how}.ipynb")
    before = set(server.leftovers())
    notebook.run(MODEL)
    assert "version 1" in notebook.run("publish(model, 'mortal')")
    assert server.predict("mortal", [[1.0]])[0] == 200
    if how == "killed":
        os.kill(notebook.pid(), signal.SIGKILL)
    elif how == "restarted":
        notebook.restart()
    else:
        notebook.close()
    until(lambda: server.predict("mortal", [[1.0]])[0] == 404, "the end is seen")
    words = f"the kernel that published it ({how}.ipynb) has ended"
    assert words in server.predict("mortal", [[1.0]])[1]["error"]
    assert set(versions(server, "mortal").values()) == {"END"}
    models = json.loads(server.ask("GET", "/tfserve/api/models")[1])["models"]
    (mortal,) = [model for model in models if model["name"] == "mortal"]
    assert words[1:] in mortal["versions"][0]["error"]

    def cleared() -> bool:
        server.ask("GET", "/tfserve/api/pools")  # which looks for announcements
        return set(server.leftovers()) == before

    until(cleared, "nothing is left of it")
    if how == "restarted":
        notebook.run(MODEL)
        assert "▲ END, error" in notebook.run("%tfserve status")
        assert "version 1" in notebook.run("publish(model, 'mortal')")
        assert server.predict("mortal", [[1.0]]) == (200, {"predictions": [[2.0]]})
        notebook.close()


def test_a_kernel_that_outlives_its_server_publishes_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    manager, client = start_new_kernel(startup_timeout=PATIENCE_S, kernel_name="python3")
    try:
        run(client, MODEL)
        with jupyter(tmp_path) as first:
            # This kernel is no child of the server: it is found by the server's file.
            assert "version 1" in run(client, "publish(model, 'm')")
            assert first.predict("m", [[1.0]]) == (200, {"predictions": [[2.0]]})
            first.terminate()
            until(lambda: first.leftovers() == [], "the pool withdraws")
        assert "Start one with: jupyter lab" in run(client, "publish(model, 'm')")
        with jupyter(tmp_path) as second:
            assert second.ask("GET", "/v1/models/m")[0] == 404
            assert "version 1" in run(client, "publish(model, 'm')")
            assert second.predict("m", [[1.0]]) == (200, {"predictions": [[2.0]]})
            second.terminate()
            until(lambda: second.leftovers() == [], "the pool withdraws again")
        assert run(client, "1 + 1") == "2"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%tfserve publish", "Usage: %tfserve publish MODEL"),
        ("%tfserve publish model --freeze --follow", "not allowed with"),
        ("%tfserve publish len", "needs a signature"),
        ("%tfserve publish model.nothing", "nothing"),
        ("%tfserve publish line(1.0) --name ''", "no name of its own"),
        ("%tfserve unpublish nobody", "Model nobody is not published here"),
    ],
)
def test_what_cannot_be_is_answered_in_words(notebook: Notebook, line: str, words: str) -> None:
    assert words in notebook.run(line)


# Labels -------------------------------------------------------------------------------------------


def test_a_version_with_a_label_is_served_beside_the_next(
    server: Server, notebook: Notebook
) -> None:
    shown = notebook.run("one = line(1.0)\n%tfserve publish one --name labelled --label stable")
    assert "labelled version 1, label stable" in shown
    assert "version 2" in notebook.run("publish(line(2.0), 'labelled')")
    stable = "/v1/models/labelled/labels/stable:predict"
    rows: dict[str, Any] = {"instances": [[1.0]]}

    def answer(path: str) -> Any:
        status, body = server.ask("POST", path, rows)
        return status, json.loads(body).get("predictions")

    assert answer(stable) == (200, [[1.0]])
    assert answer("/v1/models/labelled:predict") == (200, [[2.0]])
    assert versions(server, "labelled") == {2: "AVAILABLE", 1: "AVAILABLE"}
    (row,) = [row for row in notebook.run("%tfserve status labelled").splitlines() if "stab" in row]
    assert row.split()[0] == "1"
    shown = notebook.run("%tfserve label labelled stable 2")
    assert shown == f"● stable is version 2 of labelled\nPOST {server.url}{stable[1:]}"
    assert answer(stable) == (200, [[2.0]])
    until(lambda: versions(server, "labelled")[1] == "END", "the old version goes")
    shown = notebook.run("%tfserve label labelled stable --remove")
    assert shown == "□ stable is no label of labelled any more"
    status, body = server.ask("POST", stable, rows)
    assert status == 400
    assert b"Unrecognized servable version label: stable" in body


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%tfserve label labelled stable", "Usage: %tfserve label NAME LABEL VERSION"),
        ("%tfserve label labelled stable one", "Usage: %tfserve label NAME LABEL VERSION"),
        ("%tfserve label nobody stable 1", "Model nobody is not configured"),
        ("%tfserve label labelled none --remove", "Model labelled has no label none"),
        (
            "%tfserve label labelled stable 99",
            "Request to assign label to version 99 of model labelled, which is not currently",
        ),
        ("publish(model, 'labelled', labels={'x': 99})", "label to version 99 of model labelled"),
    ],
)
def test_a_label_that_cannot_be_is_answered_in_words(
    server: Server, notebook: Notebook, line: str, words: str
) -> None:
    notebook.run("publish(model, 'labelled')")
    assert words in notebook.run(line)


# To the server's own pool -------------------------------------------------------------------------


def test_a_published_model_moves_to_the_servers_pool_without_a_gap(
    server: Server, notebook: Notebook
) -> None:
    """O14: what is saved keeps the names of layers and the dtypes of inputs."""
    notebook.run(
        "age = tf.keras.Input((1,), name='age', dtype='int32')\n"
        "text = tf.keras.Input((1,), name='text', dtype='string')\n"
        "look = tf.keras.layers.StringLookup(vocabulary=['a', 'b'])(text)\n"
        "both = [tf.keras.ops.cast(part, 'float32') for part in (age, look)]\n"
        "score = tf.keras.layers.Add(name='score')(both)\n"
        "scorer = tf.keras.Model([age, text], score)\n"
        "%tfserve publish scorer"
    )
    body = {"inputs": {"age": [[3]], "text": [["b"]]}}

    def ask() -> None:
        assert server.ask("POST", "/v1/models/scorer:predict", body) == (200, before)

    status, before = server.ask("POST", "/v1/models/scorer:predict", body)
    assert (status, json.loads(before)) == (200, {"outputs": [[5.0]]})
    notebook.begin("shown = get_ipython().run_line_magic('tfserve', 'publish scorer --to managed')")
    until(lambda: ask() or owner(server, "scorer")["kind"] == "managed", "it has moved")
    ask()
    rows = notebook.run("%tfserve status scorer").splitlines()
    assert any("2  ● AVAILABLE" in row and "managed" in row for row in rows)
    signature = json.loads(server.ask("GET", "/v1/models/scorer/metadata")[1])["metadata"]
    inputs = signature["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert {name: told["dtype"] for name, told in inputs.items()} == {
        "age": "DT_INT32",
        "text": "DT_STRING",
    }
    folder = server.folder / "data" / "tfserve" / "published" / "scorer"
    assert [path.name for path in folder.iterdir()] == ["2"]
    assert "Model scorer is not published here" in notebook.run("%tfserve unpublish scorer")
    assert "version 3" in notebook.run("publish(scorer, 'scorer', to='managed')")
    ask()
    refused = notebook.run("%tfserve publish scorer")
    assert "Model scorer is configured in the server, with base path" in refused
    assert "no longer served" in notebook.run("%tfserve unload scorer")
    assert "● AVAILABLE scorer" in notebook.run("%tfserve publish scorer")


def owner(server: Server, name: str) -> dict[str, Any]:
    models = json.loads(server.ask("GET", "/tfserve/api/models")[1])["models"]
    return next(model["owner"] for model in models if model["name"] == name)


def test_signatures_are_kept_on_the_way_to_the_servers_pool(
    server: Server, notebook: Notebook
) -> None:
    shown = notebook.run(
        "class Both(tf.Module):\n"
        "    def __init__(self): self.by = tf.Variable(3.0)\n"
        "    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, 'x')])\n"
        "    def times(self, x): return {'product': x * self.by}\n"
        "    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, 'n')])\n"
        "    def twice(self, n): return {'double': n + n}\n"
        "both = Both()\n"
        "%tfserve publish both --name 'a/b ..' --to managed "
        "--signatures {'serving_default':both.times,'twice':both.twice}"
    )
    assert "a/b .. version 1" in shown
    path = "/v1/models/a%2Fb%20..:predict"
    answer = server.ask("POST", path, {"instances": [2.0]})
    assert (answer[0], json.loads(answer[1])) == (200, {"predictions": [6.0]})
    answer = server.ask("POST", path, {"instances": [2], "signature_name": "twice"})
    assert (answer[0], json.loads(answer[1])) == (200, {"predictions": [4]})
    assert (server.folder / "data/tfserve/published/a%2Fb%20../1/saved_model.pb").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "publish(len, signatures=Signature({'x': ('int32', [-1])}, {'y': ('int32', [])}), "
            "to='managed')",
            "a plain Python function cannot be saved",
        ),
        ("%tfserve publish model --to managed --follow", "cannot follow the weights in memory"),
        ("%tfserve publish model --to managed --label l", "Labels cannot be given on the way"),
        ("%tfserve publish model --to elsewhere", "invalid choice"),
        ("publish(model, to='elsewhere')", "to is 'managed', or left out"),
        ("publish(line(1.0), to='managed', name='')", "no name of its own"),
    ],
)
def test_what_cannot_move_is_answered_in_words_and_leaves_nothing(
    server: Server, notebook: Notebook, line: str, words: str
) -> None:
    assert words in notebook.run(line)
    folder = server.folder / "data" / "tfserve" / "published"
    assert not (folder / "model").exists()
    assert not (folder / "len").exists() or not [*(folder / "len").iterdir()]
