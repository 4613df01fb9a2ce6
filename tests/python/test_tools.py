"""The tools of CI find what they are there to find."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name: str):
    """Import a script of tools/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


includes = load("check_includes")
kernels = load("check_kernels")
run_tests = load("run_tests")


def put(root: Path, path: str, text: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for header in [
        "base/status.h",
        "graph/graph.h",
        "aten/import.h",
        "passes/passes.h",
        "kernels/gemm/contract.h",
        "kernels/gemm/rows.h",
        "tune/tune.h",
        "plan/plan.h",
        "backend/backend.h",
    ]:
        put(tmp_path, f"src/{header}")
    put(tmp_path, "include/toroid/graph.h")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "include", "complaint"),
    [
        ("graph/a.c", "base/status.h", None),
        ("base/a.c", "graph/graph.h", "graph stands after base"),
        ("base/a.c", "toroid/graph.h", "api stands after base"),
        ("passes/a.c", "kernels/gemm/contract.h", None),
        ("passes/a.c", "kernels/gemm/rows.h", "by its contract.h only"),
        ("kernels/gemm/a.c", "graph/graph.h", "kernels knows nothing of graph"),
        ("kernels/gemm/a.c", "contract.h", None),
        ("tune/a.c", "passes/passes.h", "tune knows nothing of passes"),
        ("plan/a.c", "aten/import.h", "plan knows nothing of aten"),
        ("plan/a.c", "graph/graph.h", None),
        ("plan/a.c", "backend/backend.h", "backend stands after plan"),
        ("backend/a.c", "aten/import.h", None),
        ("plan/a.c", "Python.h", "knows Python"),
        ("plan/a.c", "../base/status.h", "write the path from src/"),
        ("plan/a.c", "base/nowhere.h", "is not in src/"),
        ("strange/a.c", "base/status.h", "has no place in the order"),
    ],
)
def test_include_order(tree: Path, file: str, include: str, complaint: str | None) -> None:
    put(tree, f"src/{file}", f'// text\n#include "{include}"\n')
    _, complaints = includes.check(tree)
    if complaint is None:
        assert complaints == []
    else:
        assert len(complaints) == 1
        assert complaint in complaints[0]


def test_include_order_in_a_table_and_with_brackets(tree: Path) -> None:
    put(tree, "src/base/rows.inc", '#  include "plan/plan.h"\n')
    put(tree, "src/base/python.c", "#include <Python.h>\n")
    _, complaints = includes.check(tree)
    assert [c.split(":")[0] for c in complaints] == ["src/base/python.c", "src/base/rows.inc"]


def test_public_headers_stand_alone(tree: Path) -> None:
    put(tree, "include/toroid/tune.h", '#include "base/status.h"\n')
    _, complaints = includes.check(tree)
    assert len(complaints) == 1


def test_include_order_without_sources(tmp_path: Path) -> None:
    assert includes.main([str(tmp_path)]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "tor_gemm_f32_f32p24__avx2_4x24",
        "tor_gemm_bf16_bf16p32_f32__avx512bf16_8x32",
        "tor_gemm_pack_f32_f32p16__generic",
        "tor_softmax_f32__avx2",
        "tor_copy_x32__avx512_transpose_16x16",
    ],
)
def test_kernel_names(name: str) -> None:
    assert kernels.parse(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "tor_gemm_f32_f32p24_avx2_4x24",  # one underscore
        "tor_gemm__avx2_6x16",  # no operand
        "tor_gemm_f32_f32p__avx2_6x16",  # a panel of nothing
        "tor_gemm_f32__sse9_6x16",
        "tor_gemm_f32__avx2_",
        "gemm_f32__avx2",
        "tor_Gemm_f32__avx2",
    ],
)
def test_kernel_names_that_are_none(name: str) -> None:
    assert kernels.parse(name) is None


def test_kernel_sources(tmp_path: Path) -> None:
    put(tmp_path, "src/kernels/gemm/kernels.inc", "ROW(tor_gemm_f32__avx2_6x16, 6)\n")
    put(tmp_path, "src/kernels/gemm/simd.c", "void TOR_KERNEL_IMPL(tor_gemm_f32, 6x16)(void) {}\n")
    assert kernels.check_sources(tmp_path) == (2, [])
    put(tmp_path, "src/kernels/gemm/kernels.inc", "ROW(tor_gemm_f31__avx2_6x16, 6)\n")
    put(tmp_path, "src/kernels/gemm/simd.c", "void TOR_KERNEL(tor_conv_f32)(void) {}\n")
    count, complaints = kernels.check_sources(tmp_path)
    assert count == 2
    assert len(complaints) == 2
    assert kernels.main([str(tmp_path)]) == 1


def test_kernels_of_a_level() -> None:
    assert kernels.complaint_about("tor_gemm_f32__avx2_6x16", "gemm", "avx2") is None
    assert kernels.complaint_about("tor_gemm_f32__avx512bf16", "gemm", "avx512") is None
    assert kernels.complaint_about("tor_gemm_f32__avx2_6x16", "gemm", "generic") is not None
    assert kernels.complaint_about("tor_conv_f32__avx2", "gemm", "avx2") is not None
    assert kernels.complaint_about("helper", "gemm", "avx2") is not None


def logs(folder: Path, tests: list[dict], suites: str) -> Path:
    put(folder, "testlog.json", "".join(json.dumps(test) + "\n" for test in tests))
    put(folder, "testlog.junit.xml", f"<testsuites>{suites}</testsuites>")
    return folder


def test_counts(tmp_path: Path) -> None:
    tap = {"name": "unit - toroid:a", "stdout": "1..2\nok 1 - x\nnot ok 2 - y\n"}
    tap |= {"result": "FAIL", "is_fail": True}
    plain = {"name": "check - toroid:gemm", "stdout": "fine", "result": "OK", "is_fail": False}
    late = {"name": "c", "stdout": "", "result": "TIMEOUT", "is_fail": True}
    suites = (
        '<testsuite name="toroid.unit - toroid:a"><testcase name="1 - x"/>'
        '<testcase name="2 - y"><failure/></testcase></testsuite>'
        '<testsuite name="toroid.check"><testcase name="gemm"/></testsuite>'
    )
    tally = run_tests.count_meson(logs(tmp_path, [tap, plain, late], suites))
    assert (tally.passed, tally.failed, tally.skipped) == (2, 2, 0)


def test_a_program_that_dies_between_tests_has_failed(tmp_path: Path) -> None:
    tap = {"name": "unit - toroid:a", "stdout": "1..2\nok 1 - x\n"}
    tap |= {"result": "ERROR", "is_fail": True}
    suites = '<testsuite name="toroid.unit - toroid:a"><testcase name="1 - x"/></testsuite>'
    tally = run_tests.count_meson(logs(tmp_path, [tap], suites))
    assert (tally.passed, tally.failed) == (1, 1)
