"""TOROID_SKIP_PASS: answers are the same without any one pass, and required passes say so."""

import os
import subprocess
import sys

import pytest

MODEL = """
import torch
from support import reports, toroid

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))
        self.register_buffer("steps", torch.zeros(4))

    def forward(self, x):
        self.steps.add_(1)
        y = torch.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
        scores = (self.q(y) @ self.k(y).transpose(1, 2)) * 8**-0.5
        y = y + torch.softmax(scores, -1) @ self.v(y)
        z = torch.nn.functional.gelu(y * 2 + 1) - (y * 2 + 1).mean(-1, keepdim=True)
        return z, z.transpose(1, 2), self.steps + 0, (x > 0).sum(1) // 2

torch.manual_seed(0)
model, x = Model().eval(), torch.randn(2, 3, 5, 7)
with torch.no_grad():
    found, got = reports(toroid(model), x)
    model.steps.zero_()
    want = model(x)
assert all(r.fallback is None and not r.externals for r in found), found
for a, b in zip(got, want, strict=True):
    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    torch.testing.assert_close(a, b)
print("same")
"""

OPTIONAL = (
    "frozen",
    "fold",
    "canonicalise",
    "views",
    "cse",
    "dce",
    "recognise_attention",
    "fold_conv",
    "prepack",
    "fuse_epilogue",
    "fuse_groups",
    "inplace",
    "prologue",
)


def run(skip):
    environment = {**os.environ, "TOROID_SKIP_PASS": skip, "TOROID_VERIFY": "1"}
    environment["PYTHONPATH"] = os.path.dirname(__file__)
    return subprocess.run(
        [sys.executable, "-c", MODEL], env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("name", [*OPTIONAL, ",".join(OPTIONAL)])
def test_answers_without_a_pass(name):
    done = run(name)
    assert done.returncode == 0 and done.stdout.strip() == "same", done.stderr[-2000:]


@pytest.mark.parametrize("name", ["layout", "programs"])
def test_required_passes_refuse(name):
    done = run(f"cse,{name}")
    assert done.returncode != 0
    assert f'no graph can run without pass "{name}"' in done.stderr


def test_unknown_names_list_the_known():
    done = run("fuse_everything")
    assert done.returncode != 0
    assert 'there is no pass "fuse_everything"' in done.stderr
    assert all(name in done.stderr for name in OPTIONAL)
