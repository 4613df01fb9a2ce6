#!/usr/bin/env python3
"""Checks that every folder of src/ includes only what stands before it in the way of a graph.

Usage: check_includes.py [root of the repository]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ORDER = ["base", "graph", "aten", "passes", "kernels", "tune", "plan", "backend", "api", "pt2"]

# What a folder knows nothing of although it stands before it.
FORBIDDEN = {
    "kernels": {"graph", "aten", "passes"},
    "tune": {"graph", "aten", "passes"},
    "plan": {"aten"},
}

# The folder that implements a public header; includes of it count as includes of that folder.
PUBLIC = {
    "status.h": "base",
    "graph.h": "api",
    "rewrite.h": "api",
    "compile.h": "api",
    "tune.h": "api",
    "backend.h": "backend",
    "provider.h": "tune",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def allowed(folder: str, target: str, path: str) -> str | None:
    """Return why `folder` may not include `path`, which lies in folder `target`, or None."""
    if target in FORBIDDEN.get(folder, set()):
        return f"{folder} knows nothing of {target}"
    if folder == "passes" and target == "kernels":
        if path.endswith("/contract.h"):
            return None
        return "passes know a kernel family by its contract.h only"
    if ORDER.index(target) > ORDER.index(folder):
        return f"{target} stands after {folder}"
    return None


def folder_of(include: str, file: Path, root: Path) -> str | None:
    """Return the folder of src/ that an include leads to; None for a system header.

    Raises
    ------
    LookupError
        If the file is nowhere to be found.
    """
    beside = (file.parent / include).resolve()
    if beside.is_file():
        relative = beside.relative_to((root / "src").resolve())
        return relative.parts[0]
    parts = Path(include).parts
    if parts[0] == "toroid":
        return PUBLIC.get(parts[-1], "base")
    if (root / "src" / include).is_file():
        return parts[0]
    raise LookupError(include)


def check_text(text: str, file: Path, root: Path) -> list[str]:
    """Return the complaints about one file of src/."""
    folder = file.relative_to(root / "src").parts[0]
    complaints = []
    for match in INCLUDE.finditer(text):
        quote, include = match.groups()
        where = f"{file.relative_to(root)}:{text.count(chr(10), 0, match.start(2)) + 1}"
        if Path(include).name == "Python.h":
            complaints.append(f"{where}: nothing in src/ knows Python")
            continue
        if quote == "<":
            continue
        if ".." in Path(include).parts:
            complaints.append(f"{where}: write the path from src/, not {include}")
            continue
        try:
            target = folder_of(include, file, root)
        except LookupError:
            complaints.append(f"{where}: {include} is not in src/ or include/")
            continue
        if target is not None and target in ORDER:
            reason = allowed(folder, target, include)
            if reason is not None:
                complaints.append(f"{where}: {include}: {reason}")
    return complaints


def check(root: Path) -> tuple[int, list[str]]:
    """Return the number of files read and the complaints about them."""
    complaints = []
    files = sorted(p for p in (root / "src").rglob("*") if p.suffix in {".c", ".h", ".inc"})
    for file in files:
        folder = file.relative_to(root / "src").parts[0]
        if folder not in ORDER:
            complaints.append(
                f"{file.relative_to(root)}: folder {folder} has no place in the order"
            )
            continue
        complaints += check_text(file.read_text(encoding="utf-8"), file, root)
    for header in sorted((root / "include").rglob("*.h")):
        for quote, include in INCLUDE.findall(header.read_text(encoding="utf-8")):
            if quote == '"' and not include.startswith("toroid/"):
                complaints.append(f"{header.relative_to(root)}: a public header includes {include}")
    return len(files), complaints


def main(arguments: list[str]) -> int:
    """Print the complaints; 0 if there is none."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    count, complaints = check(root.resolve())
    for complaint in complaints:
        print(complaint)
    if count == 0:
        print(f"{root}: no source file found")
        return 1
    print(f"include order: {count} files, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
