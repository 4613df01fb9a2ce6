"""`meson install`: headers, library and pkg-config file serve a program in C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toroid import _core

ROOT = Path(__file__).parents[2]
CC = os.environ.get("CC", "cc")


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=600, **options
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Install what `make build` built."""
    build = Path(_core.__file__).parents[2]
    assert (build / "meson-info").is_dir(), "the tests run on an editable installation"
    folder = tmp_path_factory.mktemp("install")
    meson = Path(sys.executable).with_name("meson")
    tags = "--no-rebuild", "--tags", "devel,library"
    run(meson, "install", "-C", build, "--destdir", folder, *tags)
    (headers,) = folder.rglob("include/toroid")
    return headers.parent.parent


def test_what_is_installed(prefix):
    found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    headers = {f"include/toroid/{name}.h" for name in ("status", "graph", "compile", "backend")}
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


def test_the_example(prefix, tmp_path):
    (config,) = prefix.rglob("toroid.pc")
    (library,) = {path.parent for path in prefix.rglob("libtoroid.so")}
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": str(config.parent),
        "LD_LIBRARY_PATH": str(library),
    }
    # The folder was moved after the file was written.
    define = f"--define-variable=prefix={prefix}"
    flags = run("pkg-config", define, "--cflags", "--libs", "toroid", env=environment).split()
    program = tmp_path / "mlp"
    run(CC, "-std=c99", "-Wall", "-Wextra", "-Werror", ROOT / "examples/c/mlp.c", *flags,
        "-o", program)  # fmt: skip
    lines = run(program, env=environment).splitlines()
    for batch in (1, 10, 100):
        text = f"batch {batch:3}: [{batch}, 10], the first row adds up to 1.000"
        assert text in lines


@pytest.mark.parametrize("header", ["status", "graph", "compile", "backend"])
def test_each_header_compiles_alone(prefix, header, tmp_path):
    source = tmp_path / "alone.c"
    source.write_text(f'#include "toroid/{header}.h"\nint main(void) {{ return 0; }}\n')
    flags = "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{prefix / 'include'}"
    run(CC, "-std=c99", *flags, source)
    compiler = shutil.which("c++")
    if compiler:
        run(compiler, "-x", "c++", "-std=c++11", *flags, source)
