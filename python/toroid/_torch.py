"""Contacts with PyTorch that may change with its version.

Others are `_sizes`, `_decompositions`, `_kept` and `_aot_cache`; the rest of the package uses
public names only. Tried on 2.13.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from toroid import _core, _kept, _sizes

#: What a compiler for AOTAutograd is: graph and example inputs to a boxed callable.
Compiler = Callable[[GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]

#: What a compiler returns: a callable of one list of inputs, which it may empty.
Boxed = Callable[[list[Any]], Any]


@functools.cache
def attach() -> None:
    """Hand PyTorch's entry points to the C module.

    Raises
    ------
    ImportError
        If this PyTorch has no DLPack C exchange table of a version that Toroid knows.
    """
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if exchange is None:
        raise ImportError(
            f"PyTorch {torch.__version__} has no DLPack C exchange API; Toroid needs 2.13 or later"
        )
    _core.attach(
        torch.Tensor,
        exchange,
        torch._C.TensorBase._version,
        torch.Tensor.is_inference,
        torch.Tensor.is_neg,
        torch.get_num_threads,
    )
    if can_release():
        _core.attach_release(torch._C._is_cow_tensor)
    _follow_fused_steps()
    from torch.autograd import profiler

    record = getattr(torch._C._profiler, "_RecordFunctionFast", None)
    if record is not None:
        _core.attach_ranges(profiler, "_is_profiler_enabled", record)


def _follow_fused_steps() -> None:
    """Have a fused optimiser's step noticed: it writes weights and leaves their counters alone."""
    from torch.optim import optimizer

    @torch.compiler.disable(reason="it tells Toroid's table of weights")
    def after_step(stepped: Any, args: Any, kwargs: Any) -> None:
        for group in stepped.param_groups:
            if group.get("fused"):
                for weight in group["params"]:
                    if weight.grad is not None:
                        _core.rewritten(weight)

    optimizer.register_optimizer_step_post_hook(after_step)


def can_release() -> bool:
    """Whether a storage can be given another owner of its memory."""
    return hasattr(torch.UntypedStorage, "_swap_data_ptr_") and hasattr(torch._C, "_is_cow_tensor")


def publish_artifacts(prefix: str, texts: Callable[[], dict[str, str]]) -> None:
    """Hand texts to PyTorch's structured log (TORCH_TRACE, tlparse), if it is on."""
    from torch._logging import _internal

    if not _internal.trace_log.handlers:
        return
    for name, text in texts().items():
        torch._logging.trace_structured(
            "artifact",
            metadata_fn=lambda name=name: {"name": f"{prefix}_{name}", "encoding": "string"},
            payload_fn=lambda text=text: text,
        )


# ------------------------------------------------------------------ AOTAutograd


