"""TOROID_CACHE_DIR: packed weights kept on disk and mapped by the next process."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys

import pytest
import torch
import toroid
from torch import nn

SIDE = 512  # a weight of 1 MiB


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TOROID_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def layer(seed=0, side=SIDE):
    torch.manual_seed(seed)
    return nn.Linear(side, side)


def check(model, width=SIDE):
    """Compile anew and compare with eager; returns how many bytes were mapped meanwhile."""
    torch._dynamo.reset()
    gc.collect()
    x = torch.randn(3, width)
    with torch.no_grad():
        before = toroid.stats()["mapped_bytes"]
        answer = torch.compile(model, backend="toroid", options={"strict": True})(x)
        mapped = toroid.stats()["mapped_bytes"] - before
        torch.testing.assert_close(answer, model(x))
    return mapped


def files(folder):
    """All but compiled graphs, which test_saved.py is about."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".graph")


def test_written_once_then_mapped(folder):
    first = layer()
    mapped = check(first)
    assert mapped >= SIDE * SIDE * 4
    (name,) = files(folder)
    before = (folder / name).stat()
    # Other tensors with the same content.
    assert check(layer()) == mapped
    assert files(folder) == [name]
    assert (folder / name).stat().st_ino == before.st_ino


def test_off_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("TOROID_CACHE_DIR", raising=False)
    assert check(layer()) == 0


def test_other_content_is_another_file(folder):
    models = [layer(0), layer(1)]
    for model in models:
        check(model)
    assert len(files(folder)) == 2
    with torch.no_grad():
        models[0].weight[5, 7] += 1  # one element
    check(models[0])
    assert len(files(folder)) == 3


def test_same_bytes_in_another_shape(folder):
    torch.manual_seed(0)
    data = torch.randn(256 * 1024) / 32
    shapes = [(256, 1024), (512, 512), (1024, 256)]
    for shape in shapes:
        model = nn.Linear(shape[1], shape[0], bias=False)
        model.weight = nn.Parameter(data.view(shape))
        check(model, shape[1])
    model = nn.Linear(SIDE, SIDE, bias=False)
    model.weight = nn.Parameter(data.view(SIDE, SIDE).t())  # strides tell it apart
    check(model)
    assert len(files(folder)) == 4


def test_small_results_are_not_stored(folder):
    assert check(layer(side=64), 64) == 0
    assert not files(folder)


@pytest.mark.parametrize("harm", ["content", "header", "short", "long", "empty"])
def test_a_damaged_file_is_made_again(folder, harm, capfd):
    check(layer())
    (path,) = folder.glob("*.weights")
    good = path.read_bytes()
    bad = bytearray(good)
    if harm == "content":
        bad[-1000] ^= 1
    elif harm == "header":
        bad[20] ^= 1
    elif harm == "short":
        bad = bad[: len(bad) // 2]
    elif harm == "long":
        bad += b"x"
    else:
        bad = b""
    path.chmod(0o600)
    path.unlink()
    path.write_bytes(bad)
    assert check(layer()) > 0
    assert "damaged" in capfd.readouterr().err
    assert path.read_bytes() == good


def test_a_folder_that_cannot_be(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOROID_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert check(layer()) == 0


def test_a_symbolic_link_is_not_followed(folder, tmp_path):
    check(layer())
    (path,) = folder.glob("*.weights")
    target = tmp_path / "target"
    path.rename(target)
    path.symlink_to(target)
    check(layer())
    assert not path.is_symlink() and target.exists()


def test_a_pipe_in_place_of_a_file(folder):
    """Opening it waited for a writer."""
    check(layer())
    (name,) = files(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert check(layer()) > 0
    assert (folder / name).is_file()


def test_least_recently_used_goes_first(folder, monkeypatch):
    models = [layer(seed) for seed in range(3)]
    names = []
    for model in models:
        check(model)
        names += [name for name in files(folder) if name not in names]
    check(layer(0))  # used now
    monkeypatch.setenv("TOROID_CACHE_SIZE", "3.5M")
    check(layer(3))
    left = files(folder)
    assert len(left) == 3
    assert names[1] not in left and names[0] in left and names[2] in left


def test_files_of_others_stay(folder, monkeypatch):
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    monkeypatch.setenv("TOROID_CACHE_SIZE", "0")
    assert check(layer()) > 0  # the mapping outlives its file
    assert files(folder) == ["notes.txt"]


def test_a_wrong_limit(folder, monkeypatch, capfd):
    monkeypatch.setenv("TOROID_CACHE_SIZE", "lots")
    assert check(layer()) > 0
    assert "TOROID_CACHE_SIZE" in capfd.readouterr().err
    assert len(files(folder)) == 1


@pytest.mark.parametrize("limit", ["0 ", "0 G", "0B", "-1", "nan"])
def test_a_wrong_limit_is_no_limit_of_nothing(folder, monkeypatch, limit):
    """A space behind the number was a unit of a tebibyte."""
    monkeypatch.setenv("TOROID_CACHE_SIZE", limit)
    assert check(layer()) > 0
    assert len(files(folder)) == 1


PROGRAM = """
import sys, torch, toroid
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)])
x = torch.randn(3, 512)
with torch.no_grad():
    answer = torch.compile(model, backend="toroid")(x)
    torch.testing.assert_close(answer, model(x))
print(toroid.stats()["mapped_bytes"])
"""


def start(folder, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TOROID_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_two_writers(folder):
    both = [start(folder) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-2000:]
        assert int(out) >= 4 * SIDE * SIDE * 4
    assert len(files(folder)) == 4
    assert not [name for name in files(folder) if name.endswith(".part")]


SHARED = """
import sys, torch, toroid
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)])
x = torch.randn(3, 1024)
with torch.no_grad():
    torch.compile(model, backend="toroid")(x)
print(toroid.stats()["mapped_bytes"], flush=True)
sys.stdin.read()  # until the other has looked too
"""


def mapped_files(pid, folder):
    """Kilobytes of the folder's files in a process: resident, its own share, written."""
    rss = pss = written = 0
    inside = False
    with open(f"/proc/{pid}/smaps") as maps:
        for line in maps:
            name, *rest = line.split()
            if not name.endswith(":"):
                inside = str(folder) in line
            elif inside and name == "Rss:":
                rss += int(rest[0])
            elif inside and name == "Pss:":
                pss += int(rest[0])
            elif inside and name in ("Private_Dirty:", "Shared_Dirty:", "Anonymous:"):
                written += int(rest[0])
    return rss, pss, written


def test_two_processes_have_one_copy(folder):
    command = [sys.executable, "-c", SHARED]
    environment = {**os.environ, "TOROID_CACHE_DIR": str(folder)}
    pipe = subprocess.PIPE
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, check=True)
    os.sync()  # pages that are still to be written count as dirty
    both = [
        subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        for _ in range(2)
    ]
    try:
        mapped = [int(process.stdout.readline()) for process in both]
        assert mapped[0] == mapped[1] >= 8 * 1024 * 1024 * 4
        for process in both:
            rss, pss, written = mapped_files(process.pid, folder)
            assert rss * 1024 >= mapped[0]
            assert pss < 0.6 * rss  # half of what is resident, so there is one copy
            assert written == 0
    finally:
        for process in both:
            process.communicate(timeout=300)


def test_a_full_disk(folder):
    """A file cannot grow beyond half a weight: told once, right answers, nothing left behind."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (SIDE * SIDE * 2, SIDE * SIDE * 2))

    process = start(folder, preexec_fn=limit)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-2000:]
    assert int(out) == 0
    assert err.count("TOROID_CACHE_DIR: cannot write") == 1
    assert files(folder) == []
