"""Writing what users asked to have in a file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole or not at all; a pipe or device as it stands.

    Raises
    ------
    OSError
        If it cannot be written; it names `path` as it was given.
    """
    target = Path(path).resolve()  # a link stays one
    part = target.with_name(target.name + ".part")
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