def run_aot(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    compiler: Callable[[str], Compiler],
    decompositions: Callable[[], Mapping[Any, Any]],
    partition: Callable[..., Any] | None = None,
    cache: contextlib.AbstractContextManager[None] | None = None,
) -> Callable[..., Any]:
    """Capture through AOTAutograd, with a compiler for each kind of graph.

    Parameters
    ----------
    compiler : callable
        Gives that of a kind: "forward", "backward" or "inference".
    decompositions : callable
        Gives the table that PyTorch takes ops apart by.
    partition : callable, optional
        Splits the joint graph; by default all that forward computes is kept for backward.
    cache : context manager, optional
        Within it AOTAutograd keeps what it makes; the compilers are `toroid._aot_cache.compiler`'s.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch import config

    count = len(example_inputs)
    kept = remove_known_floats(gm)
    # The cache wants results that it can serialise.
    without = config.patch(force_autograd_cache=False, enable_autograd_cache=False)
    with (
        cache or without,
        _no_restart_for_floats(),
        _kept.whole(),
    ):
        run = aot_autograd(
            fw_compiler=compiler("forward"),
            bw_compiler=compiler("backward"),
            inference_compiler=compiler("inference"),
            decompositions=decompositions,
            keep_inference_input_mutations=True,
            **({"partition_fn": partition} if partition else {}),
        )(gm, [example_inputs[i] for i in kept])
    if len(kept) == count:
        return run

    def call(*args: Any) -> Any:
        # Dynamo passes what its graph has left; whoever gave us a copy of the graph passes all.
        return run(*args) if len(args) == len(kept) else run(*(args[i] for i in kept))

    return call


# ------------------------------------------------------------------ Python floats
#
# With dynamic shapes Dynamo makes each Python float (a dropout's p, a norm's eps) a float64 tensor
# and an item() in the graph. AOTAutograd makes those that arithmetic on tensors uses into tensors
# and guards on the values of the rest. For these it then raises TensorifyScalarRestartAnalysis: the
# whole capture, Dynamo's part included, runs a second time, only to drop the inputs (PyTorch says
# so in OutputGraph.remove_tensorify_specialized_graphargs; backend="aot_eager" pays too). Toroid
# drops what Dynamo knows already, as Dynamo would on the second run, takes an input more for the
# few others, and so halves the time to the first result. Guards are the same.


def is_python_float(node: torch.fx.Node) -> bool:
    arg = node.meta.get("grapharg")
    return getattr(arg, "pass_arg_as_tensor", False) and not getattr(arg, "is_tensor", True)


def remove_known_floats(gm: GraphModule) -> list[int]:
    """Remove from Dynamo's graph the Python floats that it has guarded on; no guard is added.

    Returns
    -------
    list of int
        Which of the inputs are left.
    """
    kept = []
    removed = False
    for i, place in enumerate(gm.graph.find_nodes(op="placeholder")):
        items = {user: _sizes.known_number(user.meta.get("example_value")) for user in place.users}
        if (
            not is_python_float(place)
            or any(user.target != "item" for user in items)
            or None in items.values()
        ):
            kept.append(i)
            continue
        for user, value in items.items():
            user.replace_all_uses_with(value)
            gm.graph.erase_node(user)
        gm.graph.erase_node(place)
        removed = True
    if removed:
        gm.recompile()
    return kept


def _float_symbols(expressions: Iterable[Any]) -> set[Any]:
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    symbols = {s for e in expressions for s in getattr(e, "free_symbols", ())}
    return {s for s in symbols if symbol_is_type(s, SymT.FLOAT)}


@contextlib.contextmanager
def _no_restart_for_floats() -> Iterator[None]:
    """Tell AOTAutograd that all Python floats are seen to, so that none needs a second run."""
    from torch._dynamo.exc import TensorifyScalarRestartAnalysis
    from torch._dynamo.symbolic_convert import TensorifyState

    context = torch._guards.TracingContext.try_get()
    shapes = context and context.fake_mode and context.fake_mode.shape_env
    names = {str(s) for s in _float_symbols(shapes.backed_var_to_val if shapes else ())}
    names -= TensorifyState.force_specializations
    TensorifyState.force_specializations |= names
    try:
        yield
    except TensorifyScalarRestartAnalysis as restart:
        # The second run reads the state; see restart_for_floats().
        names -= set(restart.args)
        raise
    finally:
        # Symbols of other frames may have the same names.
        TensorifyState.force_specializations -= names


def restart_for_floats(gm: GraphModule) -> None:
    """Have the capture run again with constants for the Python floats that sizes depend on.

    Raises
    ------
    torch._dynamo.exc.TensorifyScalarRestartAnalysis
        As AOTAutograd would.
    """
    from torch._dynamo.exc import TensorifyScalarRestartAnalysis

    values = [node.meta.get("val") for node in gm.graph.nodes]
    numbers = [size for val in values if isinstance(val, torch.Tensor) for size in val.shape]
    numbers += [val for val in values if isinstance(val, torch.SymInt | torch.SymFloat)]
    if symbols := _float_symbols(n.node.expr for n in numbers if hasattr(n, "node")):
        raise TensorifyScalarRestartAnalysis(*map(str, symbols))


def static_inputs() -> set[int]:
    """Numbers of the inputs that are weights or buffers and that the graph does not write.

    Only right while AOTAutograd compiles a forward or an inference graph.
    """
    context = torch._guards.TracingContext.try_get()
    metadata = context and context.fw_metadata
    if not metadata:
        return set()
    written = {
        i
        for i, info in enumerate(metadata.input_info)
        if info.mutates_data or info.mutates_metadata
    }
    return set(metadata.static_input_indices or ()) - written


def donate_nothing() -> None:
    """Let backward run again (``retain_graph=True``): no compiler here reuses what is saved for it.

    Only right while AOTAutograd compiles a forward graph. PyTorch refuses a second run where saved
    tensors are noted as donated.
    """
    context = torch._guards.TracingContext.try_get()
    metadata = context and context.fw_metadata
    if metadata and hasattr(metadata, "bw_donated_idxs"):
        metadata.bw_donated_idxs = []


def partitioner(name: str) -> Callable[..., Any]:
    """A function for `run_aot` that splits joint graphs: "min_cut" or "default"."""
    from torch._functorch import partitioners

    return {
        # Computes again in backward what is cheap, so that less is kept.
        "min_cut": partitioners.min_cut_rematerialization_partition,
        "default": partitioners.default_partition,
    }[name]


def control_flow() -> tuple[type[BaseException], ...]:
    """What PyTorch raises to have the capture done anew or given up; nobody's failure."""
    from torch._dynamo import exc

    return exc.RestartAnalysis, exc.SkipFrame


