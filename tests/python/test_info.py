"""`toroid.info`, warnings, and what PyTorch's own logs get."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest
import torch
import toroid


def run(code, *prefix, **environment):
    """Run Python code in a process of its own; returns what it printed."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


PRINT = "import json, dataclasses, toroid; print(json.dumps(dataclasses.asdict(toroid.info())))"


def test_fields():
    info = toroid.info()
    assert info.version == toroid.__version__
    assert info.torch.split("+")[0] == torch.__version__.split("+")[0]
    assert info.torch_threads == torch.get_num_threads()
    assert info.threads == min(info.torch_threads, info.cpus)
    assert 1 <= info.cpus <= os.cpu_count()
    assert all(size > 0 for size in info.caches)
    assert str(info).count("\n") == 3
    assert isinstance(toroid.info(), type(info))  # the name stays the function's


def test_threads_follow_pytorch_up_to_the_cpus():
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 64):
            torch.set_num_threads(threads)
            assert toroid.info().threads == min(threads, toroid.info().cpus)
    finally:
        torch.set_num_threads(before)


def test_mask():
    info = json.loads(run(PRINT, TOROID_CPU_MASK="all"))
    assert info["features"] == "" and info["mask"] == "all"


def test_cpuset_of_one_core():
    if not hasattr(os, "sched_getaffinity"):
        pytest.fail("this system has no affinity")
    core = str(min(os.sched_getaffinity(0)))
    info = json.loads(run(PRINT, "taskset", "-c", core))
    assert info["cpus"] == info["threads"] == 1
    # What OpenMP is told does not matter.
    assert json.loads(run(PRINT, "taskset", "-c", core, OMP_NUM_THREADS="8"))["threads"] == 1


def test_a_fork_counts_anew():
    out = run(
        "import os, toroid\n"
        "before = toroid.info().cpus\n"
        "if os.fork() == 0:\n"
        "    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "    print(toroid.info().cpus, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert out.split() == ["1"]


def test_one_warning_for_each_kind(caplog, monkeypatch):
    from toroid import backend

    monkeypatch.setattr(backend, "_warned", set())
    with caplog.at_level(logging.WARNING, logger="toroid"):
        for scale in (1, 2):
            torch._dynamo.reset()
            f = torch.compile(lambda x, s=scale: torch.matrix_exp(x * s) + 1, backend="toroid")
            f(torch.eye(3))
    (record,) = caplog.records
    assert "aten.linalg_matrix_exp.default" in record.getMessage()
    assert "does not know it" in record.getMessage()


def test_no_warning_where_all_is_native(caplog):
    torch._dynamo.reset()
    with caplog.at_level(logging.WARNING, logger="toroid"):
        torch.compile(lambda x: x * 2, backend="toroid")(torch.ones(3))
    assert not caplog.records


def test_structured_trace(tmp_path):
    code = (
        "import torch\n"
        "torch.compile(lambda x: torch.matrix_exp(x) + 1, backend='toroid')(torch.eye(3))\n"
    )
    run(code, TORCH_TRACE=str(tmp_path))
    (log,) = tmp_path.glob("*.log")
    names = [
        json.loads(line.split("] ", 1)[1])["artifact"]["name"]
        for line in log.read_text().splitlines()
        if '"artifact"' in line and "toroid_" in line
    ]
    assert names == [f"toroid_inference_{part}" for part in ("report", "before", "after", "steps")]
