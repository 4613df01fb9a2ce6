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


#: What `toroid tune` and records call a small operator.
OPERATOR = "map,size={}:50;row=0;program=f.f.1.0|exp.ffo0i0;s=50:1;s=50:1;threads=1"


def test_a_last_row_without_a_newline_is_kept(tmp_path):
    """Of a whole page too, which is what a kill leaves: of results and of lists."""
    python(
        tmp_path,
        f"""
from toroid import tunable
def page(lines):
    text = "\\n".join(lines)
    return "#" + "x" * (4096 - len(text) - 2) + "\\n" + text
rows = [{OPERATOR!r}.format(n) for n in range(100, 110)]
head = [f"Validator,{{k}},{{v}}" for k, v in tunable.get_validators()]
open("r.csv", "w").write(page(head + [row + ",tile=64,0.1" for row in rows]))
tunable.set_filename("r.csv")
assert len(tunable.get_results()) == 10
open("one.csv", "w").write({OPERATOR!r}.format(7))
assert tunable.tune_operators_in_file("one.csv").tuned == 1
assert "size=109:" in open("r.csv").read()
open("list.csv", "w").write(page(rows))
assert tunable.tune_operators_in_file("list.csv").listed == 10
""",
    )


def test_a_pipe_that_nobody_reads_stops_nothing(tmp_path):
    python(
        tmp_path,
        f"""
import os
from toroid import tunable
os.mkfifo("lines")
open("one.csv", "w").write({OPERATOR!r}.format(7))
assert tunable.tune_operators_in_file("one.csv").tuned == 1
""",
        VERBOSE="2",
        VERBOSE_FILENAME="lines",
    )


def test_a_record_that_failed_is_tried_again(tmp_path):
    python(
        tmp_path,
        """
import os, torch
def go(n):
    torch._dynamo.reset()
    torch.compile(torch.tanh, backend="toroid", dynamic=False)(torch.randn(n, 5))
os.environ["TOROID_TUNABLEOP_UNTUNED_FILENAME"] = "nofolder/u.csv"
go(10)
os.environ["TOROID_TUNABLEOP_UNTUNED_FILENAME"] = "u.csv"
go(10)
go(11)
text = open("u.csv").read()
assert text.count("map,") == 2, text
""",
        RECORD_UNTUNED="1",
    )


def test_a_child_of_a_process_that_tunes(tmp_path):
    python(
        tmp_path,
        f"""
import os, signal, threading, time
from toroid import tunable
open("many.csv", "w").write("".join({OPERATOR!r}.format(n) + "\\n" for n in range(100, 140)))
open("one.csv", "w").write({OPERATOR!r}.format(7))
thread = threading.Thread(target=tunable.tune_operators_in_file, args=("many.csv",))
thread.start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(60)
    os._exit(tunable.tune_operators_in_file("one.csv").tuned != 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
""",
    )
