"""What each of two processes does, started by torchrun from test_distributed.py."""

from __future__ import annotations

import copy
import sys

import torch
import torch.distributed as dist
import toroid
from small_models import ViT, batches
from toroid.report import listen

STEPS = 20


def train(model, steps, rank):
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    run = steps(wrapped)
    for images, labels in batches(model, STEPS, seed=rank):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(run(images), labels).backward()
        optimiser.step()


def check_training(rank):
    """Parameters after 20 steps are those of eager DDP, and the same in both processes."""
    ours = ViT()
    theirs = copy.deepcopy(ours)
    with listen() as reports:
        train(ours, lambda model: torch.compile(model, backend="toroid"), rank)
    train(theirs, lambda model: model, rank)
    assert {r.kind for r in reports} == {"forward", "backward"}
    assert all(r.fallback is None for r in reports)
    for (name, got), want in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, msg=name)
        first = got.detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, got), name


def collectives(x):
    from torch.distributed import _functional_collectives as functional

    a = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
    b = functional.all_reduce(x + 1, "max", dist.group.WORLD)
    c = functional.all_gather_tensor(a - b, 0, dist.group.WORLD)
    functional.all_reduce(x, "sum", dist.group.WORLD)  # nobody asks for this one
    return torch.relu(c) + 1, b


def check_collectives(rank):
    """They run inside the graph, each once and in the graph's order, and are waited for."""
    # Large enough for a result that is read too early to be wrong.
    x = torch.arange(200_000.0).reshape(2, -1) * (rank + 1) - 5
    calls = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.namespace == "_c10d_functional" and "wait" not in function.__name__:
                calls.append((function.__name__, args[1]))
            return function(*args, **(kwargs or {}))

    want = collectives(x)
    with listen() as reports:
        compiled = torch.compile(collectives, backend="toroid", fullgraph=True)
        got = compiled(x)
    (report,) = reports
    assert report.fallback is None and report.native > 0
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
    with Watch():
        report.executable([x])
    names = [name for name, _ in calls]
    assert names == ["all_reduce.default"] * 2 + ["all_gather_into_tensor.default"] + [
        "all_reduce.default"
    ], names
    assert [calls[0][1], calls[1][1], calls[3][1]] == ["sum", "max", "sum"]


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    {"training": check_training, "collectives": check_collectives}[sys.argv[1]](dist.get_rank())
    dist.barrier()
    # One write: both processes share the pipe, unbuffered, and print writes its newline apart.
    sys.stdout.write(f"process {dist.get_rank()}: right, by toroid {toroid.__version__}\n")
    dist.destroy_process_group()
