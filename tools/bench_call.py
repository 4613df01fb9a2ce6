"""What a call costs beyond the work: Toroid against a do-nothing AOTAutograd backend.

    python tools/bench_call.py [--repeat 7]

The do-nothing backend goes through the same AOTAutograd wrapper and returns tensors made before.
Graphs add a number to as many inputs as they have outputs; inputs have 16 elements. Prints
microseconds a call, the overhead, the target of 5 + 0.25 an input + 1.5 an output, and the cost of
checking frozen inputs.
"""

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule
from toroid import _core
from toroid.backend import initialise


def nothing(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
    """Compiles a graph to a boxed function that returns the same tensors at each call."""
    (output,) = gm.graph.find_nodes(op="output")
    made = [torch.zeros(tuple(n.meta["val"].shape)) for n in output.args[0]]

    def call(inputs: list[Any]) -> list[Any]:
        inputs.clear()
        return list(made)

    call._boxed_call = True
    return call


def best_us(f: Callable[..., Any], args: Sequence[Any], repeat: int, budget: float = 0.15) -> float:
    """Least microseconds a call over `repeat` runs of `budget` seconds."""
    for _ in range(20):
        f(*args)
    begin = time.perf_counter()
    f(*args)
    count = max(20, int(budget / max(time.perf_counter() - begin, 1e-7)))
    best = float("inf")
    gc.disable()
    for _ in range(repeat):
        begin = time.perf_counter()
        for _ in range(count):
            f(*args)
        best = min(best, (time.perf_counter() - begin) / count)
    gc.enable()
    return best * 1e6


def through_dynamo(backend: Any, n_inputs: int, n_outputs: int, repeat: int) -> float:
    torch._dynamo.reset()

    def f(*xs: torch.Tensor) -> list[torch.Tensor]:
        return [xs[i % n_inputs] + (1 + i) for i in range(n_outputs)]

    xs = [torch.randn(4, 4) for _ in range(n_inputs)]
    with torch.no_grad():
        compiled = torch.compile(f, backend=backend)
        compiled(*xs)
        return best_us(compiled, xs, repeat)


def executable(n_inputs: int, frozen: bool) -> _core.Executable:
    graph = _core.Graph()
    xs = [
        graph.add_input(f"x{i}", "float32", [4, 4], [4, 1], True, frozen) for i in range(n_inputs)
    ]
    y = graph.call("aten.add.Tensor", (xs[0], 1), {}, "y")
    if frozen:  # one result that is made ahead from all of them, so that all are checked
        for x in xs[1:]:
            y = graph.call("aten.add.Tensor", (y, x), {}, "y")
    graph.set_outputs([y], [None], [])
    return graph.compile([], (), threads=1)


def bare(n_inputs: int, frozen: bool, repeat: int) -> float:
    run = executable(n_inputs, frozen)
    xs = [torch.randn(4, 4) for _ in range(n_inputs)]
    return best_us(lambda: run(list(xs)), (), repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    initialise()
    none = aot_autograd(fw_compiler=nothing, keep_inference_input_mutations=True)

    heads = f"{'nothing':>10}{'toroid':>10}{'overhead':>10}{'target':>8}"
    print(f"{'inputs':>7}{'outputs':>8}{heads}   (us)")
    for n in (1, 10, 100, 200):
        for m in (1, 5):
            base = through_dynamo(none, n, m, repeat)
            ours = through_dynamo("toroid", n, m, repeat)
            target = 5 + 0.25 * n + 1.5 * m
            print(f"{n:>7}{m:>8}{base:>10.1f}{ours:>10.1f}{ours - base:>10.1f}{target:>8.1f}")

    print(f"\n{'inputs':>7}{'plain':>10}{'frozen':>10}{'check':>10}   (us, the executable alone)")
    for n in (1, 10, 100, 200):
        plain, frozen = bare(n, False, repeat), bare(n, True, repeat)
        print(f"{n:>7}{plain:>10.1f}{frozen:>10.1f}{frozen - plain:>10.1f}")


if __name__ == "__main__":
    main()
