"""Which server a notebook finds, and what it is told when there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_tfserve.notebook.servers import NoServerError, Server, find_server, server_pid

Announce = Callable[..., None]


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (
        "JUPYTER_TFSERVE_URL",
        "JUPYTER_TOKEN",
        "JPY_PARENT_PID",
        "JUPYTERHUB_API_TOKEN",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def announce(runtime: Path) -> Announce:
    def announce(pid: int, url: str, token: str = "t") -> None:
        data = {"pid": pid, "url": url, "token": token}
        (runtime / f"jpserver-{pid}.json").write_text(json.dumps(data))

    return announce


def test_the_server_that_started_the_kernel_comes_first(
    announce: Announce, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(os.getpid(), "http://localhost:1/")
    announce(os.getppid(), "http://localhost:2/user/a%40b/", "own")
    monkeypatch.setenv("JPY_PARENT_PID", str(os.getppid()))
    assert find_server() == Server("http://localhost:2/user/a%40b/", "own")


def test_the_only_server_will_do(announce: Announce) -> None:
    announce(os.getpid(), "http://localhost:1/", "t")
    assert find_server().headers == {"Authorization": "token t"}


def test_a_server_named_in_the_environment_wins(
    announce: Announce, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(os.getpid(), "http://localhost:1/")
    monkeypatch.setenv("JUPYTER_TFSERVE_URL", "https://elsewhere/base")
    assert find_server() == Server("https://elsewhere/base/")
    assert find_server().headers == {}
    monkeypatch.setenv("JUPYTER_TOKEN", "theirs")
    assert find_server().token == "theirs"


def test_an_address_that_is_no_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TFSERVE_URL", "localhost:8888")
    with pytest.raises(NoServerError, match="http:// or https://: localhost:8888"):
        find_server()


def test_under_a_hub_the_token_is_in_the_environment(
    announce: Announce, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(os.getpid(), "http://localhost:1/", "")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "hub")
    assert find_server().token == "hub"


def test_the_dead_and_the_half_written_are_passed_over(announce: Announce, runtime: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    announce(ended.pid, "http://localhost:1/")
    (runtime / "jpserver-1.json").write_text('{"pid": 1, "u')
    (runtime / "jpserver-2.json").write_text("[]")
    with pytest.raises(NoServerError, match="Start one with: jupyter lab"):
        find_server()


def test_several_servers_are_named_and_a_choice_is_asked_for(announce: Announce) -> None:
    announce(os.getpid(), "http://localhost:1/")
    announce(os.getppid(), "http://localhost:2/")
    with pytest.raises(NoServerError, match="JUPYTER_TFSERVE_URL") as several:
        find_server()
    assert "http://localhost:1/" in str(several.value)
    assert "http://localhost:2/" in str(several.value)


def test_the_process_of_a_server_is_that_of_its_file(
    announce: Announce, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(os.getpid(), "http://localhost:1/")
    announce(os.getppid(), "http://localhost:1/user/me/")
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert server_pid(Server("http://localhost:1/")) == os.getpid()
    assert server_pid(Server("http://127.0.0.1:1/user/me/")) == os.getppid()
    # The hub's address of a server is not the one in its file.
    assert server_pid(Server("https://hub.example/user/me/")) == 1


def test_nothing_can_be_published_to_a_server_of_another_machine(announce: Announce) -> None:
    announce(os.getpid(), "http://localhost:1/")
    with pytest.raises(NoServerError, match="no Jupyter server of this machine"):
        server_pid(Server("http://elsewhere:1/"))


def test_a_token_does_not_show_where_a_server_is_printed() -> None:
    assert "secret" not in repr(Server("http://localhost/", "secret"))
