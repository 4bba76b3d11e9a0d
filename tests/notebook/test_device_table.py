"""The ledger of devices, as text and as HTML."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from jupyter_tfserve.notebook.device_table import Devices

GIB = 1 << 30


def pool(
    name: str, pid: int | None, used: int | None, *models: str, limit: int | None = None
) -> Any:
    return {
        "name": name,
        "pid": pid,
        "used_bytes": used,
        "memory_limit_mb": limit,
        "models": [{"name": model} for model in models],
    }


def device(name: str, free: int | None, total: int | None, *pools: Any, **rest: Any) -> Any:
    return {
        "name": name,
        "kind": name.partition(":")[0],
        "product": None,
        "free_bytes": free,
        "total_bytes": total,
        "pools": list(pools),
        "processes": [],
        **rest,
    }


def test_each_holder_has_a_line_below_its_device() -> None:
    stranger = {"pid": 4242, "name": "python<3>", "used_bytes": 9 * GIB}
    ledger = {
        "devices": [
            device(
                "CPU", 60 * GIB, 64 * GIB, pool("managed", 71, 700 << 20), pool("b", None, None)
            ),
            device(
                "GPU:0",
                4 * GIB,
                16 * GIB,
                pool("gpu0", 72, 3 * GIB, "d", "c", "b", "a", limit=8000),
                product="Tesla T4",
                processes=[stranger],
            ),
            device("GPU:1", None, None),
        ],
        "nvml": {"available": True, "problem": None},
    }
    assert repr(Devices(ledger)).splitlines() == [
        "2 GPUs and the CPU",
        "Device            Free   Total  Held by     PID             Memory  Models",
        "CPU             60 GiB  64 GiB  managed      71            700 MiB  –",
        "GPU:0 Tesla T4   4 GiB  16 GiB  gpu0         72  3 GiB of 7.81 GiB  a, b, c and 1 more",
        "                                python<3>  4242              9 GiB  –",
        "GPU:1                –       –  –             –                  –  –",
    ]
    html = Devices(ledger)._repr_html_()
    text = "".join(ET.fromstring(f"<body>{html}</body>").itertext())
    assert "python<3>" in text
    assert html.count('<tr class="sub">') == 1


def test_what_hides_the_gpus_is_told() -> None:
    ledger = {
        "devices": [device("CPU", 1, 2)],
        "nvml": {"available": False, "problem": "nvidia-ml-py is not installed <here>"},
    }
    devices = Devices(ledger)
    assert repr(devices).startswith("0 GPUs and the CPU · nvidia-ml-py is not installed <here>\n")
    assert "&lt;here&gt;" in devices._repr_html_()
