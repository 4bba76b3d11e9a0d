"""The README's section on DataFrames in a notebook's kernel: what it shows is what one gets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel
from servers import PATIENCE_S, jupyter

README = Path(__file__).parents[2] / "README.md"
PRICES = """
%load_ext jupyter_tfserve
import numpy as np
from jupyter_tfserve import Signature
def prices(rooms, area, city):
    price = 1000 * rooms.astype("float32") + 50 * area + 500 * (city == b"Oslo")
    price = price.astype("float32")
    return {"price": price, "range": np.stack([price * 0.9, price * 1.1], axis=1)}
""".lstrip()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run a cell in a kernel beside a Jupyter server; returns what it shows."""
    with jupyter(tmp_path_factory.mktemp("server")) as server:
        environment = os.environ | {"JUPYTER_RUNTIME_DIR": str(server.folder / "runtime")}
        environment.pop("JPY_PARENT_PID", None)
        manager, client = start_new_kernel(env=environment, startup_timeout=PATIENCE_S)

        def run(code: str) -> str:
            shown: list[str] = []

            def output(message: dict[str, Any]) -> None:
                content = message["content"]
                if message["msg_type"] == "execute_result":
                    shown.append(content["data"]["text/plain"])
                elif message["msg_type"] == "error":
                    shown.append("\n".join(content["traceback"]))

            client.execute_interactive(code, output_hook=output, timeout=PATIENCE_S)
            return "\n".join(shown)

        try:
            yield run
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def blocks() -> list[tuple[str, str]]:
    """Each Python block of the section, and the output that follows it."""
    section = README.read_text().partition("## From a DataFrame")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```\n```\n(.*?)```", section, re.DOTALL)


def test_three_lines_from_a_model_in_memory_to_a_frame(run: Any) -> None:
    assert run(f"{PRICES}def model(x): return {{'y': x.sum(axis=1)}}") == ""
    assert (
        run(
            "from jupyter_tfserve import publish\n"
            "publish(model, signatures=Signature(\n"
            "    {'x': ('float32', [-1, 2])}, {'y': ('float32', [-1])}))\n"
            "import pandas as pd\n"
            "pd.DataFrame({'a': [1, 2], 'b': [3, 4]}, index=['p', 'q']).tfserve.predict('model')"
        )
        == "     y\np  4.0\nq  6.0"
    )


def test_the_readme_shows_what_one_gets(run: Any) -> None:
    published = run(
        f"{PRICES}"
        "from jupyter_tfserve import publish\n"
        "publish(prices, signatures=Signature(\n"
        "    {'rooms': ('int64', [-1]), 'area': ('float32', [-1]), 'city': ('string', [-1])},\n"
        "    {'price': ('float32', [-1]), 'range': ('float32', [-1, 2])}))"
    )
    assert "AVAILABLE prices version 1" in published
    found = blocks()
    assert len(found) == 2
    for code, output in found:
        assert run(code).strip() == output.strip()
