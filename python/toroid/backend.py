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
    return _run(gm, example_inputs, mode, options, "toroid", None)


def toroid_debug(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Print each graph before and after the passes on standard output, then do as `toroid`."""
    handle = _core.backend_resolve("toroid_debug")
    return _run(gm, example_inputs, mode, options, "toroid_debug", handle)


def by_handle(name: str, handle: Any) -> Callable[..., Any]:
    """A function like `toroid` that has each graph compiled by another backend.

    Parameters
    ----------
    name : str
        For messages.
    handle : capsule
        Of ``_core.backend_resolve``.
    """
    ready = False

    def initialise_both() -> None:
        nonlocal ready
        initialise()
        _core.backend_init(handle)
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
            initialise_both()
        return _run(gm, example_inputs, mode, options, name, handle)

    backend.__name__ = backend.__qualname__ = name
    backend.__doc__ = f"Compile a Dynamo graph by Toroid's backend {name}; see `toroid`."
    backend._dynamo_backend_init = initialise_both
    return backend


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
toroid_debug._dynamo_backend_init = initialise


def _run(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    mode: str | None,
    options: Mapping[str, Any] | None,
    name: str,
    handle: Any,
) -> Callable[..., Any]:
    """What all backends do; `handle` is that of the one that compiles, None for Toroid itself."""
    initialise()
    wanted = parse(mode, options, name)
    breaks = getattr(gm, "compile_subgraph_reason", None)
    compiler = functools.partial(_compile, options=wanted, breaks=breaks, handle=handle)
    return _torch.run_aot(
        gm,
        example_inputs,
        forward=functools.partial(compiler, kind="forward"),
        backward=functools.partial(compiler, kind="backward"),
        inference=functools.partial(compiler, kind="inference"),
    )


def _compile(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Options,
    breaks: Any,
    kind: str,
    handle: Any = None,
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
            backend=handle,
            tune=options.tune,
        )
        log.info("%s graph: compiled by %s", kind, report.backend)
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
