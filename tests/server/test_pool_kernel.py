"""Real kernels that cannot hold a pool: what is said, and what is left behind."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
from pathlib import Path

import pytest
from fake_pool import until

from jupyter_tfserve.announcement import is_alive
from jupyter_tfserve.errors import Code, ServingError
from jupyter_tfserve.server.pool_kernel import KernelOptions, PoolKernel

KERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def install_kernel(name: str, argv: list[str], env: dict[str, str] | None = None) -> None:
    """A kernelspec of that name in this test's data folder."""
    folder = Path(os.environ["JUPYTER_DATA_DIR"], "kernels", name)
    folder.mkdir(parents=True)
    spec = {"argv": argv, "display_name": name, "language": "python", "env": env or {}}
    (folder / "kernel.json").write_text(json.dumps(spec))


def shadow(folder: Path, module: str, code: str) -> dict[str, str]:
    """An environment in which importing ``module`` runs ``code``."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(code)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parents[2]}"}


def left_in(folder: Path) -> list[str]:
    """What lies in a folder."""
    return [path.name for path in folder.iterdir()]


async def failure(name: str, timeout_s: float = 60.0) -> ServingError:
    kernel = PoolKernel("0123456789ab", KernelOptions(name, timeout_s))
    with pytest.raises(ServingError) as raised:
        await kernel.start()
    return raised.value


async def test_a_kernel_that_is_not_installed_is_named_with_those_that_are(
    jupyter_dirs: Path,
) -> None:
    error = await failure("no-such-kernel")
    assert error.code is Code.FAILED_PRECONDITION
    assert "no kernel 'no-such-kernel'" in error.message
    assert "python3" in error.message
    assert left_in(jupyter_dirs) == []


async def test_a_kernel_that_cannot_be_launched_says_why_and_no_more(
    jupyter_dirs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install_kernel("gone", ["/no/such/python", "{connection_file}"])
    error = await failure("gone")
    assert error.code is Code.UNAVAILABLE
    assert error.message.startswith("The kernel 'gone' cannot be launched: ")
    assert "/no/such/python" in error.message
    assert "could not be shut down" not in caplog.text
    assert left_in(jupyter_dirs) == []


async def test_a_kernel_whose_connection_file_cannot_be_written_leaves_nothing(
    jupyter_dirs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_space(file: str, **_: object) -> None:
        Path(file).touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("jupyter_client.connect.write_connection_file", no_space)
    error = await failure("python3")
    assert error.message.endswith("cannot be launched: [Errno 28] No space left on device")
    assert "could not be shut down" not in caplog.text
    assert left_in(jupyter_dirs) == []


async def test_a_kernel_that_dies_at_start_is_told_with_its_exit_status_and_last_words(
    jupyter_dirs: Path,
) -> None:
    code = "import sys; print('no such disk', file=sys.stderr); raise SystemExit(7)"
    install_kernel("dying", [sys.executable, "-c", code, "{connection_file}"])
    error = await failure("dying")
    assert error.code is Code.UNAVAILABLE
    assert error.message == (
        "The kernel 'dying' died while the model pool was starting: "
        "its process ended with exit status 7, having said: no such disk"
    )
    assert left_in(jupyter_dirs) == []


@pytest.mark.parametrize(
    ("module", "missing"), [("tensorflow", "tensorflow"), ("jupyter_tfserve", "jupyter_tfserve")]
)
async def test_a_kernel_without_the_packages_names_them_and_the_install_line(
    jupyter_dirs: Path, tmp_path: Path, module: str, missing: str
) -> None:
    code = f"raise ModuleNotFoundError(\"No module named '{missing}'\", name={missing!r})"
    install_kernel("bare", KERNEL, shadow(tmp_path / "shadow", module, code))
    error = await failure("bare")
    assert error.code is Code.FAILED_PRECONDITION
    assert error.message == (
        f"The kernel 'bare' cannot hold the model pool, as its environment has no {missing}. "
        f"Install it there: {sys.executable} -m pip install jupyter_tfserve"
    )
    assert left_in(jupyter_dirs) == []


async def test_a_kernel_that_never_answers_is_ended_after_the_time_out(
    jupyter_dirs: Path, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    install_kernel("silent", [sys.executable, "-c", code, "{connection_file}"])
    error = await failure("silent", timeout_s=2.0)
    assert error.message == "The kernel 'silent' did not start its pool in 2 s"
    assert not is_alive(int(pid_file.read_text()))
    assert left_in(jupyter_dirs) == []


async def test_a_start_that_is_cancelled_leaves_no_process_and_no_file(
    jupyter_dirs: Path, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    install_kernel("silent", [sys.executable, "-c", code, "{connection_file}"])
    task = asyncio.ensure_future(PoolKernel("0123456789ab", KernelOptions("silent")).start())
    await until(lambda: pid_file.exists() and pid_file.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(int(pid_file.read_text()))
    assert left_in(jupyter_dirs) == []
