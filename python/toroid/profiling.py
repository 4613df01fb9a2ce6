"""Where the time goes: `toroid.profile`.

C records the steps (src/plan/trace.c); this module shows them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from toroid import _core
from toroid.files import write_whole


@dataclasses.dataclass
class Step:
    """A step at one binding of sizes, or several that do the same.

    Attributes
    ----------
    work : str
        What it does: "linear {gelu_erf}".
    shape : str
        Of its first result: "float32[8, 128, 384]".
    kernel : str
        The kernel chosen.
    flops, bytes : float
        A run needs at least: of products, and read and written.
    external : bool
        PyTorch runs it.
    runs : int
        How often it ran inside the block.
    seconds : float
        Of all runs together.
    threads : int
        Most that a run might use.
    """

    work: str
    shape: str
    kernel: str
    flops: float
    bytes: float
    external: bool
    runs: int = 0
    seconds: float = 0.0
    threads: int = 1

    @property
    def rate(self) -> float:
        """Flops a second where it has products, else bytes a second."""
        return (self.flops or self.bytes) * self.runs / self.seconds if self.seconds else 0.0


class Profile:
    """Times of all steps that run inside a ``with`` block, in all threads.

    Attributes
    ----------
    seconds : float
        Of the block.
    lost : int
        Runs of steps that found no room (more than four million).

    Raises
    ------
    ValueError
        On entry, where another profile is being taken.

    Examples
    --------
    >>> with toroid.profile() as p:
    ...     model(x)
    >>> print(p)
    >>> p.save_trace("trace.json")
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lost = 0
        self._steps: list[tuple[Any, ...]] = []
        self._events: list[tuple[int, int, int, float, float]] = []

    def __enter__(self) -> Profile:
        _core.trace_start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._steps, self._events, self.seconds, self.lost = _core.trace_stop()

    def steps(self) -> list[Step]:
        """Steps that do the same, each with its runs; the longest first."""
        merged: dict[tuple[Any, ...], Step] = {}
        for index, _, threads, _, seconds in self._events:
            _, _, work, shape, kernel, _, flops, size, external = self._steps[index]
            key = (work, shape, kernel, flops, size)
            step = merged.setdefault(key, Step(*key, external))
            step.runs += 1
            step.seconds += seconds
            step.threads = max(step.threads, threads)
        return sorted(merged.values(), key=lambda step: -step.seconds)

    def __str__(self) -> str:
        """Return the table of steps: time, and how near to the machine's measured peak."""
        steps = self.steps()
        whole = sum(step.seconds for step in steps)
        head = (
            f"{whole * 1e3:.2f} ms in {sum(s.runs for s in steps)} runs of {len(steps)} steps, "
            f"of {self.seconds * 1e3:.2f} ms"
        )
        if self.lost:
            head += f"; {self.lost} runs not recorded"
        if not steps:
            return head
        flops, size = peaks()
        rows = [("time ms", "share", "runs", "us/run", "rate", "of peak", "result", "work, kernel")]
        for step in steps:
            peak = flops * step.threads if step.flops else size
            unit = "GFLOP/s" if step.flops else "GB/s"
            rows.append(
                (
                    f"{step.seconds * 1e3:.3f}",
                    f"{step.seconds / whole:.1%}" if whole else "",
                    str(step.runs),
                    f"{step.seconds / step.runs * 1e6:.1f}",
                    "" if step.external else f"{step.rate / 1e9:.1f} {unit}",
                    "" if step.external else f"{step.rate / peak:.0%}",
                    step.shape,
                    f"{step.work}  {step.kernel}",
                )
            )
        foot = (
            f"peak of a core: {flops / 1e9:.1f} GFLOP/s of float32 products, "
            f"{size / 1e9:.1f} GB/s from memory (steps whose data lies in caches exceed it)"
        )
        return "\n".join([head, *_aligned(rows), foot])

    def trace(self) -> dict[str, Any]:
        """Events in the format that Perfetto and chrome://tracing read."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "toroid"}}
        ]
        for thread in sorted({event[1] for event in self._events}):
            events.append(
                {
                    "ph": "M",
                    "pid": 1,
                    "tid": thread,
                    "name": "thread_name",
                    "args": {"name": f"caller {thread}"},
                }
            )
        for index, thread, threads, start, seconds in self._events:
            graph, number, work, shape, kernel, origin, flops, size, _ = self._steps[index]
            events.append(
                {
                    "ph": "X",
                    "pid": 1,
                    "tid": thread,
                    "name": work,
                    "cat": "toroid",
                    "ts": start * 1e6,
                    "dur": seconds * 1e6,
                    "args": {
                        "graph": graph,
                        "step": number,
                        "result": shape,
                        "kernel": kernel,
                        "origin": origin,
                        "flops": flops,
                        "bytes": size,
                        "threads": threads,
                    },
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write `trace` as JSON: a file whole or not at all, a pipe or device as it stands.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_whole(path, json.dumps(self.trace()))


@functools.cache
def peaks() -> tuple[float, float]:
    """Flops and bytes that one core does and reads in a second at best; measured once."""
    return _core.peaks()


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [cell.rjust(width) for cell, width in zip(row[:-2], widths, strict=False)]
            + [row[-2].ljust(widths[-2]), row[-1]]
        )
        for row in rows
    ]
