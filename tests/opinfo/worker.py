"""Worker processes: one for each op, forked from a parent that has imported everything."""

from __future__ import annotations

import dataclasses
import faulthandler
import multiprocessing
import os
import random
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import sample as samples
import torch


@dataclasses.dataclass
class Task:
    """An op with the dtypes to try."""

    op: Any
    dtypes: Sequence[torch.dtype]
    backward: bool = False
    limit: int = 0  # at most so many samples of each dtype, drawn by a fixed seed; 0 means all

    @property
    def name(self) -> str:
        """The op's name with its variant."""
        variant = self.op.variant_test_name
        return f"{self.op.name}.{variant}" if variant else self.op.name


@dataclasses.dataclass
class Result:
    """Outcome of one sample."""

    op: str
    dtype: str
    number: int
    outcome: samples.Outcome


def _draw(task: Task, dtype: torch.dtype) -> list[tuple[int, Any]]:
    made = task.op.sample_inputs("cpu", dtype, requires_grad=task.backward)
    numbered = list(enumerate(made))
    if 0 < task.limit < len(numbered):
        pick = random.Random(f"{task.name} {dtype}").sample(range(len(numbered)), task.limit)
        return [numbered[i] for i in sorted(pick)]
    return numbered


def _work(task: Task, after: tuple[int, int], pipe: Connection, log: str) -> None:
    """Run a task's samples that come after a place, which is (number of dtype, number)."""
    faulthandler.disable()  # a crash is reported by the parent
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    errors = os.open(log, os.O_WRONLY | os.O_TRUNC)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for d, dtype in enumerate(task.dtypes):
        if d < after[0]:
            continue
        try:
            drawn = _draw(task, dtype)
        except Exception as error:
            pipe.send(("skip", d, 0, samples.brief(error)))
            continue
        for number, sample in drawn:
            if (d, number) <= after:
                continue
            pipe.send(("start", d, number, None))
            try:
                outcome = samples.judge(task.op, sample, task.backward)
            except Exception:
                last = traceback.format_exc().splitlines()
                outcome = samples.Outcome("error", f"in the harness: {last[-1]} ({last[-3]})")
            pipe.send(("done", d, number, outcome))
    pipe.send(("end", 0, 0, None))


@dataclasses.dataclass
class _Running:
    task: Task
    process: Any
    log: str
    deadline: float
    at: tuple[int, int] = (0, -1)
    busy: bool = False


def run(tasks: Sequence[Task], jobs: int, timeout: float) -> Iterator[Result]:
    """Run tasks in `jobs` processes at a time; a process that dies costs the sample it was at."""
    context = multiprocessing.get_context("fork")
    waiting = [(task, (0, -1)) for task in reversed(tasks)]
    running: dict[Connection, _Running] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            task, after = waiting.pop()
            mine, its = context.Pipe(duplex=False)
            handle, log = tempfile.mkstemp(prefix="opinfo-")
            os.close(handle)
            process = context.Process(target=_work, args=(task, after, its, log), daemon=True)
            process.start()
            its.close()
            running[mine] = _Running(task, process, log, time.monotonic() + timeout, after)
        for pipe in wait(list(running), timeout=1.0):
            state = running[pipe]
            try:
                kind, d, number, value = pipe.recv()
            except EOFError:
                del running[pipe]
                state.process.join()
                yield from _died(state, waiting)
                continue
            state.at, state.busy = (d, number), kind == "start"
            state.deadline = time.monotonic() + timeout
            if kind == "end":
                state.process.join()
                del running[pipe]
                os.unlink(state.log)
            elif kind == "done" and value is not None:
                yield Result(state.task.name, _short(state.task.dtypes[d]), number, value)
        for state in running.values():
            if time.monotonic() > state.deadline:
                state.process.kill()


def _died(state: _Running, waiting: list[Any]) -> Iterator[Result]:
    code = state.process.exitcode
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    with open(state.log, encoding="utf-8", errors="replace") as file:
        said = " ".join(file.read().split())[-200:]
    os.unlink(state.log)
    d, number = state.at
    outcome = samples.Outcome("crashed", f"{how}: {said}" if said else how)
    yield Result(state.task.name, _short(state.task.dtypes[d]), number, outcome)
    if state.busy:
        waiting.append((state.task, state.at))


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
