"""What was compiled, what was not, and why: `toroid.explain`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from toroid.files import write_whole

# Lists to add to, each with the thread whose graphs it wants; None: all threads'.
_listeners: list[tuple[int | None, list[GraphReport]]] = []


@dataclasses.dataclass
class GraphReport:
    """One graph that AOTAutograd handed over.

    Attributes
    ----------
    kind : str
        "inference", "forward" or "backward".
    externals : list of toroid.lower.External
        Nodes that PyTorch runs, each with its reason.
    fallback : str or None
        Why the whole graph stays with PyTorch.
    executable : toroid._core.Executable or None
        The compiled graph.
    graph_break : torch._dynamo GraphCompileReason or None
        Why Dynamo ended the graph.
    compiler : str or None
        Name of the compiler in Python that took the graph.
    """

    kind: str
    externals: list[Any] = dataclasses.field(default_factory=list)
    fallback: str | None = None
    executable: Any = None
    graph_break: Any = None
    compiler: str | None = None

    @property
    def stats(self) -> dict[str, int]:
        """Counts as of now; empty for a graph that PyTorch runs."""
        return self.executable.stats() if self.executable else {}

    @property
    def backend(self) -> str | None:
        """Name of the backend or compiler; None for a graph that PyTorch runs."""
        return self.executable.backend if self.executable else self.compiler

    @property
    def native(self) -> int:
        """Nodes that Toroid runs."""
        return self.stats.get("native_nodes", 0)

    def tables(self) -> dict[str, str]:
        """The graph before and after the passes, and the steps with their kernels."""
        return self.executable.describe() if self.executable else {}

    def reasons(self) -> str:
        """All that keeps this graph from being native, one line each."""
        lines = [f"{e.target} ({e.origin}): {e.reason}" for e in self.externals]
        if self.fallback is not None:
            lines.append(f"the whole graph: {self.fallback}")
        return f"{self.kind} graph is not fully native:\n" + "\n".join(
            f"  {line}" for line in lines
        )

    def left_to_pytorch(self) -> list[tuple[str, str]]:
        """Kind and text of each thing that PyTorch runs, for warnings."""
        rows = [e.row() for e in self.externals]
        found = [(t, f"PyTorch runs {t} ({origin}): {reason}") for t, origin, reason in rows]
        if self.fallback is not None:
            text = f"PyTorch runs a whole {self.kind} graph: {self.fallback}"
            found.append((self.fallback, text))
        return found

    def artifacts(self) -> dict[str, str]:
        """Texts for logs, by name."""
        return {"report": str(self), **self.tables()}

    def __str__(self) -> str:
        if self.fallback is not None:
            return f"{self.kind} graph, run by PyTorch: {self.fallback}"
        if self.compiler is not None:
            return f"{self.kind} graph by {self.compiler}"
        stats = self.stats
        by = "" if self.backend == "toroid" else f" by {self.backend}"
        head = (
            f"{self.kind} graph{by}: {_count(stats['native_nodes'], 'native node')}, "
            f"{_count(len(self.externals), 'external node')}, {_count(stats['steps'], 'step')}, "
            f"weights {_bytes(stats['weight_bytes'])}, arena {_bytes(stats['arena_bytes'])}"
        )
        rows = [e.row() for e in self.externals]
        return head + ("\n" + _table(("external node", "origin", "reason"), rows) if rows else "")


@dataclasses.dataclass
class Explanation:
    """What `toroid.explain` found.

    Attributes
    ----------
    graphs : list of GraphReport
        In the order in which they were compiled.
    result : object
        What the model returned.
    name : str
        Of the model.
    """

    graphs: list[GraphReport]
    result: Any = None
    name: str = ""

    @property
    def breaks(self) -> list[str]:
        """Places and reasons of Dynamo's graph breaks."""
        ends = {id(g.graph_break): g.graph_break for g in self.graphs}
        return [
            f"{e.user_stack[-1].filename}:{e.user_stack[-1].lineno}: {e.reason.splitlines()[0]}"
            if e.user_stack
            else e.reason.splitlines()[0]
            for e in ends.values()
            if e is not None and getattr(e, "graph_break", False)
        ]

    @property
    def native(self) -> int:
        """Native nodes of all graphs."""
        return sum(g.native for g in self.graphs)

    @property
    def externals(self) -> list[Any]:
        """External nodes of all graphs."""
        return [e for g in self.graphs for e in g.externals]

    def steps(self) -> str:
        """Every step with its kernel."""
        return "\n\n".join(g.tables().get("steps", str(g)) for g in self.graphs)

    def passes(self) -> str:
        """Each graph before and after the passes."""
        parts = []
        for i, g in enumerate(self.graphs):
            tables = g.tables()
            if tables:
                parts.append(
                    f"graph {i} before:\n{tables['before']}\ngraph {i} after:\n{tables['after']}"
                )
        return "\n".join(parts)

    def html(self) -> str:
        """A page that draws the graphs; it stands alone and needs no network."""
        from toroid.html import page

        return page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `html()` to a file, whole or not at all.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_whole(path, self.html())

    def __str__(self) -> str:
        left = sum(g.fallback is not None for g in self.graphs)
        lines = [
            f"{_count(len(self.graphs), 'graph')}, {_count(len(self.breaks), 'graph break')}, "
            f"{_count(self.native, 'native node')}, "
            f"{_count(len(self.externals), 'external node')}"
            + (f", {_count(left, 'graph')} run by PyTorch" if left else "")
        ]
        if not self.graphs:
            lines.append(
                "PyTorch captured nothing: the model has no operators, or Dynamo runs this code as "
                "it is (a skipped frame, or its limit of recompilations); its log tells"
            )
        lines += [f"graph break at {reason}" for reason in self.breaks]
        lines += [f"[{i}] {g}" for i, g in enumerate(self.graphs)]
        return "\n".join(lines)


