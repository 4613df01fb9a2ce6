"""The backend that ``torch.compile(model, backend="toroid")`` finds by its entry point.

AOTAutograd captures, a compiler (`toroid.compilers`) lowers, C compiles and runs.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

from toroid import _core, _decompositions, _torch
from toroid.compilers import REFUSALS, Compiler, Job, Native
from toroid.lower import Lowered
from toroid.options import Options, parse
from toroid.report import GraphReport, publish

log = logging.getLogger("toroid")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Who compiles the graphs of a model, and how AOTAutograd makes them.

    Attributes
    ----------
    compiler : Compiler
        Takes each graph.
    partition : callable, optional
        Splits what has a gradient into forward and backward; PyTorch's plain way by default.
    decompositions : callable, optional
        Gives the table, when it is needed; by default what Toroid does not know is taken apart.
    """

    compiler: Compiler
    partition: Callable[..., Any] | None = None
    decompositions: Callable[[], Mapping[Any, Any]] | None = None


def toroid(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a Dynamo graph.

    Parameters
    ----------
    gm : GraphModule
        Dynamo's graph.
    example_inputs : sequence
        Its inputs, fake.
    mode : str, optional
        None, "default", or "max-autotune": the option ``tune``.
    options : mapping, optional
        See `toroid.options.Options`.

    Raises
    ------
    ValueError
        For an unknown option or a wrong value.
    toroid.Unsupported
        With ``strict``, where anything would be left to PyTorch.
    """
    return _run(gm, example_inputs, mode, options, "toroid", _TOROID)


def toroid_debug(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Print each graph before and after the passes on standard output, then do as `toroid`."""
    return _run(gm, example_inputs, mode, options, "toroid_debug", _DEBUG)


def toroid_reference(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a Dynamo graph to reference kernels: `toroid` with the option ``reference``.

    What differs from its answer is a fault of a pass or of a kernel, since it uses none: leave
    passes out of the default by ``TOROID_SKIP_PASS`` to find out which.
    """
    return toroid(gm, example_inputs, mode=mode, options={**(options or {}), "reference": True})


def initialise() -> None:
    """Check that this PyTorch fits; called when ``torch.compile`` resolves the backend."""
    _torch.attach()


for _function in (toroid, toroid_debug, toroid_reference):
    _function._dynamo_backend_init = initialise
    _function._toroid_compiler = Native(
        _function.__name__, _core.backend_find(_function.__name__), keeps=True
    )

_TOROID = Recipe(toroid._toroid_compiler)
_DEBUG = Recipe(toroid_debug._toroid_compiler)


def by_recipe(recipe: Recipe) -> Callable[..., Any]:
    """A function like `toroid` that goes by another recipe.

    It has the compiler for those who make others of it, and the compiler's init hook and reset
    under the names that PyTorch looks for.
    """
    compiler = recipe.compiler
    ready = False

    def initialise_compiler() -> None:
        nonlocal ready
        compiler.initialise()
        ready = True

    def backend(
        gm: GraphModule,
        example_inputs: Sequence[Any],
        *,
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Callable[..., Any]:
        # A PyTorch that knows such hooks has called it by now.
        if not ready:
            initialise_compiler()
        return _run(gm, example_inputs, mode, options, compiler.name, recipe)

    backend.__name__ = backend.__qualname__ = compiler.name
    backend.__doc__ = f"Compile a Dynamo graph by {compiler.name}; see `toroid`."
    backend._toroid_compiler = compiler
    backend._dynamo_backend_init = initialise_compiler
    backend.reset = compiler.reset
    return backend


def _run(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    mode: str | None,
    options: Mapping[str, Any] | None,
    name: str,
    recipe: Recipe,
) -> Callable[..., Any]:
    """What all backends do."""
    initialise()
    # Compilers in Python may have options of their own.
    checked = parse(mode, options if recipe.compiler.native else None, name)
    job = Job(checked, options or {})
    breaks = getattr(gm, "compile_subgraph_reason", None)
    of_model = {"compiler": recipe.compiler, "breaks": breaks}
    compile = functools.partial(compile_graph, **of_model)
    session = None
    if _keeps(recipe):
        from toroid import saved

        finish = functools.partial(finish_graph, job=job, **of_model)
        session = saved.Session(recipe.compiler, job, compile, finish)
    return _torch.run_aot(
        gm,
        example_inputs,
        compiler=session.compiler
        if session
        else lambda kind: functools.partial(compile, job=job, kind=kind),
        decompositions=recipe.decompositions or _decompositions.native,
        partition=recipe.partition,
        cache=session.keeping() if session else None,
    )


def _keeps(recipe: Recipe) -> bool:
    """Whether a later process may take what this recipe compiles as known."""
    ours = getattr(recipe.compiler, "keeps", False)
    if not _core.store_enabled() or not ours or recipe.partition or recipe.decompositions:
        return False
    try:
        from toroid import _aot_cache
    except (ImportError, AttributeError):  # another PyTorch
        return False
    return _aot_cache.usable()


def compile_graph(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    compiler: Compiler,
    job: Job,
    kind: str,
    breaks: Any = None,
) -> Callable[[list[Any]], Any]:
    """Compile one AOTAutograd graph; falls back to PyTorch as a whole where it must."""
    options = job.options
    report = GraphReport(kind=kind, graph_break=breaks)
    if kind != "backward":
        _torch.restart_for_floats(gm)
        _torch.donate_nothing()
    run = None
    try:
        run = compiler.compile(gm, example_inputs, job, report)
        log.info("%s graph: compiled by %s", kind, report.backend)
    except REFUSALS as error:
        if options.strict and report.externals:
            raise
        report.fallback = str(error)
    _tell(report, options)
    if run is None:
        if options.strict:
            raise _core.Unsupported(report.reasons())
        run = _torch.eager(gm)
    # The backward is wrapped by PyTorch in a way that only keeps what is in a function's __dict__.
    return _torch.boxed(run) if kind == "backward" else run


def finish_graph(
    lowered: Lowered, *, compiler: Native, job: Job, kind: str, breaks: Any = None
) -> Callable[[list[Any]], Any]:
    """`compile_graph` of a graph that an earlier process lowered and compiled."""
    report = GraphReport(kind=kind, graph_break=breaks)
    run = compiler.finish(lowered, job, report)
    log.info("%s graph: found in TOROID_CACHE_DIR, compiled by %s", kind, report.backend)
    _tell(report, job.options)
    return _torch.boxed(run) if kind == "backward" else run


def _tell(report: GraphReport, options: Options) -> None:
    """All who want to know what became of a graph."""
    publish(report)
    if options.verbose:
        log.warning("%s", report)
    elif not options.strict:
        _warn(report)
    _torch.publish_artifacts(f"toroid_{report.kind}", report.artifacts)


_warned: set[str] = set()


def _warn(report: GraphReport) -> None:
    """Say once for each kind what PyTorch runs, and why."""
    for kind, text in report.left_to_pytorch():
        if kind not in _warned:
            _warned.add(kind)
            log.warning("%s", text)
