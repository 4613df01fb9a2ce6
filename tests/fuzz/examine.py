"""One random graph: compiled and compared, also without each pass; made small if it fails."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.compare import Tally, check
from fuzz.door import Compiled, NotTraced, compile_program
from fuzz.generate import generate
from fuzz.program import Call, Program
from fuzz.shrink import shrink
from fuzz.source import source

SKIP = "TOROID_SKIP_PASS"


def optional_passes() -> list[str]:
    """The passes without which answers are the same, and the stage before fusion."""
    header = Path(__file__).resolve().parents[2] / "src" / "passes" / "passes.h"
    return [*re.findall(r"X\((\w+), optional", header.read_text(encoding="utf-8")), "prologue"]


@contextmanager
def without(passes: str) -> Iterator[None]:
    """Compile without these; all else as the environment says where there are none."""
    before = os.environ.get(SKIP)
    try:
        if passes:
            os.environ[SKIP] = passes
        yield
    finally:
        os.environ.pop(SKIP, None)
        if before is not None:
            os.environ[SKIP] = before


def examine(
    seed: int, index: int, each_pass: bool = False, reference: bool = False
) -> dict[str, Any]:
    """Run one graph; what happened, as plain data.

    Parameters
    ----------
    seed, index : int
    each_pass : bool
        Compile it again without each optional pass, and without all of them.
    reference : bool
        Compare reference kernels with eager, and the default with those.
    """
    program = generate(seed, index)
    found: dict[str, Any] = {"index": index, "fault": None, "left": [], "traced": True}
    found["calls"] = sum(isinstance(v, Call) for v in program.values)
    tally = Tally()
    names = optional_passes() if each_pass else []
    for passes in ["", *names, ",".join(names)] if names else [""]:
        with without(passes):
            _run(program, found, tally if not passes else Tally(), reference)
        if found["fault"] is not None and passes:
            found["fault"] = f"without {passes}: {found['fault']}"
        if found["fault"] is not None or not found["traced"]:
            break
    return found | dataclasses.asdict(tally)


def _run(program: Program, found: dict[str, Any], tally: Tally, reference: bool) -> None:
    if not program.outputs:
        return
    try:
        compiled = compile_program(program)
        found["left"] = [(e.target, e.reason) for e in compiled.report.externals]
        if compiled.report.fallback is not None:
            found["left"].append(("the whole graph", compiled.report.fallback))
        found["fault"] = _compare(program, compiled, reference, tally)
    except NotTraced:
        found["traced"] = False
    except Exception as error:
        found["fault"] = f"raised {type(error).__name__}: {error}"


def _compare(
    program: Program, compiled: Compiled, reference: bool, tally: Tally | None = None
) -> str | None:
    """What differs from eager; or what in the reference does, or else from the reference."""
    if not reference:
        return check(program, compiled, tally)
    oracle = compile_program(program, reference=True)
    fault = check(program, oracle, tally)
    if fault is not None:
        return f"the reference: {fault}"
    return check(program, compiled, tally, oracle)


# ------------------------------------------------------------------ a failing one


def describe(seed: int, index: int, fault: str, reference: bool = False) -> str:
    """The failing graph made small, as a program."""
    passes = found.group(1) if (found := re.match(r"without ([\w,]+): ", fault)) else ""
    fault = fault.removeprefix(f"without {passes}: ")
    wanted = _kind(fault)
    with without(passes):
        program = generate(seed, index)
        if _fault_of(program, wanted, reference) is None:
            return "It does not fail again in this process.\n"
        small = shrink(
            program, lambda candidate: _fault_of(candidate, wanted, reference) is not None
        )
        fault = _fault_of(small, wanted, reference) or fault
    text = source(small, seed, index, fault)
    return f"# With {SKIP}={passes}:\n{text}" if passes else text


def _fault_of(program: Program, wanted: str, reference: bool) -> str | None:
    """How a program fails, if it does so in the way that is wanted."""
    try:
        if wanted == "died":
            fault = _death(program, reference)
        else:
            fault = _compare(program, compile_program(program), reference)
    except Exception as error:
        fault = f"raised {type(error).__name__}: {error}"
    return fault if fault is not None and _kind(fault) == wanted else None


def _death(program: Program, reference: bool) -> str | None:
    """How a process that runs a program dies, or None."""
    pid = os.fork()
    if pid == 0:
        try:
            _compare(program, compile_program(program), reference)
        except Exception:
            os._exit(0)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return f"died: signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else None


def _kind(fault: str) -> str:
    """What sort of difference: the shrinker keeps to it."""
    if fault.startswith(("raised", "died")):
        return fault.split(":")[0]
    for word in ("elements differ", "strides", "dtype", "shape", "view", "lies in"):
        if word in fault:
            return word
    return fault