def copy_graph(gm: GraphModule) -> GraphModule:
    """A graph that may be changed; modules and tensors are shared."""
    return GraphModule(gm, copy.deepcopy(gm.graph))


def box(function: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function of tensors as one of a list that it empties."""
    from torch._functorch.aot_autograd import make_boxed_func

    return make_boxed_func(function)


def boxed(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A plain boxed function, for wrappers that need one with a ``__dict__``."""

    def call(inputs: list[Any]) -> Any:
        return function(inputs)

    call._boxed_call = True
    return call


def eager(gm: GraphModule) -> Callable[[list[Any]], Any]:
    """The graph as PyTorch runs it, boxed."""
    return box(gm.forward)


# ------------------------------------------------------------------ FX nodes


def name_of(target: Any) -> str:
    """The name under which the importer knows a target: "aten.addmm.default", "_operator.mul"."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def is_getitem(target: Any) -> bool:
    """Whether a target picks an item of a tuple."""
    return target is operator.getitem


def is_random(target: Any) -> bool:
    """Whether calls of a target must stay, once each and in order."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if is_collective(target):
        return True  # processes meet in the order of their calls
    return torch.Tag.nondeterministic_seeded in target.tags or not target._schema.returns


def is_collective(target: Any) -> bool:
    """Whether a target exchanges data with other processes."""
    return isinstance(target, torch._ops.OpOverload) and target.namespace.endswith(
        ("c10d_functional", "c10d_functional_autograd")
    )


def wait_for(result: Any) -> Any:
    """What a collective began, when it is there: until then its memory may not be read."""
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, torch.ops._c10d_functional.wait_tensor.default, result
    )


def is_effect(target: Any) -> bool:
    """Whether a target is a call under a token, which orders side effects."""
    return target is torch.ops.higher_order.with_effects


def unwrap_effects(gm: GraphModule) -> set[torch.fx.Node]:
    """Turn calls of ATen ops under a token into plain calls, and return the tokens' placeholders.

    A token is a tensor while PyTorch traces and None when the graph runs. Calls that return nothing
    stay in their order without it (see `is_random`).
    """
    tokens: set[torch.fx.Node] = set()
    for node in list(gm.graph.nodes):
        if not is_effect(node.target) or not isinstance(node.args[1], torch._ops.OpOverload):
            continue
        token, target, *args = node.args
        if token.op != "placeholder" or target._schema.returns:
            continue  # without results, all users ask for the token
        with gm.graph.inserting_before(node):
            call = gm.graph.call_function(target, tuple(args), node.kwargs)
        call.meta = {**node.meta, "val": None}
        for user in list(node.users):
            user.replace_all_uses_with(token)
            gm.graph.erase_node(user)
        gm.graph.erase_node(node)
        tokens.add(token)
    return tokens


def is_mutable(target: Any) -> bool:
    """Whether a target writes any of its arguments."""
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable


def misjudges_sizes(node: torch.fx.Node) -> bool:
    """Whether fake tensors may give results sizes that they have not when the call runs.

    What `_embedding_bag` keeps for its gradient is empty for bfloat16; the fake tensors are not.
    """
    operands = (n.meta.get("val") for n in node.all_input_nodes)
    return name_of(node.target).startswith("aten._embedding_bag") and any(
        isinstance(val, torch.Tensor) and val.dtype is torch.bfloat16 for val in operands
    )


def reads_memory(target: Any) -> bool:
    """Whether a target looks at the memory of its first argument, not only at its elements."""
    return target is torch.ops.aten.as_strided.default


def writes_memory(target: Any) -> bool:
    """Whether what an op writes depends on how its first argument lies in memory."""
    return target is torch.ops.aten.as_strided_scatter.default


def base_of(node: torch.fx.Node) -> torch.fx.Node:
    """The node whose memory a node's tensor is a view of, perhaps through others; or itself."""
    while True:
        source: Any = node.args[0] if node.args else None
        while isinstance(source, torch.fx.Node) and is_getitem(node.target):
            node, source = source, source.args[0]  # an item of several views
        if not isinstance(source, torch.fx.Node) or not _share_memory(node, source):
            return node
        node = source


def _share_memory(view: torch.fx.Node, base: torch.fx.Node) -> bool:
    a, b = view.meta.get("val"), base.meta.get("val")
    if isinstance(a, tuple | list):
        a = a[0] if a else None
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or a.dtype != b.dtype:
        return False
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def is_plain(tensor: Any) -> bool:
    """Whether a (fake) tensor is a strided one on the CPU whose memory is its value."""
    from torch._subclasses.fake_tensor import FakeTensor

    return (
        type(tensor) in (FakeTensor, torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_quantized
        and not tensor.is_neg()
    )
