"""`toroid.tunable`: the names of torch.cuda.tunable over C, and a list recorded, tuned and used."""

from __future__ import annotations

import pytest
import torch
import toroid
from tune_run import MODEL, RESULTS, UNTUNED, keys, python, record, rows


def test_names_of_torch_cuda_tunable():
    assert set(torch.cuda.tunable.__all__) <= set(dir(toroid.tunable))
    assert all(callable(getattr(toroid.tunable, name)) for name in toroid.tunable.__all__)


def test_switches_and_limits(tmp_path):
    python(
        tmp_path,
        """
from toroid import tunable as t
import sys
assert "torch" not in sys.modules
def switches():
    return t.is_enabled(), t.tuning_is_enabled(), t.record_untuned_is_enabled()
assert switches() == (False, True, False)
t.enable(); t.tuning_enable(False); t.record_untuned_enable()
assert switches() == (True, False, True)
assert t.get_rotating_buffer_size() == -1
t.set_max_tuning_duration(12.5); t.set_max_tuning_iterations(7); t.set_rotating_buffer_size(3)
assert (t.get_max_tuning_duration(), t.get_max_tuning_iterations()) == (12.5, 7)
assert t.get_rotating_buffer_size() == 3
t.set_numerical_check_tolerances(True, atol=1e-3)
assert t._core.tune_get("NUMERICAL_CHECK") == "0.001_1e-05"
t.set_numerical_check_tolerances(False)
assert t._core.tune_get("NUMERICAL_CHECK") == "off"
assert t.get_results() == () and dict(t.get_validators())["TOROID_VERSION"]
t.set_filename("r.csv", insert_device_ordinal=True)
import os
os.environ["LOCAL_RANK"] = "2"
assert t.get_filename() == "r2.csv"
for wrong in (lambda: t.set_max_tuning_duration(-1), lambda: t.set_rotating_buffer_size(1.5)):
    try:
        wrong()
    except ValueError as error:
        assert "expected" in str(error)
    else:
        raise AssertionError
""",
        MAX_TUNING_DURATION_MS="",
        MAX_TUNING_ITERATIONS="",
    )


def test_the_environment_wins(monkeypatch):
    assert not toroid.tunable.is_enabled()
    monkeypatch.setenv("TOROID_TUNABLEOP_ENABLED", "1")
    assert toroid.tunable.is_enabled()
    toroid.tunable.enable(False)
    assert toroid.tunable.is_enabled()
    monkeypatch.setenv("TOROID_TUNABLEOP_FILENAME", "theirs.csv")
    assert toroid.tunable.get_filename() == "theirs.csv"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The list of a small model."""
    folder = tmp_path_factory.mktemp("recorded")
    record(folder)
    return (folder / UNTUNED).read_text()


def test_a_list_is_recorded_tuned_and_used(tmp_path, recorded):
    (tmp_path / UNTUNED).write_text(recorded)
    recorded = recorded.splitlines()
    assert len(recorded) == len(set(recorded)) >= 3
    python(
        tmp_path,
        f"""
from toroid import tunable
heard = []
done = tunable.tune_operators_in_file({UNTUNED!r}, report=lambda *news: heard.append(news))
count = {len(recorded)}
assert done == tunable.Tuned(count, 0, count, ())
assert [news[6:] for news in heard] == [(i + 1, count) for i in range(count)]
assert [f"{{news[0]}},{{news[1]}}" for news in heard] == {recorded!r}
assert all(news[3] > 0 and 0 < news[4] <= news[3] for news in heard)
assert len(tunable.get_results()) == count
tunable.tune_gemm_in_file({UNTUNED!r})
tunable.mgpu_tune_gemm_in_file("tunableop_unt*.csv", 1)
""",
    )
    # The shapes that were tuned are those that were recorded.
    assert keys(tmp_path / RESULTS) == recorded
    before = (tmp_path / RESULTS).read_text()
    # A second process with the file tunes nothing and notes nothing.
    (tmp_path / UNTUNED).unlink()
    python(tmp_path, MODEL, ENABLED=1, RECORD_UNTUNED=1)
    assert (tmp_path / RESULTS).read_text() == before
    assert not (tmp_path / UNTUNED).exists()


def test_tuning_while_it_runs_writes_at_once(tmp_path):
    python(tmp_path, MODEL + "import os; os._exit(1)", fails=True, ENABLED=1)
    assert len(rows(tmp_path / RESULTS)) >= 3


def test_an_edited_file_changes_no_answer(tmp_path, recorded):
    """An unknown solution is Default, with a warning; so is "Default"."""
    (tmp_path / UNTUNED).write_text(recorded)
    python(tmp_path, f"import toroid; toroid.tunable.tune_gemm_in_file({UNTUNED!r})")
    file = tmp_path / RESULTS
    head = [x for x in file.read_text().splitlines() if x.startswith("Validator,")]
    first, *rest = keys(file)
    edited = [f"{first},no_such_row;mc=7", *(f"{key},Default" for key in rest)]
    file.write_text("\n".join(head + edited) + "\n")
    assert "no_such_row" in python(tmp_path, MODEL, ENABLED=1)
    assert rows(file) == edited


def test_errors(tmp_path):
    python(
        tmp_path,
        f"""
from toroid import tunable as t
def fails(kind, call):
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(kind)
assert "no file nowhere.csv" in fails(RuntimeError, lambda: t.tune_operators_in_file("nowhere.csv"))
fails(FileNotFoundError, lambda: t.tune_operators_in_files("nowhere*.csv"))
open({UNTUNED!r}, "w").write("nothing_f32,a=1;threads=1\\n\\nwrong\\n")
assert "line 3" in fails(ValueError, lambda: t.tune_operators_in_file({UNTUNED!r}))
open({UNTUNED!r}, "w").write("nothing_f32,a=1;threads=1\\n")
((op, params, reason),) = t.tune_operators_in_file({UNTUNED!r}).failed
assert (op, params) == ("nothing_f32", "a=1;threads=1") and "nothing_f32" in reason
fails(ZeroDivisionError, lambda: t.tune_operators_in_file({UNTUNED!r}, report=lambda *_: 1 / 0))
fails(ValueError, lambda: t.tune_operators_in_file({UNTUNED!r}, workers=10**5))
t.tuning_enable(False)
assert "TUNING is 0" in fails(ValueError, lambda: t.tune_operators_in_file({UNTUNED!r}))
assert t.read_file("nowhere.csv") is False
fails(RuntimeError, lambda: t.read_file("."))
fails(RuntimeError, lambda: t.write_file("no/folder.csv"))
""",
    )


@pytest.mark.parametrize("name", ["write_file", "read_file", "set_filename"])
def test_paths_may_be_any_bytes(tmp_path, name):
    python(
        tmp_path,
        f"""
from toroid import tunable
from pathlib import Path
import os
path = Path(os.fsdecode(b"caf\\xe9.csv"))
tunable.{name}(path)
if {name!r} == "set_filename":
    assert tunable.get_filename() == str(path)
""",
    )
