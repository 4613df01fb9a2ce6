#!/usr/bin/env python3
"""Checks every kernel's name against the grammar of docs/reference/kernel-names.md.

Names come from the tables (kernels.inc), from TOR_KERNEL() in the sources, and, with --build, from
the libraries themselves: there each function of a level's library is a kernel of that level.

Usage: check_kernels.py [--build BUILD] [root of the repository]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Folder of src/kernels to the families whose names it may use.
FAMILIES = {
    "gemm": ["gemm"],
    "attention": ["attention"],
    "conv": ["conv"],
    "pointwise": ["pointwise", "reduce", "softmax", "norm"],
    "gather": ["gather"],
    "copy": ["copy"],
    "pool": ["pool"],
    "scan": ["scan"],
    "sort": ["sort"],
    "resize": ["resize"],
    "grid": ["grid"],
    "bag": ["bag"],
    "rnn": ["rnn"],
}

TYPE = r"(?:f64|f32|f16|bf16|i64|i32|i16|i8|u8|b8|x8|x16|x32|x64|any)"
OPERAND = rf"{TYPE}(?:p\d+)?"
WORD = r"[a-z][a-z0-9]*"
# Levels that meson.build compiles, and features that hand-written files need besides.
LEVELS = ["generic", "avx2", "avx512", "sve128", "sve256", "sve512"]
FEATURES = ["avxvnni", "avx512vnni", "avx512bf16", "avx512fp16", "amxbf16", "amxint8"]
FEATURES += ["neon", "dotprod", "i8mm", "bf16", "sve"]
ISA = "(?:" + "|".join(sorted(LEVELS + FEATURES, key=len, reverse=True)) + ")"

PREFIX = re.compile(rf"tor_(?P<family>{WORD})(?:_{WORD})*?(?:_{OPERAND})+")
SYMBOL = re.compile(PREFIX.pattern + rf"__(?P<isa>{ISA})(?:_(?P<impl>[a-z0-9]+(?:_[a-z0-9]+)*))?")

WRITTEN = re.compile(r"\btor_\w+?__\w+")
MACRO = re.compile(r"\bTOR_KERNEL(?:_IMPL)?\(\s*(tor_\w+)\s*[,)]")


def parse(symbol: str) -> dict[str, str | None] | None:
    """Return family, isa and impl of a kernel's name; None if it is not one."""
    match = SYMBOL.fullmatch(symbol)
    return match.groupdict() if match else None


def complaint_about(symbol: str, folder: str, level: str | None = None) -> str | None:
    """Return what is wrong with a kernel's name in a folder (and a level's library), or None."""
    parts = parse(symbol)
    if parts is None:
        return f"{symbol} does not follow docs/reference/kernel-names.md"
    if parts["family"] not in FAMILIES.get(folder, [folder]):
        return f"{symbol}: {folder} has no family {parts['family']}"
    if level is not None and parts["isa"] in LEVELS and parts["isa"] != level:
        return f"{symbol} is compiled for {level}"
    return None


def check_sources(root: Path) -> tuple[int, list[str]]:
    """Return the number of names written in src/kernels and the complaints about them."""
    count, complaints = 0, []
    for file in sorted((root / "src" / "kernels").rglob("*")):
        if file.suffix not in {".c", ".h", ".inc"}:
            continue
        folder = file.parent.name
        text = file.read_text(encoding="utf-8")
        text = re.sub(r"//.*|/\*.*?\*/", "", text)
        names = set(WRITTEN.findall(text)) if file.suffix == ".inc" else set()
        for name in sorted(names):
            count += 1
            complaint = complaint_about(name, folder)
            if complaint is not None:
                complaints.append(f"{file.relative_to(root)}: {complaint}")
        for prefix in sorted(set(MACRO.findall(text))):
            count += 1
            match = PREFIX.fullmatch(prefix)
            if match is None or match["family"] not in FAMILIES.get(folder, [folder]):
                complaints.append(
                    f"{file.relative_to(root)}: {prefix} does not follow"
                    " docs/reference/kernel-names.md"
                )
    return count, complaints


def functions_of(library: Path) -> list[str]:
    """Return the functions that a static library defines for others."""
    listing = subprocess.run(
        ["nm", "--defined-only", "--extern-only", library],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    fields = [line.split() for line in listing.splitlines()]
    return [f[2] for f in fields if len(f) == 3 and f[1] in "TW"]


def check_build(build: Path) -> tuple[int, list[str]]:
    """Return the number of kernels in the levels' libraries and the complaints about them."""
    count, complaints = 0, []
    for library in sorted((build / "src" / "kernels").glob("libtor_*_*.a")):
        folder, level = library.stem.removeprefix("libtor_").rsplit("_", 1)
        # Sanitizers add functions of their own, which start with an underscore.
        for symbol in functions_of(library):
            if symbol.startswith("_"):
                continue
            count += 1
            complaint = complaint_about(symbol, folder, level)
            if complaint is not None:
                complaints.append(f"{library.name}: {complaint}")
    return count, complaints


def main(arguments: list[str]) -> int:
    """Print the complaints; 0 if there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path)
    parser.add_argument(
        "root", type=Path, nargs="?", default=Path(__file__).resolve().parent.parent
    )
    options = parser.parse_args(arguments)
    count, complaints = check_sources(options.root.resolve())
    if options.build is not None:
        built, more = check_build(options.build)
        count += built
        complaints += more
    for complaint in complaints:
        print(complaint)
    if count == 0:
        print("no kernel found")
        return 1
    print(f"kernel names: {count}, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
