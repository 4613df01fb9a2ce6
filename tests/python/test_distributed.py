"""Two processes on this machine, by torchrun with gloo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("distributed.py")


@pytest.mark.parametrize("what", ["training", "collectives"])
def test_two_processes(what):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, SCRIPT, what], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]
    assert sorted(line[:16] for line in done.stdout.splitlines()) == [
        "process 0: right",
        "process 1: right",
    ]
