"""Compilers of AOTAutograd's graphs: Toroid's backends in C, Python callables, several in order.

Each has a name, an init hook and a reset. `compile` gives a boxed callable, or raises: what is in
`REFUSALS` if the graph is not for it (the next in line gets it), anything else if it failed.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch.fx import GraphModule

from toroid import _core, _torch
from toroid.lower import Lowered, NotLowerable, lower
from toroid.options import Options, ambient_precision
from toroid.report import GraphReport

#: What a compiler raises to leave a graph to another.
REFUSALS = (NotLowerable, _core.Unsupported)


@dataclasses.dataclass(frozen=True)
class Job:
    """What all graphs of one model share.

    Attributes
    ----------
    options : Options
        Checked.
    given : mapping
        Options as they came, for Python callables.
    lowered : callable, optional
        Gets each lowered graph before it is compiled.
    """

    options: Options
    given: Mapping[str, Any]
    lowered: Callable[[Lowered], None] | None = None


class Compiler(Protocol):
    """What `compile_graph` asks of a compiler."""

    name: str
    #: Whether a backend in C takes part, so that options have to be Toroid's.
    native: bool

    def initialise(self) -> None:
        """Call the init hook."""

    def reset(self) -> None:
        """Follow ``torch._dynamo.reset()``."""

    def compile(
        self, gm: GraphModule, example_inputs: Sequence[Any], job: Job, report: GraphReport
    ) -> _torch.Boxed:
        """Compile one graph of the kind ``report.kind`` and say in `report` who did it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Native:
    """A backend of the table in C.

    Attributes
    ----------
    name : str
        In the table.
    handle : object
        What `toroid._core` knows it by.
    keeps : bool
        It is part of this build, so that a later process may take a graph it compiled as known.
    """

    name: str
    handle: Any
    keeps: bool = False
    native = True

    def initialise(self) -> None:
        _torch.attach()
        _core.backend_init(self.handle)

    def reset(self) -> None:
        pass

    def compile(
        self, gm: GraphModule, example_inputs: Sequence[Any], job: Job, report: GraphReport
    ) -> _torch.Boxed:
        unfrozen = report.kind == "backward" or not job.options.freeze
        lowered = lower(gm, set() if unfrozen else _torch.static_inputs())
        if job.lowered:
            job.lowered(lowered)
        return self.finish(lowered, job, report)

    def finish(self, lowered: Lowered, job: Job, report: GraphReport) -> _torch.Boxed:
        """Compile a graph that is lowered already."""
        options, kind = job.options, report.kind
        report.externals = lowered.externals
        if options.strict and lowered.externals:
            raise _core.Unsupported(report.reasons())
        report.executable = lowered.graph.compile(
            lowered.callables,
            lowered.constants,
            threads=options.threads,
            freeze=options.freeze,
            reference=options.reference,
            precision=options.precision or ambient_precision(),
            # Dynamo guards what a forward graph gets; autograd may bring anything.
            unguarded=kind == "backward",
            # The backward pass and the optimiser would read them back at each step.
            release=options.release_weights and kind == "inference",
            # Toroid itself needs no look at what it made.
            backend=None if self.name == "toroid" else self.handle,
            tune=options.tune,
        )
        return report.executable


class Python:
    """A compiler for AOTAutograd written in Python: ``compile(gm, example_inputs)``.

    It refuses a graph by NotImplementedError or `toroid.Unsupported`. It gets ``options=`` as
    ``torch.compile`` got them, if any were given and it has such a parameter. What it returns takes
    one list where it has ``_boxed_call``, else the inputs.
    """

    native = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self.takes_options = _has_parameter(function, "options")

    def initialise(self) -> None:
        getattr(self.function, "_dynamo_backend_init", _nothing)()

    def reset(self) -> None:
        getattr(self.function, "reset", _nothing)()

    def compile(
        self, gm: GraphModule, example_inputs: Sequence[Any], job: Job, report: GraphReport
    ) -> _torch.Boxed:
        more = {"options": dict(job.given)} if job.given and self.takes_options else {}
        try:
            # A compiler may change its graph and then not do it.
            made = self.function(_torch.copy_graph(gm), example_inputs, **more)
        except NotImplementedError as refusal:
            raise _core.Unsupported(f"compiler {self.name}: {refusal}") from refusal
        if not callable(made):
            raise TypeError(f"compiler {self.name} returned {made!r}, expected a callable")
        report.compiler = self.name
        return made if getattr(made, "_boxed_call", False) else _torch.box(made)


class InOrder:
    """Several compilers: each graph goes to the first, and to the next where that does not do it.

    If all refuse, the whole refuses; if one of them failed, the whole failed.
    """

    def __init__(self, members: Sequence[Compiler]) -> None:
        self.members = tuple(members)
        self.name = f"compose({', '.join(m.name for m in members)})"
        self.native = any(m.native for m in members)

    def initialise(self) -> None:
        for member in self.members:
            member.initialise()

    def reset(self) -> None:
        for member in self.members:
            member.reset()

    def compile(
        self, gm: GraphModule, example_inputs: Sequence[Any], job: Job, report: GraphReport
    ) -> _torch.Boxed:
        reasons = []
        failure = None
        for member in self.members:
            try:
                return member.compile(gm, example_inputs, job, report)
            except _torch.control_flow():
                raise
            except REFUSALS as refusal:
                reasons.append(f"{member.name}: {refusal}")
            except Exception as error:
                reasons.append(f"{member.name}: {type(error).__name__}: {error}")
                failure = error
            report.externals = []
        text = f"{self.name}: {'; '.join(reasons)}"
        if failure is not None:
            raise RuntimeError(text) from failure
        raise _core.Unsupported(text)


class ByKind:
    """Compilers for forward, backward and inference graphs; only the forward one's hook counts."""

    def __init__(self, forward: Compiler, backward: Compiler, inference: Compiler) -> None:
        self.kinds = {"forward": forward, "backward": backward, "inference": inference}
        self.name = f"aot({', '.join(c.name for c in self.kinds.values())})"
        self.native = any(c.native for c in self.kinds.values())

    def initialise(self) -> None:
        self.kinds["forward"].initialise()

    def reset(self) -> None:
        for compiler in dict.fromkeys(self.kinds.values()):
            compiler.reset()

    def compile(
        self, gm: GraphModule, example_inputs: Sequence[Any], job: Job, report: GraphReport
    ) -> _torch.Boxed:
        return self.kinds[report.kind].compile(gm, example_inputs, job, report)


def _nothing() -> None:
    pass


def _has_parameter(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a callable of C that does not say
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)
