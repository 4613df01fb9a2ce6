"""The tuner through ``torch.compile``: answers stay eager's, whatever it picks."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn
from toroid.options import parse


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Tune quickly, into a file of the test's own."""
    monkeypatch.setenv("TOROID_TUNABLEOP_FILENAME", str(tmp_path / "results.csv"))
    monkeypatch.setenv("TOROID_TUNABLEOP_MAX_TUNING_DURATION_MS", "1")
    monkeypatch.setenv("TOROID_TUNABLEOP_MAX_TUNING_ITERATIONS", "3")
    monkeypatch.setenv("TOROID_TUNABLEOP_ROTATING_BUFFER_SIZE", "0")


class Block(nn.Module):
    """One step of each family that has choices."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 20, 3, padding=1)
        self.norm = nn.LayerNorm(20)
        self.qkv = nn.Linear(20, 96)
        self.out = nn.Linear(32, 20)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv(image)).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(x)).view(x.shape[0], -1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        y = x + self.out(y.transpose(1, 2).flatten(2))
        return torch.softmax(y @ y.transpose(1, 2), -1) @ y


@pytest.mark.parametrize("way", [{"options": {"tune": True}}, {"mode": "max-autotune"}])
def test_answers_are_eagers(way, caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    model, image = Block().eval(), torch.randn(2, 3, 9, 7)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "toroid"):
        expected = model(image)
        compiled = torch.compile(model, backend="toroid", **way)
        for _ in range(2):
            torch.testing.assert_close(compiled(image), expected, rtol=1e-4, atol=1e-4)
    assert "rejected" not in caplog.text


def test_growing_length() -> None:
    """Lengths that grow share buckets; all answers are right."""
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="toroid", dynamic=True, options={"tune": True})
    with torch.no_grad():
        for length in range(3, 40, 3):
            x = torch.randn(2, length, 32)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)


def test_mode_and_option_are_one() -> None:
    assert parse("max-autotune", None).tune
    assert parse(None, {"tune": True}).tune
    assert not parse("default", None).tune
    assert not parse("max-autotune", {"tune": False}).tune
    with pytest.raises(ValueError, match="option 'tune': expected True or False, got 'yes'"):
        parse(None, {"tune": "yes"})
