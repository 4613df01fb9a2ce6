"""Compiled models in worker processes, forked and spawned."""

from __future__ import annotations

import pytest
import torch
import toroid as package
from support import toroid
from torch.utils.data import DataLoader, Dataset

ITEMS = 6


def item(i):
    return torch.arange(32.0).mul(i + 1).sin()


class Encoded(Dataset):
    """Items that a compiled model makes; a process that inherits none compiles one."""

    def __init__(self, model):
        self.model, self.compiled = model, None

    def __getstate__(self):
        return {"model": self.model, "compiled": None}

    def __len__(self):
        return ITEMS

    def __getitem__(self, i):
        inherited = self.compiled is not None
        if not inherited:
            self.compiled = toroid(self.model, options={"strict": True})
        with torch.no_grad():
            return self.compiled(item(i)), inherited, package.info().threads


@pytest.fixture
def model():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader(start, model):
    data = Encoded(model)
    data[0]
    loader = DataLoader(
        data, batch_size=1, num_workers=2 if start == "fork" else 1, multiprocessing_context=start
    )
    found = list(loader)
    assert len(found) == ITEMS
    with torch.no_grad():
        for i, (y, inherited, threads) in enumerate(found):
            assert torch.allclose(y[0], model(item(i)), atol=1e-6)
            # A spawned worker compiles for its first item, and then has the graph.
            assert bool(inherited) == (start == "fork" or i > 0)
            assert threads.item() == 1  # as the loader asks for in its workers
    assert data[0][1]


def test_torch_multiprocessing(model):
    """A forked process writes its answer into shared memory."""
    data = Encoded(model)
    want = data[1][0]
    shared = torch.zeros_like(want).share_memory_()
    context = torch.multiprocessing.get_context("fork")
    process = context.Process(target=lambda: shared.copy_(data[1][0]))
    process.start()
    process.join(60)
    assert process.exitcode == 0 and torch.equal(shared, want)
