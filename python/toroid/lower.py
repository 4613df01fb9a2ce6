"""FX graph to a Toroid graph, node by node.

No op is known here: each call goes to ``Graph.call`` by its name, and what C refuses becomes an
external node with C's reason. A value that the IR cannot hold (a complex tensor, a float made of
sizes, a size that depends on data) is *deferred*: the external node that uses it computes it too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from toroid import _core, _decompositions, _sizes, _torch
from toroid.external import make_callable


class NotLowerable(Exception):
    """The whole graph stays with PyTorch; the message is the reason."""


class _Refused(Exception):
    """One call stays with PyTorch; the message is the reason."""


class _Unknown(Exception):
    """A size, or a tensor, that the IR cannot express."""


@dataclasses.dataclass(frozen=True)
class _Deferred:
    """Stands for a node whose value only PyTorch can hold, and says why."""

    node: Node
    reason: str


@dataclasses.dataclass(frozen=True)
class External:
    """An external node, for the report.

    Attributes
    ----------
    target : str
        The call that PyTorch runs: "aten.linalg_matrix_exp.default".
    origin : str
        Name of its node in the captured graph.
    reason : str
        Why Toroid does not run it.
    """

    target: str
    origin: str
    reason: str

    def row(self) -> tuple[str, str, str]:
        """Target, origin, and the reason without the target's name before it."""
        return self.target, self.origin, self.reason.removeprefix(f"{self.target}: ")


@dataclasses.dataclass
class Lowered:
    """A graph that is ready to compile, and what goes with it."""

    graph: _core.Graph
    callables: list[Any]
    constants: tuple[torch.Tensor, ...]
    externals: list[External]


def lower(gm: GraphModule, frozen: set[int]) -> Lowered:
    """Lower an AOTAutograd graph.

    Parameters
    ----------
    gm : GraphModule
        ATen calls over fake tensors (``node.meta["val"]``).
    frozen : set of int
        Numbers of placeholders that are weights and that this graph does not write.

    Raises
    ------
    NotLowerable
        If the graph as a whole has to stay with PyTorch.
    """
    return _Lowering(gm, frozen).run()


