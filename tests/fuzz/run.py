#!/usr/bin/env python3
"""Random graphs through Toroid against eager; ends with 'N graphs, N failed'.

Usage: run.py [--count N] [--seed S] [--index I] [--first I] [--jobs J] [--minutes M] [--shrink N]
              [--each-pass] [--reference]

Graph I of seed S is the same on every machine with the same PyTorch; `--seed S --index I` runs it
alone, makes it small and prints it as a Python program. Workers are processes: one that dies or
hangs costs its graph only.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import torch._dynamo

from fuzz.examine import describe, examine

warnings.filterwarnings("ignore")

HANG = 120.0  # seconds that one graph may take, on a machine with much else to do


# ------------------------------------------------------------------ workers


class Worker:
    """A process that examines every `step`-th index and reports each on a pipe."""

    def __init__(self, seed: int, start: int, stop: int, step: int, **how: bool) -> None:
        self.seed, self.next, self.stop, self.step = seed, start, stop, step
        self.how = how  # arguments of examine()
        self.pid = self.fd = -1
        self.buffer = b""
        self.since = time.monotonic()
        self.output = tempfile.TemporaryFile()  # noqa: SIM115

    def start(self) -> None:
        """Fork, with all modules there already."""
        reader, writer = os.pipe()
        self.output.seek(0)
        self.output.truncate()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            os.dup2(self.output.fileno(), 2)
            try:
                for index in range(self.next, self.stop, self.step):
                    line = json.dumps(examine(self.seed, index, **self.how)) + "\n"
                    os.write(writer, line.encode())
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writer)
        self.fd, self.buffer, self.since = reader, b"", time.monotonic()

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """Reports that have come, and whether the process has ended."""
        data = os.read(self.fd, 1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        if lines:
            self.since = time.monotonic()
        reports = [json.loads(line) for line in lines]
        if reports:
            self.next = reports[-1]["index"] + self.step
        return reports, not data

    def end(self) -> str | None:
        """Collect the ended process; how it died, or None."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return None
        self.output.seek(0)
        tail = self.output.read().decode(errors="replace").strip().splitlines()[-1:]
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return f"died: {name} {' '.join(tail)}".strip()


def fuzz(workers: list[Worker], deadline: float) -> tuple[int, list, Any]:
    """Have workers examine their graphs; how many, the failures, and tallies."""
    failures: list[tuple[int, str]] = []
    sums = ("calls", "rounded", "undefined")
    tally: dict[str, Any] = {"whole": 0, "untraced": 0, "left": collections.Counter()}
    tally |= dict.fromkeys(sums, 0)
    done = 0
    for worker in workers:
        worker.start()
    alive = list(workers)
    while alive:
        ready, _, _ = select.select([w.fd for w in alive], [], [], 1.0)
        for worker in [w for w in alive if w.fd in ready]:
            reports, ended = worker.read()
            for report in reports:
                done += 1
                for name in sums:
                    tally[name] += report[name]
                tally["whole"] += report["traced"] and not report["left"]
                tally["untraced"] += not report["traced"]
                tally["left"].update({tuple(x) for x in report["left"]})
                if report["fault"]:
                    failures.append((report["index"], report["fault"]))
                    print(f"index {report['index']}: {report['fault'][:400]}", flush=True)
            if ended:
                alive.remove(worker)
                death = worker.end()
                if death is not None:
                    failures.append((worker.next, death))
                    print(f"index {worker.next}: {death}", flush=True)
                    done += 1
                    worker.next += worker.step
                if death is not None and worker.next < worker.stop:
                    worker.start()
                    alive.append(worker)
        for worker in alive:
            if time.monotonic() - worker.since > HANG:
                os.kill(worker.pid, signal.SIGKILL)
                worker.since = time.monotonic()
        if time.monotonic() > deadline:
            for worker in alive:
                os.kill(worker.pid, signal.SIGKILL)
                worker.end()
            break
    return done, failures, tally


def shrink_in_child(seed: int, index: int, fault: str, reference: bool) -> str:
    """`describe` in a process of its own, which may die."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        text = describe(seed, index, fault, reference)
        with os.fdopen(writer, "w") as stream:
            stream.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return text or "# Making it small died.\n"


def warm() -> None:
    """Make what takes long once, before the workers are forked."""
    from toroid import _decompositions, _torch

    torch.set_num_threads(1)
    _torch.attach()
    _decompositions.native()


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--index", type=int, help="this graph alone")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long")
    parser.add_argument("--shrink", type=int, default=5, help="failures to make small")
    parser.add_argument("--each-pass", action="store_true", help="also without each optional pass")
    parser.add_argument(
        "--reference",
        action="store_true",
        help="reference kernels against eager, and the default against those",
    )
    options = parser.parse_args()
    first, count, jobs = options.first, options.count, options.jobs
    if options.index is not None:
        first, count, jobs = options.index, 1, 1
    warm()
    start = time.monotonic()
    deadline = start + options.minutes * 60 if options.minutes else float("inf")
    jobs = min(jobs, max(count, 1))
    how = {"each_pass": options.each_pass, "reference": options.reference}
    workers = [Worker(options.seed, first + j, first + count, jobs, **how) for j in range(jobs)]
    done, failures, tally = fuzz(workers, deadline)
    seconds = time.monotonic() - start
    for index, fault in sorted(failures)[: options.shrink]:
        print("\n" + shrink_in_child(options.seed, index, fault, options.reference), flush=True)
    if tally["left"]:
        print("\nleft to PyTorch, by graphs:")
        for (target, reason), times in tally["left"].most_common(12):
            print(f"  {times:5d}  {target}: {reason.removeprefix(f'{target}: ')[:90]}")
    print(
        f"{tally['rounded']} elements beyond 4 ulp as far as eager's own roundings take them, "
        f"{tally['undefined']} that hang on those and have no value; "
        f"{tally['untraced']} graphs that FakeTensor refuses"
    )
    print(
        f"{tally['calls']} calls, {tally['whole']} graphs wholly native, "
        f"{seconds:.0f} s, {done / max(seconds, 1e-9):.1f} graphs/s"
    )
    print(f"{done} graphs, {len(failures)} failed", flush=True)
    return 1 if failures or done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
