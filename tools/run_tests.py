#!/usr/bin/env python3
"""Runs the C suites, the Python tests, samples of PyTorch's OpInfos and random graphs.

Ends with 'N passed, N failed'.

Usage: run_tests.py [--build BUILD] [--suite NAME ...] [--no-python] [-- arguments for pytest]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Pairs of op and dtype: a minute or two on two cores.
OPINFO_PAIRS = "300"
FUZZ_GRAPHS = 250  # about 30 s on two cores


@dataclass
class Tally:
    """Numbers of tests that ran, by outcome."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )


def count_junit(suites: list[ET.Element]) -> Tally:
    """Count the test cases of JUnit suites; an error is a failure."""
    tally = Tally()
    for case in (case for suite in suites for case in suite.iter("testcase")):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            tally.failed += 1
        elif "skipped" in outcomes:
            tally.skipped += 1
        else:
            tally.passed += 1
    return tally


def count_meson(logs: Path) -> Tally:
    """Count the tests of a meson-logs folder: TAP programs by their lines, others as one each.

    A program that dies between two lines has failed although each line says "ok".
    """
    suites: dict[str, list[ET.Element]] = {}
    for suite in ET.parse(logs / "testlog.junit.xml").getroot().iter("testsuite"):
        suites.setdefault(suite.get("name", ""), []).append(suite)
    tally = Tally()
    for line in (logs / "testlog.json").read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        lines = [e for e in test["stdout"].splitlines() if e.startswith(("ok ", "not ok "))]
        if not lines:
            ok, skipped = test["result"] in {"OK", "EXPECTEDFAIL"}, test["result"] == "SKIP"
            tally += Tally(passed=int(ok), skipped=int(skipped), failed=int(not ok and not skipped))
            continue
        # meson names a TAP program's suite "toroid.<name of the test>".
        found = [s for name, s in suites.items() if name.endswith("." + test["name"])]
        here = count_junit([suite for group in found for suite in group])
        if test["is_fail"] and here.failed == 0:
            here.failed += 1
        tally += here
    return tally


def run_meson(build: Path, wanted: list[str]) -> Tally:
    """Build and run the C suites."""
    logs = build / "meson-logs"
    for name in ("testlog.json", "testlog.junit.xml"):
        (logs / name).unlink(missing_ok=True)
    command = ["meson", "test", "-C", str(build), "--print-errorlogs"]
    for suite in wanted:
        command += ["--suite", suite]
    code = subprocess.run(command, check=False).returncode
    try:
        tally = count_meson(logs)
    except (OSError, ET.ParseError):
        tally = Tally()
    if code != 0 and tally.failed == 0:
        print(f"meson test ended with {code}")
        tally.failed += 1
    return tally


def run_pytest(build: Path, arguments: list[str]) -> Tally:
    """Run the tests of tests/python."""
    report = build / "meson-logs" / "pytest.junit.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
    # A worker a core; what is asked for by name runs in one process.
    everything = ["-n", str(os.cpu_count() or 1), "tests/python"]
    code = subprocess.run(command + (arguments or everything), cwd=ROOT, check=False).returncode
    try:
        tally = count_junit([ET.parse(report).getroot()])
    except (OSError, ET.ParseError):
        tally = Tally()
    if code != 0 and tally.failed == 0:
        print(f"pytest ended with {code}")
        tally.failed += 1
    return tally


def run_opinfo(build: Path) -> Tally:
    """Run the fixed sample of PyTorch's operator samples (tests/opinfo)."""
    report = build / "meson-logs" / "opinfo.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "tests/opinfo", "--sample", OPINFO_PAIRS, "--json", str(report)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    try:
        lines = report.read_text(encoding="utf-8").splitlines()
        outcomes = [json.loads(line)[3] for line in lines]
    except (OSError, ValueError):
        outcomes = []
    failed = sum(outcome in {"wrong", "error", "crashed"} for outcome in outcomes)
    tally = Tally(passed=len(outcomes) - failed, failed=failed)
    if code != 0 and failed == 0:
        print(f"tests/opinfo ended with {code}")
        tally.failed += 1
    return tally


def run_fuzz(graphs: int) -> Tally:
    """Run a fixed set of random graphs, each a test."""
    command = [sys.executable, "tests/fuzz/run.py", "--count", str(graphs), "--shrink", "2"]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    counts = re.search(r"^(\d+) graphs, (\d+) failed$", done.stdout, re.MULTILINE)
    if not counts:
        print(f"the fuzzer ended with {done.returncode}")
        return Tally(failed=1)
    ran, failed = map(int, counts.groups())
    return Tally(passed=ran - failed, failed=failed)


def main(arguments: list[str]) -> int:
    """Run what was asked for; 0 if something ran and nothing failed."""
    pytest_arguments: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, pytest_arguments = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-python", action="store_true")
    options = parser.parse_args(arguments)
    build = options.build.resolve()
    tally = run_meson(build, options.suite)
    if not options.no_python:
        tally += run_pytest(build, pytest_arguments)
        if not pytest_arguments and not options.suite:
            tally += run_opinfo(build)
            tally += run_fuzz(FUZZ_GRAPHS)
    if tally.skipped > 0:
        print(f"{tally.skipped} skipped")
    print(f"{tally.passed} passed, {tally.failed} failed", flush=True)
    return 0 if tally.failed == 0 and tally.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
