"""Faults that compilers of PyTorch graphs were once found to have: one file each in cases/.

A case has ``inputs()`` (a tuple of tensors), ``run(*inputs)`` and, where the right value is known,
``want()``, which eager must give too. Values, dtypes, shapes, strides and the inputs afterwards are
compared.
"""

import importlib.util
from pathlib import Path

import pytest
import torch
from support import assert_same, toroid

CASES = sorted(Path(__file__).with_name("cases").glob("*.py"))


def load(path):
    spec = importlib.util.spec_from_file_location(f"cases_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs_of(case):
    torch.manual_seed(0)
    return case.inputs()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_case(path, dynamic):
    case = load(path)
    ours, theirs = inputs_of(case), inputs_of(case)
    with torch.no_grad():
        want = case.run(*theirs)
        if hasattr(case, "want"):
            assert_same(want, case.want(), path="eager itself")
        got = toroid(case.run, fullgraph=True, dynamic=dynamic)(*ours)
    assert_same(got, want)
    assert_same(ours, theirs, path="input")


def test_there_are_cases():
    assert len(CASES) >= 20
