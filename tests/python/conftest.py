"""Every test starts with no compiled code and a fixed seed; nothing is looked up on the net."""

import os
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import pytest
import torch
from plugins import TAKE, build

warnings.filterwarnings("ignore", message=".*TF32.*")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def pytest_addoption(parser):
    parser.addoption(
        "--convolutions", type=int, default=200, help="how many test_conv_search.py draws"
    )


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Make a plugin of the given name; a name is loaded once in a process."""
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv("TOROID_BACKEND_PATH", str(folder))

    def make(name, body=TAKE, tag="plugin"):
        build(folder, name, body, tag)
        return name

    return make


def pytest_configure(config):
    # PyTorch logs every step of a compile at DEBUG; a failure's report would drown in it.
    config.option.showcapture = "no"
