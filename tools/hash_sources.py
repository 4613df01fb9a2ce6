#!/usr/bin/env python3
"""Writes a header with a hash of sources, and for Ninja what it depends on.

Usage: hash_sources.py MACRO HEADER DEPFILE FILE or FOLDER ...
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

SUFFIXES = {".c", ".h", ".inc", ".build", ".py"}


def sources_in(place: Path) -> list[Path]:
    """Return the sources in a folder; a file is itself."""
    found = place.rglob("*") if place.is_dir() else [place]
    return sorted(path for path in found if path.suffix in SUFFIXES)


def main(macro: str, header: str, depfile: str, *places: str) -> None:
    """Write both files."""
    sources = [path for place in places for path in sources_in(Path(place))]
    together = hashlib.sha256()
    for path in sources:
        together.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    Path(header).write_text(f'#define {macro} "{together.hexdigest()[:32]}"\n')
    Path(depfile).write_text(f"{header}: {' '.join(map(str, sources))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
