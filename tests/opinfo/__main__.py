"""PyTorch's own operator samples (OpInfo) through the backend, compared with eager.

Every sample of every OpInfo is captured by AOTAutograd, compiled and run; results have to be
eager's in value, dtype, shape and strides. See `sample.Outcome` for what the columns mean.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import random
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import door
import report
import torch
import worker
from exclusions import NO_VALUE, NOT_TRACEABLE, matches
from sample import FAILURES
from torch.testing._internal.common_methods_invocations import op_db

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "int8", "bool")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="tests/opinfo", description=__doc__)
    parser.add_argument("--ops", default="*", help="names or patterns, separated by commas")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument(
        "--sample",
        type=int,
        default=0,
        metavar="N",
        help="only N pairs of op and dtype, and 4 samples of each, the same ones every time",
    )
    parser.add_argument(
        "--limit", type=int, default=0, metavar="K", help="at most K samples of each op and dtype"
    )
    parser.add_argument("--backward", action="store_true", help="gradients as well")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a sample may take")
    parser.add_argument("--json", type=Path, help="write each outcome to this file, a line each")
    parser.add_argument(
        "--read",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="show what such files say; runs nothing",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="with --read: as docs/reference/operators.md"
    )
    parser.add_argument("--all", action="store_true", help="list ops that are fully native too")
    return parser.parse_args()


def tasks(options: argparse.Namespace) -> list[worker.Task]:
    """The work that the options ask for."""
    patterns = options.ops.split(",")
    dtypes = [getattr(torch, name) for name in options.dtypes.split(",")]
    found = []
    for op in op_db:
        task = worker.Task(op, (), options.backward, options.limit or (4 if options.sample else 0))
        if not any(fnmatch.fnmatchcase(task.name, p) for p in patterns):
            continue
        if matches(op.name, NO_VALUE):
            continue
        if options.backward:
            takes = op.supported_backward_dtypes("cpu") if op.supports_autograd else set()
        else:
            takes = op.supported_dtypes("cpu")
        task.dtypes = [d for d in dtypes if d in takes]
        found.append(task)
    if options.sample:
        pairs = [(i, d) for i, task in enumerate(found) for d in task.dtypes]
        pairs = random.Random(0).sample(pairs, min(options.sample, len(pairs)))
        for i, task in enumerate(found):
            task.dtypes = [d for d in task.dtypes if (i, d) in pairs]
    return [task for task in found if task.dtypes]


def warm_up() -> None:
    """Import in the parent what the workers would each import."""
    torch.set_num_threads(1)
    door.prepare()
    x = torch.ones(2, requires_grad=True)
    compiled = door.compile_call(lambda t: (t + 1,), [x])
    compiled.run(x)[0].sum().backward()


def collect(
    outcomes: Iterable[worker.Result], results: list[worker.Result], path: Path | None
) -> None:
    """Gather outcomes; tell of failures at once, and write each as a line of JSON."""
    with path.open("w") if path else contextlib.nullcontext() as file:
        for r in outcomes:
            results.append(r)
            status, reason = r.outcome.status, r.outcome.reason
            if status in FAILURES:
                print(
                    f"{r.op} {r.dtype}#{r.number} {status}: {reason}", file=sys.stderr, flush=True
                )
            if file:
                print(report.to_line(r), file=file, flush=True)


def main() -> int:
    """Run what was asked for; 0 if nothing failed."""
    options = parse()
    if len(NO_VALUE) + len(NOT_TRACEABLE) > 30:
        raise SystemExit("more than thirty exclusions")
    if options.read:
        read = report.read(options.read)
        print(report.markdown(read) if options.markdown else report.table(read, options.all))
        return 0
    work = tasks(options)
    warm_up()
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results: list[worker.Result] = []
    done = False
    try:
        collect(worker.run(work, options.jobs, options.timeout), results, options.json)
        done = True
    except KeyboardInterrupt:
        print("interrupted; what was done until then:")
    print(report.table(results, options.all))
    failed = sum(r.outcome.status in FAILURES for r in results)
    print(f"{len(results)} samples, {failed} failed, {time.monotonic() - begin:.0f} s")
    return 0 if done and results and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
