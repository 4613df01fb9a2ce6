"""Installing the C library for tests of programs against it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

from toroid import _core

ROOT = Path(__file__).parents[2]
CC = os.environ.get("CC", "cc")


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=600, **options
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@dataclasses.dataclass
class Installed:
    """`prefix` has include/; programs are built and run in `environment`."""

    prefix: Path
    environment: dict[str, str]

    def flags(self, *what):
        return run("pkg-config", *what, "toroid", env=self.environment).split()

    @property
    def cflags(self):
        return self.flags("--cflags")


def install(folder):
    """Install what `make build` built below `folder`."""
    build = Path(_core.__file__).parents[2]
    assert (build / "meson-info").is_dir(), "the tests run on an editable installation"
    meson = Path(sys.executable).with_name("meson")
    tags = "--no-rebuild", "--tags", "devel,library"
    run(meson, "install", "-C", build, "--destdir", folder, *tags)
    (headers,) = folder.rglob("include/toroid")
    prefix = headers.parent.parent
    (config,) = prefix.rglob("toroid.pc")
    (library,) = {path.parent for path in prefix.rglob("libtoroid.so")}
    # The folder was moved after the file was written.
    lines = config.read_text().splitlines(keepends=True)
    config.write_text(
        "".join(f"prefix={prefix}\n" if x.startswith("prefix=") else x for x in lines)
    )
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": str(config.parent),
        "LD_LIBRARY_PATH": str(library),
    }
    return Installed(prefix, environment)
