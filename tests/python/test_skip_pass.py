"""TOROID_SKIP_PASS: answers are the same without any one pass, and required passes say so."""

import sys
from pathlib import Path

import pytest
import torch
from support import reports, toroid

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.examine import optional_passes

OPTIONAL = optional_passes()


class Model(torch.nn.Module):
    """Has something for every pass to do."""

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


@pytest.mark.parametrize("name", [*OPTIONAL, ",".join(OPTIONAL)])
def test_answers_without_a_pass(name, monkeypatch):
    monkeypatch.setenv("TOROID_SKIP_PASS", name)
    monkeypatch.setenv("TOROID_VERIFY", "1")
    model, x = Model().eval(), torch.randn(2, 3, 5, 7)
    with torch.no_grad():
        found, got = reports(toroid(model), x)
        model.steps.zero_()
        want = model(x)
    assert len(found) == 1 and found[0].fallback is None and not found[0].externals
    for a, b in zip(got, want, strict=True):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["layout", "prepack", "programs"])
def test_required_passes_refuse(name, monkeypatch):
    monkeypatch.setenv("TOROID_SKIP_PASS", f"cse,{name}")
    with pytest.raises(Exception, match=f'no graph can run without pass "{name}"'):
        toroid(lambda x: x + 1)(torch.ones(3))


def test_unknown_names_list_the_known(monkeypatch):
    monkeypatch.setenv("TOROID_SKIP_PASS", "fuse_everything")
    with pytest.raises(Exception, match='there is no pass "fuse_everything"') as raised:
        toroid(lambda x: x + 1)(torch.ones(3))
    assert all(name in str(raised.value) for name in OPTIONAL)
