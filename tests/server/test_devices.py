"""Names of devices, seen from the server and from a process that was given some of them."""

from __future__ import annotations

import pytest
from fake_gpus import gpu

from jupyter_tfserve.server.devices import DeviceNames, visible

GPUS = [gpu(0), gpu(1), gpu(2)]
UUID = GPUS[1].uuid


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        (None, None),
        ("", ()),
        ("-1", ()),
        ("0, 2", ("0", "2")),
        ("1,-1,0", ("1",)),
        ("GPU-11aa,MIG-7", ("GPU-11aa", "MIG-7")),
        ("none", ()),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(
    value: str | None, entries: tuple[str, ...] | None
) -> None:
    assert visible(value) == entries


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, {"GPU:0": 0, "GPU:1": 1, "GPU:2": 2}),
        ("2,0", {"GPU:0": 2, "GPU:1": 0}),
        (UUID, {"GPU:0": 1}),
        ("1,9,0", {"GPU:0": 1}),
        ("", {}),
    ],
)
def test_gpus_are_counted_as_the_server_sees_them(value: str | None, names: dict[str, int]) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    found = DeviceNames(GPUS, environment).gpus
    assert found is not None
    assert {name: one.index for name, one in found.items() if one is not None} == names
    assert DeviceNames(None, environment).gpus is None


def test_a_part_of_a_gpu_is_a_device_without_figures() -> None:
    assert DeviceNames(GPUS, {"CUDA_VISIBLE_DEVICES": "MIG-7"}).gpus == {"GPU:0": None}


@pytest.mark.parametrize(
    ("server", "device", "child"),
    [
        (None, "", None),
        (None, "CPU", "-1"),
        (None, "GPU:1", "1"),
        ("2,0", "GPU:1", "0"),
        ("2,0", "", None),
        (f"0,{UUID}", "GPU:1", UUID),
        ("2,0", "GPU:5", "-1"),
        ("2,0", "CPU", "-1"),
    ],
)
def test_a_process_is_given_its_device(server: str | None, device: str, child: str | None) -> None:
    environment = {} if server is None else {"CUDA_VISIBLE_DEVICES": server}
    variables = DeviceNames(None, environment).environment_for(device)
    assert variables.get("CUDA_VISIBLE_DEVICES") == child
    assert variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_an_order_that_was_chosen_stays() -> None:
    names = DeviceNames(None, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"})
    assert names.environment_for("GPU:0")["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("server", "child", "told", "name"),
    [
        (None, None, "GPU:1", "GPU:1"),
        (None, "1", "GPU:0", "GPU:1"),
        ("2,0", "0", "GPU:0", "GPU:1"),
        ("2,0", "2,0", "GPU:1", "GPU:1"),
        (None, None, "CPU:0", "CPU"),
        (None, "-1", "CPU:0", "CPU"),
    ],
)
def test_a_process_and_the_server_mean_the_same_device(
    server: str | None, child: str | None, told: str, name: str, known: bool
) -> None:
    environment = {} if server is None else {"CUDA_VISIBLE_DEVICES": server}
    names = DeviceNames(GPUS if known else None, environment)
    assert names.of_process(child, told) == name


def test_an_index_and_an_id_of_one_gpu_meet_where_nvml_knows_both() -> None:
    assert DeviceNames(GPUS, {}).of_process(UUID, "GPU:0") == "GPU:1"
    assert DeviceNames(GPUS, {"CUDA_VISIBLE_DEVICES": UUID}).of_process("1", "GPU:0") == "GPU:0"
    assert DeviceNames(None, {}).of_process(UUID, "GPU:0") == UUID
    assert DeviceNames(GPUS, {"CUDA_VISIBLE_DEVICES": "0"}).of_process("1", "GPU:0") == "1"
