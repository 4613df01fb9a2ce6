"""The scripts of examples/ that compare with eager: each fails by itself where answers differ."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script, *arguments):
    """Run a script in a process of its own; returns its lines."""
    command = [sys.executable, EXAMPLES / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.splitlines()


def compared(lines):
    """What was compared, each with its largest difference."""
    pattern = r"(.+): eager [\d.]+ ms, toroid [\d.]+ ms \(.*\); largest difference (\S+)"
    return {m[1]: float(m[2]) for line in lines if (m := re.fullmatch(pattern, line))}


def test_semantic_search():
    lines = run("semantic_search.py", "--documents", "10", "--layers", "1")
    found = compared(lines)
    assert list(found) == ["10 documents", "5 queries", "1 query"]
    assert all(difference < 1e-5 for difference in found.values())
    assert "railway travel at night?" in lines


def test_pipelines():
    found = compared(run("pipelines.py", "--texts", "4", "--batch", "2", "--layers", "1"))
    tasks = ["feature-extraction", "text-classification", "fill-mask"]
    assert list(found) == [f"{task}, 4 texts" for task in tasks]
    assert all(difference < 2e-5 for difference in found.values())


def test_generate():
    lines = run("generate.py", "--layers", "1", "--width", "128", "--tokens", "6")
    assert compared(lines) == {f"6 tokens after {length}": 0 for length in (5, 12, 20)}
    assert lines[-1] == "graphs compiled: 1"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (torch.ones(3) + 0.1, "differ by 0.1"),
        (torch.ones(2), r"float32\[2\] is not torch.float32\[3\]"),
        (torch.ones(3).double(), "float64"),
        (torch.full([3], torch.nan), "differ by nan"),
    ],
)
def test_a_wrong_answer_fails(answer, words, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from beside import compare

    with pytest.raises(SystemExit, match=words):
        compare("x", lambda: torch.ones(3), lambda: answer, 1e-3, rounds=1)


# ------------------------------------------------------------------ backends


def test_a_printing_backend():
    lines = run("backends/printing.py")
    assert sum(line.startswith("a graph of inputs") for line in lines) == 3
    assert any("aten.mm.default" in line for line in lines)


def test_a_composition_with_fallback():
    assert run("backends/fallback.py") == [
        "pointwise: taken by picky",
        "product: taken by toroid",
    ]


def test_forward_and_backward_by_different_compilers():
    lines = run("backends/two_compilers.py")
    assert lines[:2] == ["forward: toroid", "backward: as_eager"]