class _Lowering:
    def __init__(self, gm: GraphModule, frozen: set[int]) -> None:
        self.gm = gm
        self.tokens = _torch.unwrap_effects(gm)
        self.frozen = frozen - _written_placeholders(gm)
        self.graph = _core.Graph()
        self.symbols: dict[Any, Any] = {}  # sympy symbol -> Int
        self.env: dict[Node, Any] = {}
        self.numbers: dict[Node, int] = {}  # placeholder -> number of the graph's input
        self.writes: dict[int, Any] = {}
        self.callables: list[Any] = []
        self.constants: list[torch.Tensor] = []
        self.externals: list[External] = []

    def run(self) -> Lowered:
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                self.env[node] = self.placeholder(node)
            elif node.op == "get_attr":
                self.env[node] = self.attribute(node)
            elif node.op == "call_function":
                self.env[node] = self.call(node)
            elif node.op == "output":
                self.output(node)
            else:
                raise NotLowerable(f"{node.name}: FX op {node.op}")
        return Lowered(self.graph, self.callables, tuple(self.constants), self.externals)

    # -------------------------------------------------------------- sizes

    def size(self, size: Any) -> Any:
        """A size as an int, an Int or, if it is a lone unknown symbol, `_Unknown`."""
        expr = _sizes.expression(size)
        if isinstance(expr, int):
            return expr
        try:
            return self.graph.size(str(expr))
        except ValueError:
            pass
        try:
            return _sizes.evaluate(expr, self.symbols)
        except Exception as error:
            raise _Unknown(f"size {expr} is not known before the graph runs") from error

    def sizes(self, tensor: torch.Tensor) -> list[Any]:
        return [self.size(s) for s in tensor.shape]

    def input_size(self, size: Any) -> Any:
        """A size of an input: what is not known yet is named by its text and defined there."""
        try:
            return self.size(size)
        except _Unknown:
            return str(_sizes.expression(size))

    def layout(self, node: Node) -> tuple[str, list[Any]]:
        """The strides that eager gives an output: exact, or the order of dims, outermost first."""
        strides = node.meta["val"].stride()
        try:
            known = self.input_strides(node)
            return "strides", [self.stride(known, dim, s) for dim, s in enumerate(strides)]
        except _Unknown:
            return "order", _sizes.dim_order(strides)

    def stride(self, known: dict[Any, Any], dim: int, stride: Any) -> Any:
        expr = _sizes.expression(stride)
        for key in ((dim, expr), expr):
            if key in known:
                return known[key]
        return self.size(stride)

    def input_strides(self, view: Node) -> dict[Any, Any]:
        """What the graph calls the strides, not known yet, of the input that `view` shows.

        By expression, and by dim and expression: a view that keeps a stride has the same one.
        """
        base = _torch.base_of(view)
        while view is not base:
            if _torch.reads_memory(view.target):
                return {}  # an as_strided has strides of its own
            view = view.args[0]
        val = base.meta.get("val")
        if base not in self.numbers or not isinstance(val, torch.Tensor):
            return {}
        strides = [_sizes.expression(s) for s in val.stride()]
        if _sizes.is_row_major(val) or all(isinstance(s, int) for s in strides):
            return {}
        known: dict[Any, Any] = {}
        for dim, stride in enumerate(strides):
            named = self.graph.call("aten.sym_stride.int", (self.env[base], dim), {}, base.name)
            known[dim, stride] = named
            known.setdefault(stride, named)
        return known

    def learn(self, sizes: Iterable[Any]) -> None:
        """Keep the symbols among sizes that an input has just defined."""
        for size in sizes:
            expr = _sizes.expression(size)
            if getattr(expr, "is_Symbol", False) and expr not in self.symbols:
                self.symbols[expr] = self.graph.size(str(expr))

    # -------------------------------------------------------------- inputs

    def placeholder(self, node: Node) -> Any:
        number = self.numbers[node] = len(self.numbers)
        val = node.meta.get("val")
        if node in self.tokens:
            self.graph.add_int_input(node.name, None)
            return None
        if isinstance(val, torch.Tensor):
            return self.add_tensor(node.name, val, number in self.frozen)
        known = _sizes.known_number(val)
        val = val if known is None else known  # what guards have fixed meanwhile
        if isinstance(val, torch.SymInt):
            if _sizes.is_ragged(val):
                raise NotLowerable(f"input {node.name}: a ragged size of a nested tensor")
            value = self.graph.add_int_input(node.name, str(_sizes.expression(val)))
            self.learn([val])
            return value
        if isinstance(val, int):
            self.graph.add_int_input(node.name, None)
            return val
        raise NotLowerable(f"input {node.name}: a {type(val).__name__}")

    def add_tensor(self, name: str, tensor: torch.Tensor, frozen: bool) -> Any:
        if tensor.device.type != "cpu":
            raise NotLowerable(
                f"input {name}: it is on device '{tensor.device}', and Toroid runs on the CPU"
            )
        if not _torch.is_plain(tensor):
            raise NotLowerable(f"input {name}: a {type(tensor).__name__} of layout {tensor.layout}")
        sizes = [self.input_size(s) for s in tensor.shape]
        strides = [_sizes.expression(s) for s in tensor.stride()]
        static = all(isinstance(s, int) for s in strides)
        try:
            value = self.graph.add_input(
                name,
                str(tensor.dtype),
                sizes,
                strides if static else None,
                _sizes.is_row_major(tensor),
                frozen,
            )
        except _core.Unsupported as error:
            raise NotLowerable(f"input {name}: {error}") from error
        self.learn(tensor.shape)
        return value

    def attribute(self, node: Node) -> Any:
        value: Any = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return value
        if not isinstance(value, torch.nn.Parameter) and type(value) is not torch.Tensor:
            raise NotLowerable(f"constant {node.target}: a {type(value).__name__}")
        self.constants.append(value)
        return self.add_tensor(str(node.target), value, frozen=True)

    # -------------------------------------------------------------- calls

    def call(self, node: Node) -> Any:
        if _torch.is_effect(node.target):
            raise NotLowerable(
                f"{node.args[1]}: it is a side effect that PyTorch orders by a token"
            )
        if _torch.writes_memory(node.target) and not node.args[0].meta["val"].is_contiguous():
            raise NotLowerable(f"{node.name}: it writes where eager's strides of its input say")
        if _torch.is_mutable(node.target):
            return self.write(node)
        if _torch.is_getitem(node.target):
            return self.item(node)
        known = _sizes.known_number(node.meta.get("val"))
        if known is not None:
            return known
        try:
            return self.native(node, self.env)
        except _Refused as refusal:
            reason = str(refusal)
        try:
            return self.decomposed(node)
        except _Refused:
            return self.external(node, reason)

    def item(self, node: Node) -> Any:
        source, index = self.env[node.args[0]], node.args[1]
        item = source if isinstance(source, _Deferred) else source[index]
        return _Deferred(node, item.reason) if isinstance(item, _Deferred) else item

    def native(self, node: Node, env: dict[Node, Any]) -> Any:
        """Add a call to the graph, or raise `_Refused` with the reason."""
        name = _torch.name_of(node.target)
        for operand in (env[n] for n in node.all_input_nodes):
            if isinstance(operand, _Deferred):
                raise _Refused(f"it needs {operand.node.name}: {operand.reason}")
        if not _core.knows(name):
            raise _Refused(f"{name}: the importer does not know it")
        args = map_arg(node.args, env.__getitem__)
        kwargs = map_arg(node.kwargs, env.__getitem__)
        kwargs = dict(kwargs)
        try:
            if _torch.reads_memory(node.target):
                args, kwargs = self.of_memory(node.args[0], env, args, kwargs)
            result = self.graph.call(name, args, kwargs, node.name)
        except (_core.Unsupported, ValueError) as error:
            raise _Refused(str(error)) from error
        self.compare(node, result)
        return result

    def of_memory(
        self, view: Node, env: dict[Node, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of an as_strided of `view` that speak of the tensor that owns its memory.

        That is a graph input as the caller has it, or a computed tensor; of the latter the
        importer gets the view that is row-major, where eager keeps it in another order.
        """
        base = _torch.base_of(view)
        val, value = base.meta["val"], env[base]
        given = args[3] if len(args) > 3 else kwargs.get("storage_offset")
        offset = view.meta["val"].storage_offset() - val.storage_offset()
        if base in self.numbers and self.numbers[base] not in self.writes:
            if given is None and base is not view:
                start = self.graph.call("aten.sym_storage_offset.default", (value,), {}, base.name)
                given = start + self.size(offset)
        else:
            order = _sizes.memory_order(val) if _sizes.fills_memory(val) else None
            if order is None:
                raise _Refused(f"{base.name} may be a part of a larger memory")
            if order != sorted(order):
                value = self.graph.call("aten.permute.default", (value, order), {}, base.name)
            if given is None:
                given = self.size(offset)
        return (value, *args[1:3]), {**kwargs, "storage_offset": given}

    def compare(self, node: Node, result: Any) -> None:
        """Refuse a result that differs from what PyTorch said it would be."""
        val = node.meta.get("val")
        if isinstance(result, tuple) and isinstance(val, tuple | list):
            used = {user.args[1] for user in node.users if _torch.is_getitem(user.target)}
            for i, item in enumerate(result):
                if i in used and item is None and val[i] is not None:
                    raise _Refused(
                        f"{node.target}: result {i} is used, and Toroid does not compute it"
                    )
            pairs = [
                (r, v) for r, v in zip(result, val, strict=False) if isinstance(r, _core.Value)
            ]
        else:
            pairs = [(result, val)] if isinstance(result, _core.Value) else []
        for value, want in pairs:
            if not isinstance(want, torch.Tensor):
                continue
            if (f"torch.{value.dtype}", value.rank) != (str(want.dtype), want.dim()):
                raise _Refused(
                    f"{node.target}: the importer gives {value.dtype} of rank {value.rank}, "
                    f"PyTorch {want.dtype} of rank {want.dim()}"
                )

    def decomposed(self, node: Node) -> Any:
        """Lower PyTorch's decomposition of a call if every op in it is native."""
        if any(isinstance(self.env[n], _Deferred) for n in node.all_input_nodes):
            raise _Refused("an operand that only PyTorch can hold")
        try:
            gm = _decompositions.decompose(node)
        except Exception as error:
            raise _Refused(f"its decomposition does not trace: {error}") from error
        if gm is None:
            raise _Refused("no decomposition")
        calls = [n for n in gm.graph.nodes if n.op == "call_function"]
        if any(n.op in ("get_attr", "call_module", "call_method") for n in gm.graph.nodes) or any(
            not _torch.is_getitem(n.target)
            and (
                n.target is node.target
                or _torch.is_mutable(n.target)
                or not _core.knows(_torch.name_of(n.target))
            )
            for n in calls
        ):
            raise _Refused("its decomposition has ops that the importer does not know")
        places = (n for n in gm.graph.nodes if n.op == "placeholder")
        env: dict[Node, Any] = {
            inner: self.env[outer]
            for inner, outer in zip(places, node.all_input_nodes, strict=True)
        }
        for inner in calls:
            if _torch.is_getitem(inner.target):
                env[inner] = env[inner.args[0]][inner.args[1]]
            else:
                env[inner] = self.native(inner, env)
        (output,) = (n for n in gm.graph.nodes if n.op == "output")
        result = map_arg(output.args[0], env.__getitem__)
        result = tuple(result) if isinstance(result, list | tuple) else result
        self.compare(node, result)
        return result

    def write(self, node: Node) -> Any:
        """A call that writes its first argument, which has to be an input of the graph."""
        place = node.args[0]
        if place not in self.numbers:
            raise NotLowerable(f"{node.target}: it writes a tensor that is no input of the graph")
        try:
            value = self.native(node, self.env)
        except _Refused as refusal:
            raise NotLowerable(str(refusal)) from refusal
        self.writes[self.numbers[place]] = self.env[place] = value
        return value

    # -------------------------------------------------------------- external nodes

    def external(self, node: Node, reason: str) -> Any:
        val = node.meta.get("val")
        if _torch.misjudges_sizes(node):
            raise NotLowerable(f"{node.name}: its results have other sizes than PyTorch says")
        if isinstance(val, torch.SymInt):
            try:
                return self.size(val)
            except _Unknown:
                pass
        if val is None and node.users:  # checkpoints of random numbers
            raise NotLowerable(f"{node.name}: PyTorch does not say what it gives")
        results = list(val) if isinstance(val, tuple | list) else [val]
        types: dict[int, tuple[str, list[Any]]] = {}
        for i, result in enumerate(results):
            try:
                types[i] = self.tensor_type(result)
            except _Unknown as error:
                if result is not None:
                    reason = f"{reason} ({error})"
        if not types and val is not None:
            if _torch.is_random(node.target):
                raise NotLowerable(f"{node.target}: {reason}")
            return _Deferred(node, reason)

        if _torch.reads_memory(node.target) and node.args[0].op != "placeholder":
            raise NotLowerable(f"{node.target}: {reason}")
        nodes, inputs = self.closure(node)
        tensors = [n for n in inputs if isinstance(self.env[n], _core.Value)]
        ints = [n for n in inputs if isinstance(self.env[n], _core.Int)]
        constants = {n: self.env[n] for n in inputs if n not in tensors and n not in ints}
        single = not isinstance(val, tuple | list)
        picks = [(None if single else i, results[i].dtype) for i in types]
        self.callables.append(make_callable(nodes, tensors, ints, constants, picks))
        values = self.graph.external(
            len(self.callables) - 1,
            [self.env[n] for n in tensors],
            [self.env[n] for n in ints],
            list(types.values()),
            reason,
            any(_torch.is_random(n.target) for n in nodes),
            _torch.name_of(node.target),
        )
        self.externals.append(External(_torch.name_of(node.target), node.name, reason))
        if val is None:
            return None
        by_index = dict(zip(types, values, strict=True))
        if single:
            return by_index[0]
        return tuple(
            by_index.get(i, None if r is None else _Deferred(node, reason))
            for i, r in enumerate(results)
        )

    def tensor_type(self, val: Any) -> tuple[str, list[Any]]:
        """Dtype and sizes of a tensor that the IR can hold; `_Unknown` otherwise."""
        if not isinstance(val, torch.Tensor):
            raise _Unknown(f"a {type(val).__name__}")
        dtype = str(val.dtype).removeprefix("torch.")
        if dtype not in _core.dtypes:
            raise _Unknown(f"it gives {dtype}")
        if not _torch.is_plain(val):
            raise _Unknown(f"it gives a tensor of layout {val.layout} on {val.device}")
        return dtype, self.sizes(val)

    def closure(self, node: Node) -> tuple[list[Node], list[Node]]:
        """A node after the deferred ones that it needs, and the values that they all take."""
        order: list[Node] = []
        inputs: dict[Node, None] = {}

        def visit(n: Node) -> None:
            if n in order:
                return
            for source in n.all_input_nodes:
                value = self.env[source]
                # A tuple is an external or native node with several results, computed again here.
                if isinstance(value, _Deferred | tuple):
                    if _torch.is_random(source.target):
                        raise NotLowerable(
                            f"{source.target}: {n.name} needs its result, which only PyTorch holds"
                        )
                    visit(source)
                else:
                    inputs[source] = None
            order.append(n)

        visit(node)
        return order, list(inputs)

    # -------------------------------------------------------------- outputs

    def output(self, node: Node) -> None:
        returned: list[Any] = []
        layouts: list[Any] = []
        for source in node.args[0]:
            if not isinstance(source, Node):
                returned.append(source)
                layouts.append(None)
                continue
            value = self.env[source]
            if isinstance(value, _Deferred):
                raise NotLowerable(f"output {source.name}: {value.reason}")
            returned.append(value)
            val = source.meta.get("val")
            own = source.op == "placeholder" or not isinstance(val, torch.Tensor)
            layouts.append(None if own else self.layout(source))
        writes = [(value, number) for number, value in self.writes.items()]
        try:
            self.graph.set_outputs(returned, layouts, writes)
        except _core.Unsupported as error:
            raise NotLowerable(str(error)) from error


def _written_placeholders(gm: GraphModule) -> set[int]:
    """Numbers of the placeholders that calls of the graph write."""
    numbers = {n: i for i, n in enumerate(gm.graph.find_nodes(op="placeholder"))}
    return {
        numbers[n.args[0]]
        for n in gm.graph.nodes
        if n.op == "call_function"
        and _torch.is_mutable(n.target)
        and n.args
        and n.args[0] in numbers
    }
