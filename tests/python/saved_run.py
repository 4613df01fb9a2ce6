"""Run by test_saved.py: compiles one model after the other and prints what came out, as JSON.

Each case compares with eager itself; it returns what both starts have to agree on.
"""

from __future__ import annotations

import copy
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch
import toroid
from torch import nn
from torch._dynamo.utils import counters

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8)).eval()


def compiled(model: Any, dynamic: bool | None = None, **options: Any) -> Any:
    return torch.compile(model, backend="toroid", dynamic=dynamic, options=options)


def same(call: Any, reference: Any, *inputs: torch.Tensor) -> None:
    torch.testing.assert_close(call(*inputs), reference(*inputs))


@case
def plain() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    with torch.no_grad(), toroid.profile() as profile:
        same(compiled(model), model, x)
    return len(profile.steps()) > 0


@case
def strict() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    with torch.no_grad():
        same(compiled(model, strict=True), model, x)


@case
def strict_refuses() -> Any:
    try:
        compiled(torch.linalg.matrix_exp, strict=True)(torch.randn(3, 3))
    except Exception as error:
        return "matrix_exp" in str(error)


@case
def explain() -> Any:
    with torch.no_grad():
        found = toroid.explain(mlp(), torch.randn(3, 64))
    graph = found.graphs[0]
    return [graph.kind, graph.backend, graph.native, found.passes()]


@case
def explain_external() -> Any:
    with torch.no_grad():
        found = toroid.explain(lambda x: torch.linalg.matrix_exp(x * 2) + 1, torch.randn(3, 3))
    return [e.row() for e in found.graphs[0].externals]


@case
def weights_change() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    with torch.no_grad():
        call = compiled(model)
        same(call, model, x)
        model[0].weight.mul_(2)
        same(call, model, x)
        model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()})
        same(call, model, x)


@case
def release_weights() -> Any:
    model, x = nn.Linear(512, 512).eval(), torch.randn(3, 512)
    expected, before = model(x).detach(), toroid.stats()["released_bytes"]
    with torch.no_grad():
        torch.testing.assert_close(compiled(model, release_weights=True)(x), expected)
        assert toroid.stats()["released_bytes"] - before > 1_000_000  # whole pages of a mebibyte
        torch.testing.assert_close(model(x), expected)  # read back


@case
def dynamic_shapes() -> Any:
    model = mlp()
    with torch.no_grad():
        call = compiled(model, dynamic=True)
        for rows in (3, 7, 1, 0, 40):
            same(call, model, torch.randn(rows, 64))


@case
def guards_of_sizes() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 10 else x.sum(0)

    call = compiled(model, dynamic=True)
    for rows in (4, 20, 5, 11, 10):
        same(call, model, torch.randn(rows, 6))


@case
def training() -> Any:
    model, x = mlp(), torch.randn(3, 64, requires_grad=True)
    twin = copy.deepcopy(model)
    call = compiled(model)
    optimisers = [torch.optim.SGD(m.parameters(), lr=0.001) for m in (model, twin)]
    for _ in range(3):
        grads = []
        for run, module, optimiser in zip((call, twin), (model, twin), optimisers, strict=True):
            optimiser.zero_grad()
            x.grad = None
            run(x).square().sum().backward()
            grads.append([x.grad, *(p.grad.clone() for p in module.parameters())])
            optimiser.step()
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)


@case
def backward_twice() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    loss = compiled(model)(x).sum()
    loss.backward(retain_graph=True)
    first = model[0].weight.grad.clone()
    loss.backward()
    torch.testing.assert_close(model[0].weight.grad, 2 * first)


@case
def external_with_arguments() -> Any:
    def model(x: torch.Tensor, y: torch.Tensor) -> Any:
        values, _ = torch.linalg.eigh(x @ x.t())
        return torch.linalg.vector_norm(values) + y, torch.linalg.matrix_exp(x.t()).relu()

    same(compiled(model), model, torch.randn(4, 4), torch.randn(2))


