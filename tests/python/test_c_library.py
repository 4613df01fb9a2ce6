"""`meson install`: headers, library and pkg-config file serve a program in C."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from c_library import CC, ROOT, install, run

HEADERS = ("status", "graph", "provider", "rewrite", "compile", "backend", "tune")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return install(tmp_path_factory.mktemp("install"))


@pytest.fixture(scope="module")
def prefix(installed):
    return installed.prefix


def test_what_is_installed(prefix):
    found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    headers = {f"include/toroid/{name}.h" for name in HEADERS}
    assert headers <= found
    rest = {Path(path).name for path in found - headers}
    assert {name for name in rest if not name.startswith("libtoroid.so")} == {"toroid.pc"}


def test_the_library_shows_its_interface_only(prefix):
    (library,) = {path.resolve() for path in prefix.rglob("libtoroid.so*")}
    table = run("nm", "-D", "--defined-only", library)
    names = {line.split()[-1] for line in table.splitlines()}
    assert {"toroid_compile", "toroid_run", "toroid_graph_call"} <= names
    assert {name for name in names if not name.startswith("toroid_")} == set()
    declared = "".join(path.read_text() for path in (prefix / "include" / "toroid").glob("*.h"))
    assert {name for name in names if f"{name}(" not in declared} == set()


def test_the_example(installed, tmp_path):
    flags = installed.flags("--cflags", "--libs")
    program = tmp_path / "mlp"
    run(CC, "-std=c99", "-Wall", "-Wextra", "-Werror", ROOT / "examples/c/mlp.c", *flags,
        "-o", program)  # fmt: skip
    lines = run(program, env=installed.environment).splitlines()
    for batch in (1, 10, 100):
        text = f"batch {batch:3}: [{batch}, 10], the first row adds up to 1.000"
        assert text in lines


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_alone(prefix, header, tmp_path):
    source = tmp_path / "alone.c"
    source.write_text(f'#include "toroid/{header}.h"\nint main(void) {{ return 0; }}\n')
    flags = "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{prefix / 'include'}"
    run(CC, "-std=c99", *flags, source)
    compiler = shutil.which("c++")
    if compiler:
        run(compiler, "-x", "c++", "-std=c++11", *flags, source)
