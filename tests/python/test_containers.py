"""A container's limits: quota, one core, a read-only root, a user without a name.

Docker's daemon is not needed: a mount namespace gives what examples/container/compose.yaml asks
for. The processes see a made-up tree of control groups, which says how much CPU they have.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from toroid import _core

UID = 10001

SCRIPT = """
import errno, json, os, sys, torch, toroid

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 8))
x = torch.randn(64, 512)
compiled = torch.compile(model, backend="toroid", options={"strict": True})
equal, threads = [], []
with torch.no_grad():
    for n in (1, 2, 8):
        torch.set_num_threads(n)
        equal.append(torch.allclose(compiled(x), model(x), atol=1e-5))
        threads.append(toroid.info().threads)
try:
    open(sys.argv[1], "w")
    refused = ""
except OSError as error:
    refused = errno.errorcode[error.errno]
print(json.dumps({
    "cpus": toroid.info().cpus, "equal": equal, "threads": threads, "uid": os.getuid(),
    "refused": refused, "mapped": toroid.stats()["mapped_bytes"],
}))
"""


def unshare():
    """Start of a command that may change mounts; as another than root, in a user namespace."""
    return ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]


@pytest.fixture(scope="module")
def namespaces():
    lines = "mount --bind /tmp /sys/fs/cgroup && mount -o remount,bind,ro / && "
    lines += f"exec unshare --user --map-user={UID} true"
    try:
        done = subprocess.run([*unshare(), "sh", "-c", lines], capture_output=True, text=True)
    except FileNotFoundError as error:
        pytest.skip(f"no program for namespaces: {error}")
    if done.returncode != 0:
        pytest.skip(f"this system refuses mount and user namespaces: {done.stderr.strip()}")


def contained(folder, groups, *prefix):
    """Run SCRIPT as compose.yaml would; returns what it printed.

    `folder` has the volume; `groups` are the files of the made-up tree.
    """
    cgroup, volume, scratch = (folder / name for name in ("cgroup", "volume", "tmp"))
    for path in (cgroup, volume, scratch):
        path.mkdir(exist_ok=True)
    for name, text in groups.items():
        file = cgroup / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    python = [*prefix, sys.executable, "-c", SCRIPT, folder / "outside"]
    build = Path(_core.__file__).parents[2]  # where an editable installation looks for changes
    lines = f"""
        set -e
        mount --bind {volume} {volume}
        mount --bind {build} {build}
        mount -t tmpfs tmpfs {scratch}
        mount --bind {cgroup} /sys/fs/cgroup
        mount -o remount,bind,ro /
        exec unshare --user --map-user={UID} {shlex.join(map(str, python))}
    """
    environment = {
        **os.environ,
        "HOME": "/nonexistent",
        "TMPDIR": str(scratch),
        "TOROID_CACHE_DIR": str(volume),
    }
    done = subprocess.run(
        [*unshare(), "sh", "-c", lines], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_limits_of_a_container(namespaces, tmp_path):
    """The first start packs weights for the volume, the second maps them, with other limits."""
    whole = len(os.sched_getaffinity(0))
    first = contained(tmp_path, {"cpu.max": "150000 100000\n"})
    cpus = min(2, whole)  # 1.5, rounded up
    assert first["cpus"] == cpus and first["threads"] == [1, cpus, cpus]
    assert first["uid"] == UID and first["refused"] == "EROFS"
    assert first["equal"] == [True] * 3
    packed = list((tmp_path / "volume").rglob("*"))
    inodes = {path: path.stat().st_ino for path in packed}
    assert sum(path.stat().st_size for path in packed) > 512 * 512 * 4

    v1 = {"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"}
    files = {f"{name}/{file}": text for name in groups_of_cpu() for file, text in v1.items()}
    second = contained(tmp_path, files | {"cpu.max": "50000 100000\n"})
    assert second["cpus"] == 1 and second["threads"] == [1, 1, 1]
    assert second["equal"] == [True] * 3
    assert second["mapped"] > 512 * 512 * 4
    assert {path: path.stat().st_ino for path in packed} == inodes


def groups_of_cpu():
    """Folders of the mounts that may hold this process's quota in version 1."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    lists = [line.split(":")[1] for line in lines]
    return [names for names in lists if "cpu" in names.split(",")]


def test_one_core_computes_with_one_thread():
    core = str(min(os.sched_getaffinity(0)))
    command = ["taskset", "-c", core, sys.executable, "-c", SCRIPT, os.devnull]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["cpus"] == 1 and found["threads"] == [1, 1, 1]
    assert found["equal"] == [True] * 3 and found["refused"] == ""