def publish(report: GraphReport) -> None:
    """Give a report to whoever listens."""
    for thread, reports in _listeners:
        if thread in (None, threading.get_ident()):
            reports.append(report)


@contextlib.contextmanager
def listen(*, this_thread: bool = False) -> Iterator[list[GraphReport]]:
    """Collect the reports of graphs compiled inside the block, of all models.

    Parameters
    ----------
    this_thread : bool
        Leave out what other threads compile meanwhile.

    Yields
    ------
    list of GraphReport
        Grows as graphs are compiled.

    Examples
    --------
    >>> with toroid.report.listen() as graphs:
    ...     compiled(x)
    >>> print(len(graphs), "graphs")
    """
    reports: list[GraphReport] = []
    entry = (threading.get_ident() if this_thread else None, reports)
    _listeners.append(entry)
    try:
        yield reports
    finally:
        _listeners[:] = [other for other in _listeners if other is not entry]


def explain(
    model: Callable[..., Any],
    *inputs: Any,
    options: dict[str, Any] | None = None,
    backend: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Explanation:
    """Compile `model` for these inputs and report what runs natively, what does not, and why.

    The model runs once, so that graphs after a graph break are seen too, and so does backward where
    the result has a gradient; no ``.grad`` changes.

    Parameters
    ----------
    model : callable
        A module or function; compiled anew, whatever was compiled of it before.
    *inputs, **kwargs
        Its inputs.
    options : dict, optional
        As for ``torch.compile(..., options=...)``; not passed to the model.
    backend : callable, optional
        Of `toroid.backends.get`, `toroid.compose` or `toroid.aot`; Toroid itself by default.

    Returns
    -------
    Explanation
        Prints as a table; ``save("report.html")`` writes a page that draws the graphs.

    Raises
    ------
    TypeError
        If `model` cannot be called.

    Examples
    --------
    >>> print(toroid.explain(model, x))
    """
    if not callable(model):
        raise TypeError(f"toroid.explain: expected a module or a function, got {model!r}")
    import torch

    from toroid.backend import toroid
    from toroid.gradients import differentiate

    def fresh(gm: Any, example_inputs: Any) -> Any:
        return (backend or toroid)(gm, example_inputs, options=options)

    # Isolated: what is compiled here must not count against Dynamo's limit for the model's code.
    with listen(this_thread=True) as reports:
        result = torch.compile(model, backend=fresh, isolate_recompiles=True)(*inputs, **kwargs)
        differentiate(result)
    name = getattr(model, "__qualname__", None)
    return Explanation(
        list(reports), result, name if isinstance(name, str) else type(model).__qualname__
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head) - 1)]
    lines = []
    for row in [head, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([*cells, row[-1]]))
    return "\n".join(lines)
