"""From a program to a compiled graph, by the door that torch.compile uses after its capture.

`compile_graph` gets what AOTAutograd would give it: ATen calls with fake tensors in
``meta["val"]``, writes as copy_ at the end, the numbers of frozen inputs in the tracing context.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule
from toroid import backend
from toroid.compilers import Job
from toroid.options import parse
from toroid.report import GraphReport, listen

from fuzz.program import ITEM, Call, Input, Program, substitute


@dataclasses.dataclass
class Compiled:
    """A compiled program."""

    run: Any  # list of tensors -> list of tensors
    inputs: list[int]  # value numbers, in the order of the arguments
    strides: list[tuple[int, ...]]  # what FakeTensor says of the outputs
    report: GraphReport


class NotTraced(Exception):
    """FakeTensor refuses what eager takes: torch.compile has no such graph."""


def build(program: Program, mode: FakeTensorMode) -> tuple[GraphModule, list[int], list[Any]]:
    """The FX graph, which arguments it takes, and the outputs as fake tensors."""
    graph = Graph()
    nodes: dict[int, Any] = {}
    inputs = program.inputs()
    for i in inputs:
        value = program.values[i]
        assert isinstance(value, Input)
        nodes[i] = graph.placeholder(f"x{i}")
        nodes[i].meta["val"] = torch.empty_strided(
            value.storage.shape, (1,), dtype=value.storage.dtype, device="cpu"
        ).as_strided(value.size, value.stride, value.offset)
    for i, value in enumerate(program.values):
        if isinstance(value, Call):
            nodes[i] = _call(
                graph,
                value.target,
                substitute(value.args, lambda r: nodes[r.at]),
                substitute(value.kwargs, lambda r: nodes[r.at]),
            )
    outputs = [nodes[i] for i in program.outputs]
    vals = [node.meta["val"] for node in outputs]
    for place, source in program.writes:
        _call(graph, torch.ops.aten.copy_.default, (nodes[place], nodes[source]), {})
    graph.output(tuple(outputs))
    return GraphModule(torch.nn.Module(), graph), inputs, vals


def _call(graph: Graph, target: Any, args: Any, kwargs: Any) -> Any:
    node = graph.call_function(target, args, kwargs)
    fake = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    if target is ITEM:
        node.meta["val"] = fake[0][0][fake[0][1]]
    else:
        try:
            node.meta["val"] = target(*fake[0], **fake[1])
        except Exception as error:
            raise NotTraced(f"{target}: {error}") from error
    return node


def compile_program(program: Program, **options: Any) -> Compiled:
    """Compile; what Toroid refuses runs in PyTorch, as always, and stands in the report."""
    mode = FakeTensorMode()
    with mode, torch.no_grad():
        gm, inputs, vals = build(program, mode)
    context = TracingContext(mode)
    written = {place for place, _ in program.writes}
    context.fw_metadata = SimpleNamespace(
        static_input_indices=[k for k, i in enumerate(inputs) if program.values[i].frozen],
        input_info=[
            SimpleNamespace(mutates_data=i in written, mutates_metadata=False) for i in inputs
        ],
    )
    wanted = parse(None, {"threads": program.threads, **options})
    with tracing(context), listen() as reports, torch.no_grad():
        call = backend.compile_graph(
            gm, [], compiler=backend.toroid._toroid_compiler, job=Job(wanted, {}), kind="inference"
        )
    return Compiled(call, inputs, [tuple(v.stride()) for v in vals], reports[-1])
