"""TOROID_CACHE_DIR: compiled graphs kept on disk, and what the next process makes of them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import saved_run
import torch
import toroid
from saved_run import compiled, mlp, run, same
from toroid import _core

PROGRAM = Path(saved_run.__file__)
#: Cases of which a later process can take nothing.
NEVER = {"strict_refuses", "whole_graph_by_pytorch", "higher_order", "side_effects", "aot"}


def start(folder, *names):
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *names],
        env={**os.environ, "TOROID_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out)


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """What two processes say, one after the other, of all cases."""
    folder = tmp_path_factory.mktemp("kept")
    return [finish(start(folder)) for _ in range(2)]


@pytest.mark.parametrize("name", saved_run.CASES)
def test_second_start(starts, name):
    cold, warm = (found[name] for found in starts)
    assert cold["error"] is None and warm["error"] is None, cold["error"] or warm["error"]
    assert cold["value"] == warm["value"]
    assert warm["saved"] == 0
    if name in NEVER:
        assert cold["saved"] == cold["hit"] == warm["hit"] == 0
    else:
        assert warm["hit"] == cold["hit"] + cold["saved"] > 0
        assert warm["miss"] == warm["bypass"] == 0


def test_two_writers(tmp_path):
    both = [start(tmp_path / "kept", "plain", "training") for _ in range(2)]
    for found in map(finish, both):
        assert [found[name]["error"] for name in ("plain", "training")] == [None, None]
    assert not list((tmp_path / "kept").glob("*.part"))
    assert finish(start(tmp_path / "kept", "plain"))["plain"]["hit"] == 1


# ------------------------------------------------------------------ in one process


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TOROID_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def graphs(folder):
    return sorted(folder.glob("*.graph"))


def counts(function):
    found = run(function)
    assert found["error"] is None, found["error"]
    return {name: found[name] for name in ("hit", "miss", "bypass", "saved") if found[name]}


@pytest.mark.parametrize("harm", ["content", "short", "empty"])
def test_a_damaged_file_is_made_again(folder, harm, capfd):
    assert counts(saved_run.plain) == {"miss": 1, "saved": 1}
    (path,) = graphs(folder)
    bad = bytearray(path.read_bytes())
    if harm == "content":
        bad[-100] ^= 1
    else:
        bad = bad[: len(bad) // 2] if harm == "short" else b""
    path.unlink()
    path.write_bytes(bad)
    path.chmod(0o400)
    assert counts(saved_run.plain) == {"miss": 1, "saved": 1}
    assert "damaged" in capfd.readouterr().err
    assert counts(saved_run.plain) == {"hit": 1}


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
def test_functions_that_pose_as_pytorchs(folder, monkeypatch, placed, wrapped):
    """They are called as they are, whatever a function of the same name did before."""

    def posing(factor):
        def scaled(x):
            return x * factor

        function = torch.no_grad()(scaled) if wrapped else scaled
        function.__module__ = "torch.nn.functional"
        if placed:
            monkeypatch.setattr(torch.nn.functional, "scaled", function, raising=False)
        torch._dynamo.allow_in_graph(function)
        return function

    def model(factor):
        function, x = posing(factor), torch.randn(5)
        same(compiled(lambda x: function(x) + 1), lambda x: x * factor + 1, x)

    for factor in (2, 3):
        found = counts(lambda factor=factor: model(factor))
        assert "hit" not in found and "saved" not in found


def test_functions_of_pytorch_are_kept(folder):
    def model():
        pool = torch.nn.functional.max_pool2d  # one of the functions that another one makes
        f = torch.nn.functional.softmax
        same(
            compiled(lambda x: f(pool(x, 2), -1)),
            lambda x: f(pool(x, 2), -1),
            torch.randn(1, 1, 4, 4),
        )

    assert counts(model) == {"miss": 1, "saved": 1}
    assert counts(model) == {"hit": 1}


def test_a_file_that_others_can_write_is_not_read(folder, capfd):
    """What is unpickled runs."""
    counts(saved_run.plain)
    (path,) = graphs(folder)
    path.chmod(0o466)
    assert "hit" not in counts(saved_run.plain)
    assert "another user" in capfd.readouterr().err


def test_another_function_of_the_same_name(folder):
    def define(factor):
        def model(x):
            return (x * factor).relu()

        return model

    x = torch.randn(4, 4)
    for factor in (2.0, 3.0):
        model = define(factor)
        assert "hit" not in counts(lambda model=model: same(compiled(model), model, x))
    assert counts(lambda: same(compiled(define(2.0)), define(2.0), x)) == {"hit": 1}


def test_another_setting(folder):
    def by_options(**options):
        return counts(lambda: same(compiled(model, **options), model, x))

    model, x = mlp(), torch.randn(3, 64)
    with torch.no_grad():
        assert "saved" in by_options()
        assert "saved" in by_options(freeze=False)
        assert by_options(threads=1) == by_options(verbose=1) == {"hit": 1}
    assert "saved" in by_options()  # with gradients
    with torch.inference_mode():  # the same graph as without gradients
        assert by_options() == {"hit": 1}
        torch._dynamo.reset()
        assert compiled(model)(x).is_inference()


def test_ops_that_may_be_edited_are_not_kept(folder):
    with torch.library._scoped_library("saved_test", "FRAGMENT") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x * 2, "CompositeImplicitAutograd")

        def model(x):
            return torch.ops.saved_test.double(x) + 1

        assert counts(lambda: same(compiled(model), model, torch.randn(3))) == {"bypass": 1}
    assert not graphs(folder)


def test_a_line_says_why_a_graph_is_not_kept(folder, caplog):
    from toroid.saved import Session

    session = Session(toroid.backend.toroid._toroid_compiler, job(verbose=1), None, None)
    graph = _core.Graph()
    graph.set_outputs([graph.add_input("x", "float32", [1], contiguous=True)], [None], [])
    with caplog.at_level(logging.WARNING, "toroid"):
        session._note(lowered(graph, callables=[torch.nn.Linear(1, 1)]))
    assert "not kept in TOROID_CACHE_DIR: it holds a Linear" in caplog.text


def job(**options):
    from toroid.compilers import Job
    from toroid.options import Options

    return Job(Options(**options), {})


def lowered(graph, callables=()):
    from toroid.lower import Lowered

    return Lowered(graph, list(callables), (), [])


def test_pytorch_s_switch(folder):
    with torch.compiler.config.patch(force_disable_caches=True):
        assert counts(saved_run.plain) == {}
    assert not folder.exists()


def test_another_pytorch(folder, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    assert counts(saved_run.plain) == {}


def test_without_a_folder(monkeypatch):
    monkeypatch.delenv("TOROID_CACHE_DIR", raising=False)
    assert counts(saved_run.training) == {}


def test_the_least_recently_used_goes_first(folder, monkeypatch):
    cases = (saved_run.plain, saved_run.constants, saved_run.reference)
    for function in cases:
        counts(function)
    kept = sum(path.stat().st_size for path in graphs(folder))
    assert counts(saved_run.plain) == {"hit": 1}  # used now
    monkeypatch.setenv("TOROID_CACHE_SIZE", str(kept))
    counts(saved_run.random_numbers)
    assert counts(saved_run.plain) == {"hit": 1}
    assert "hit" not in counts(saved_run.constants)


def test_bytes_that_are_no_graph():
    graph = _core.Graph()
    x = graph.add_input("x", "float32", [1], contiguous=True)
    with pytest.raises(ValueError, match="before set_outputs"):
        graph.to_bytes()
    graph.set_outputs([x, 3, None], [None] * 3, [])
    data, returns = graph.to_bytes()
    assert _core.Graph.from_bytes(data, returns).text() == graph.text()
    assert [item[2] for item in returns] == [None, 3, None]
    with pytest.raises(toroid.Unsupported, match="another build"):
        _core.Graph.from_bytes(b"x" * 100, returns)
    with pytest.raises(ValueError, match="end early|fewer bytes"):
        _core.Graph.from_bytes(data[:-3], returns)
    for wrong in ([], [(0, 1, None)], [(0, 0, None), (0, 0, None)], [(7, 0, None)]):
        with pytest.raises(ValueError, match="from_bytes"):
            _core.Graph.from_bytes(data, wrong)
