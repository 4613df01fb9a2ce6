"""Runs of the tuner in processes and folders of their own: its tables belong to a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from toroid import _core

BUILD = Path(_core.__file__).parents[2]
PROGRAM = BUILD / "cli" / "toroid"
UNTUNED = "tunableop_untuned.csv"
RESULTS = "tunableop_results.csv"

#: A model whose products differ in shape, called once.
MODEL = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(48, 96), torch.nn.GELU(), torch.nn.Linear(96, 32), torch.nn.Linear(32, 16))
x = torch.randn(24, 48)
with torch.no_grad():
    want = model(x)
    got = torch.compile(model, backend="toroid")(x)
assert torch.allclose(got, want, rtol=1e-5, atol=1e-5)
"""


def environment(**variables: object) -> dict[str, str]:
    """Give this process's environment with TOROID_TUNABLEOP_<NAME> set, and short timings.

    Names that begin with TOROID_ are set as they are.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TOROID_TUNABLEOP_")}
    defaults = {"MAX_TUNING_DURATION_MS": 1, "MAX_TUNING_ITERATIONS": 2}
    named = {**defaults, **variables}.items()
    prefix = "TOROID_TUNABLEOP_"
    return {**kept, **{k if k.startswith("TOROID_") else prefix + k: str(v) for k, v in named}}


def python(folder: Path, source: str, *, fails: bool = False, **variables: object) -> str:
    """Run Python source in a folder; what it prints, errors last."""
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def toroid(folder: Path, *arguments: object, code: int = 0, **variables: object) -> str:
    """Run the program `toroid` in a folder; what it prints, errors last."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def record(folder: Path) -> list[str]:
    """Run the model with RECORD_UNTUNED; the rows."""
    python(folder, MODEL, RECORD_UNTUNED=1)
    return rows(folder / UNTUNED)


def rows(file: Path) -> list[str]:
    """Give the lines of a file that are no validators."""
    return [x for x in file.read_text().splitlines() if not x.startswith("Validator,")]


def keys(file: Path) -> list[str]:
    """Give operator and params of each row."""
    return [",".join(row.split(",")[:2]) for row in rows(file)]
