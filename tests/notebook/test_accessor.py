"""``df.tfserve``: there whichever package is imported first, and free until it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from model_double import ModelDouble, signature

from jupyter_tfserve.notebook.errors import InvalidArgumentError

OUT = {"y": ("float", (-1,))}


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


USE = "print(type(pandas.DataFrame({'a': [1]}).tfserve).__name__)"


@pytest.mark.parametrize(
    "imports",
    [
        "import jupyter_tfserve, pandas",
        "import pandas, jupyter_tfserve",
        "import jupyter_tfserve.errors, pandas.api.types, pandas",
    ],
)
def test_it_is_there_in_either_order(imports: str) -> None:
    assert run(f"{imports}\n{USE}") == "FrameAccessor"


def test_an_extension_of_ipython_has_it_too() -> None:
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'jupyter_tfserve')\n"
        f"import pandas\n{USE}"
    )
    assert run(code) == "FrameAccessor"


def test_neither_package_pays_for_it_before_it_is_used() -> None:
    code = (
        "import json, sys, jupyter_tfserve\n"
        "before = sorted(sys.modules)\n"
        "import pandas\n"
        "print(json.dumps([before, sorted(sys.modules), len(sys.meta_path)]))"
    )
    before, after, finders = json.loads(run(code))
    assert "pandas" not in before
    assert "pandas" in after
    assert not [name for name in after if name.startswith("jupyter_tfserve.notebook")]
    assert finders == json.loads(run("import sys; print(len(sys.meta_path))"))


def test_a_missing_pandas_is_missed_as_ever() -> None:
    code = (
        "import sys, jupyter_tfserve\n"
        "sys.path[:] = []\n"
        "try:\n    import pandas\nexcept ImportError as error:\n    print(error)"
    )
    assert run(code) == "No module named 'pandas'"


@pytest.fixture
def own_server(double: ModelDouble, monkeypatch: pytest.MonkeyPatch) -> ModelDouble:
    """The double as the notebook's own server."""
    monkeypatch.setenv("JUPYTER_TFSERVE_URL", double.url)
    monkeypatch.setenv("JUPYTER_TOKEN", "t")
    info = signature({"x": ("float", (-1, 2))}, OUT)
    double.serve("m", info, lambda x: {"y": x.sum(axis=1)})
    score = signature({"inputs": ("string", (-1,))}, {}, "r", "regress")
    double.serve("m", score, lambda examples: {"outputs": np.ones(len(examples), np.float32)})
    return double


def test_it_predicts_with_the_notebooks_own_server(own_server: ModelDouble) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=["p", "q"])
    answer = frame.tfserve.predict("m")
    assert answer.to_dict() == {"y": {"p": 4.0, "q": 6.0}}
    assert frame.tfserve.predict("m", version=1, columns=["a", "a"]).to_dict()["y"]["q"] == 4.0
    assert frame.tfserve.regress("m").tolist() == [1.0, 1.0]
    assert own_server.received[0].headers["Authorization"] == "token t"


def test_a_signature_is_given_as_such_or_by_its_model(own_server: ModelDouble) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert frame.tfserve.to_instances("m") == [[1.0, 3.0], [2.0, 4.0]]
    info = signature({"b": ("int64", (-1,))}, OUT)
    assert frame.tfserve.to_inputs(info)["b"].tolist() == [3, 4]
    assert frame.tfserve.to_examples() == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    with pytest.raises(InvalidArgumentError, match="list is no signature"):
        frame.tfserve.to_inputs([])
