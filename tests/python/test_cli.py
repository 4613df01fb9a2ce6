"""The program `toroid`: `toroid tune FILE` and what it prints."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time

import pytest
import toroid as package
from tune_run import PROGRAM, RESULTS, UNTUNED, environment, keys, record, rows, toroid

needs_two_cores = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a core for each worker")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The list of a small model."""
    folder = tmp_path_factory.mktemp("recorded")
    record(folder)
    return (folder / UNTUNED).read_text()


@pytest.fixture
def folder(tmp_path, recorded):
    (tmp_path / UNTUNED).write_text(recorded)
    return tmp_path


def test_help_and_wrong_use(tmp_path):
    assert "tune" in toroid(tmp_path, "--help")
    assert "--workers=N" in toroid(tmp_path, "tune", "--help")
    assert toroid(tmp_path, "--version").strip() == f"toroid {package.__version__}"
    assert "Usage: toroid" in toroid(tmp_path, code=64)
    assert "Usage: toroid tune" in toroid(tmp_path, "tune", code=64)
    assert "no command 'twist'" in toroid(tmp_path, "twist", code=64)
    for wrong in ("0", "-3", "two", "1.5", ""):
        assert "--workers" in toroid(tmp_path, "tune", "--workers", wrong, UNTUNED, code=64)
    assert "no file nowhere.csv" in toroid(tmp_path, "tune", "nowhere.csv", code=1)
    assert "TUNING is 0" in toroid(tmp_path, "tune", "nowhere.csv", code=1, TUNING=0)


def test_a_table(folder, recorded):
    count = len(recorded.splitlines())
    lines = toroid(folder, "tune", UNTUNED).splitlines()
    head = ["operator", "shape", "Default", "ms", "best", "ms", "gain", "solution"]
    assert lines[0].split() == head
    assert len(lines) == count + 2
    assert lines[-1].startswith(f"{count} tuned, geometric mean of gains ")
    assert lines[-1].endswith(f"; results are in {RESULTS}")
    for line, key in zip(lines[1:], recorded.splitlines(), strict=False):
        assert line.split()[0] == key.split(",")[0]
    assert keys(folder / RESULTS) == recorded.splitlines()
    (again,) = toroid(folder, "tune", UNTUNED).splitlines()
    assert again == f"0 tuned; {count} had a result; results are in {RESULTS}"


def test_json(folder, recorded):
    (folder / "more.csv").write_text("nothing_f32,a=1;threads=1\n")
    said = toroid(folder, "tune", "--json", "-r", "mine.csv", UNTUNED, "more.csv", code=1)
    found = json.loads(said)
    count = len(recorded.splitlines())
    assert (found["listed"], found["tuned"], found["failed"]) == (count + 1, count, 1)
    assert found["file"] == "mine.csv" and found["known"] == 0
    *tuned, failed = found["operators"]
    assert [f"{row['operator']},{row['params']}" for row in tuned] == recorded.splitlines()
    assert failed["operator"] == "nothing_f32" and "nothing_f32" in failed["error"]
    for row in tuned:
        assert row["gain"] == pytest.approx(row["default_ms"] / row["best_ms"], rel=1e-3)
    assert found["mean_gain"] >= 1
    assert keys(folder / "mine.csv") == recorded.splitlines()


@needs_two_cores
def test_workers(folder, recorded):
    said = toroid(folder, "tune", "--workers", 2, UNTUNED)
    assert f"{len(recorded.splitlines())} tuned" in said
    assert sorted(keys(folder / RESULTS)) == sorted(recorded.splitlines())
    said = toroid(folder, "tune", "--workers", 1000, UNTUNED, code=1)
    assert "1000 workers, expected at most one for each of" in said


def test_ranks_share_one_list(folder, recorded, monkeypatch):
    """What torchrun sets; the machines have the file in common."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        toroid(folder, "tune", UNTUNED)
        assert len(rows(folder / RESULTS)) == (len(recorded.splitlines()) + 1 - rank) // (2 - rank)
    assert sorted(keys(folder / RESULTS)) == sorted(recorded.splitlines())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_loses_nothing_that_was_finished(folder, recorded, how):
    count = len(recorded.splitlines())
    command = [PROGRAM, "tune", "--json", UNTUNED]
    run = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(MAX_TUNING_DURATION_MS=100, MAX_TUNING_ITERATIONS=10**6),
        stdout=subprocess.PIPE,
        text=True,
    )
    while not (folder / RESULTS).exists() or not rows(folder / RESULTS):
        assert run.poll() is None
        time.sleep(0.005)
    run.send_signal(how)
    found = json.loads(run.communicate(timeout=120)[0])
    assert run.returncode == 128 + how or found["tuned"] == count
    assert len(rows(folder / RESULTS)) == found["tuned"] >= 1
    said = toroid(folder, "tune", UNTUNED)
    assert f"{found['tuned']} had a result" in said
    assert sorted(keys(folder / RESULTS)) == sorted(recorded.splitlines())


def on_a_terminal(folder, *arguments):
    """What the program says on a terminal's standard error."""
    ours, theirs = pty.openpty()
    command = [PROGRAM, "tune", *arguments]
    out = subprocess.DEVNULL
    subprocess.run(command, cwd=folder, env=environment(), stdout=out, stderr=theirs, check=True)
    os.write(theirs, b"!")  # so that there is something to read
    said = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    return said.removesuffix("!")


def test_progress_on_a_terminal(folder, recorded):
    said = on_a_terminal(folder, UNTUNED)
    count = len(recorded.splitlines())
    assert f"1/{count}, " in said and f"[{'#' * 30}] {count}/{count}, 0:00 left" in said
    assert said.endswith("\r\x1b[K")  # and is taken away


def test_quiet(folder):
    assert on_a_terminal(folder, "--quiet", UNTUNED) == ""