@case
def random_numbers() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(3, 4) * torch.bernoulli(x.abs().clamp(0, 1))

    x, call = torch.randn(3, 4), compiled(model)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = model(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(call(x), expected)


@case
def side_effects() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x) * 2  # its check is a call that returns nothing

    x, call = torch.eye(3).mul_(4).requires_grad_(), compiled(model)
    same(call, model, x)
    call(x).sum().backward()
    try:
        call(torch.zeros(3, 3))
    except torch.linalg.LinAlgError as error:
        return "singular" in str(error)


@case
def constants() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([1.5, -0.0, float("inf")]) + torch.tensor(3)

    same(compiled(model), model, torch.rand(2, 3) + 1)


@case
def written_inputs() -> Any:
    def model(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache[1:2] = x
        return cache.sum(0)

    call = compiled(model)
    a, b, x = torch.zeros(4, 5), torch.zeros(4, 5), torch.randn(1, 5)
    torch.testing.assert_close(call(x, a), model(x, b))
    torch.testing.assert_close(a, b)


@case
def views_of_inputs() -> Any:
    def model(x: torch.Tensor) -> Any:
        return x.t(), x[1:], x * 2

    x = torch.randn(4, 5)
    got = compiled(model)(x)
    torch.testing.assert_close(got, model(x))
    return [t.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for t in got]


@case
def shared_memory_or_not() -> Any:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    base = torch.zeros(8)
    first = compiled(model)(base[:4], base[:4]).tolist()
    torch._dynamo.reset()
    base = torch.zeros(8)
    return [first, compiled(model)(base[:4], base[4:]).tolist()]


@case
def places_in_memory() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided(x, (2,), (1,)) + 0

    base = torch.arange(10.0)
    out = []
    for start in (0, 3, 5):
        torch._dynamo.reset()
        out.append(compiled(model)(base[start : start + 4]).tolist())
    return out


@case
def strides() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.relu()

    out = []
    for x in (torch.randn(4, 6), torch.randn(6, 4).t(), torch.randn(1, 6).expand(4, 6)):
        torch._dynamo.reset()
        got = compiled(model)(x)
        assert got.stride() == model(x).stride()
        torch.testing.assert_close(got, model(x))
        out.append(got.stride())
    return out


@case
def numbers_returned() -> Any:
    def model(x: torch.Tensor) -> Any:
        return x.shape[0] * 2, None, x + 1, x.shape[1]

    call = compiled(model, dynamic=True)
    for shape in ((3, 4), (5, 6)):
        x = torch.randn(shape)
        got, expected = call(x), model(x)
        assert (got[0], got[1], got[3]) == (expected[0], None, expected[3])
        torch.testing.assert_close(got[2], expected[2])


@case
def autocast() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    out = []
    with torch.no_grad():
        for dtype in (torch.bfloat16, torch.float16):
            torch._dynamo.reset()
            with torch.autocast("cpu", dtype):
                got = compiled(model)(x)
            out.append(str(got.dtype))
    return out


@case
def whole_graph_by_pytorch() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x)

    same(compiled(model), model, torch.randn(8))


@case
def higher_order() -> Any:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

    for x in (torch.ones(3), -torch.ones(3)):
        same(compiled(model), model, x)


@case
def aot() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    call = torch.compile(model, backend=toroid.aot("toroid", partition="min_cut"))
    torch.testing.assert_close(call(x), model(x))
    call(x).sum().backward()


@case
def reference() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    with torch.no_grad():
        same(torch.compile(model, backend="toroid_reference"), model, x)


@case
def two_threads_options() -> Any:
    model, x = mlp(), torch.randn(3, 64)
    with torch.no_grad():
        for threads in (1, 2):
            torch._dynamo.reset()
            same(compiled(model, threads=threads), model, x)


def run(function: Callable[[], Any]) -> dict[str, Any]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    seen = counters["aot_autograd"]
    before = dict(seen)
    value = error = None
    try:
        value = function()
    except Exception:
        error = traceback.format_exc()
    count = {
        name: seen[f"autograd_cache_{name}"] - before.get(f"autograd_cache_{name}", 0)
        for name in ("hit", "miss", "bypass", "saved")
    }
    return {"value": value, "error": error, **count}


if __name__ == "__main__":
    names = sys.argv[1:] or list(CASES)
    print(json.dumps({name: run(CASES[name]) for name in names}))
