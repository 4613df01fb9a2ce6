"""The backend that ``torch.compile(model, backend="toroid")`` finds by its entry point.

AOTAutograd captures, `toroid.lower` forwards the nodes, C compiles and runs.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

from toroid import _core, _torch
from toroid.lower import NotLowerable, lower
from toroid.options import Options, ambient_precision, parse
from toroid.report import GraphReport, publish

log = logging.getLogger("toroid")


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
        None or "default".
    options : mapping, optional
        See `toroid.options.Options`.

    Raises
    ------
    ValueError
        For an unknown option or a wrong value.
    toroid.Unsupported
        With ``strict``, where anything would be left to PyTorch.
    """
    initialise()
    wanted = parse(mode, options)
    breaks = getattr(gm, "compile_subgraph_reason", None)
    compiler = functools.partial(functools.partial, _compile, options=wanted, breaks=breaks)
    return _torch.run_aot(
        gm,
        example_inputs,
        forward=compiler(kind="forward"),
        backward=compiler(kind="backward"),
        inference=compiler(kind="inference"),
    )


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


toroid._dynamo_backend_init = initialise
toroid_reference._dynamo_backend_init = initialise


def _compile(
    gm: GraphModule, example_inputs: Sequence[Any], *, options: Options, breaks: Any, kind: str
) -> Callable[[list[Any]], Any]:
    """Compile one AOTAutograd graph; falls back to PyTorch as a whole where it must."""
    report = GraphReport(kind=kind, graph_break=breaks)
    if kind != "backward":
        _torch.restart_for_floats(gm)
    try:
        frozen = set() if kind == "backward" or not options.freeze else _torch.static_inputs()
        lowered = lower(gm, frozen)
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
        )
    except NotLowerable as error:
        report.fallback = str(error)
    except _core.Unsupported as error:
        if options.strict and report.externals:
            raise
        report.fallback = str(error)
    publish(report)
    if options.verbose:
        log.warning("%s", report)
    elif not options.strict:
        _warn(report)
    _torch.publish_artifacts(f"toroid_{kind}", report.artifacts)
    if report.fallback is not None:
        if options.strict:
            raise _core.Unsupported(report.reasons())
        return _torch.eager(gm)
    # The backward is wrapped by PyTorch in a way that only keeps what is in a function's __dict__.
    return _torch.boxed(report.executable) if kind == "backward" else report.executable


_warned: set[str] = set()


def _warn(report: GraphReport) -> None:
    """Say once for each kind what PyTorch runs, and why."""
    for kind, text in report.left_to_pytorch():
        if kind not in _warned:
            _warned.add(kind)
            log.warning("%s", text)
