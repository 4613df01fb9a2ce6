"""`toroid.profile`: which steps ran, how long, and how much they had to do."""

from __future__ import annotations

import json
import os
import subprocess
import threading

import pytest
import torch
import toroid
from torch import nn


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend="toroid", options={"strict": True}, **options)


def profile(function, *inputs, **options):
    """Profile one warm call."""
    with torch.no_grad():
        run = compiled(function, **options)
        run(*inputs)
        with toroid.profile() as p:
            run(*inputs)
    return p


def only(p, word):
    (step,) = [step for step in p.steps() if step.work.split()[0] == word]
    return step


def test_linear_with_epilogue():
    layer = nn.Linear(24, 40)
    p = profile(lambda x: torch.relu(layer(x)), torch.randn(6, 24))
    step = only(p, "linear")
    assert step.work == "linear {relu}"
    assert step.shape == "float32[6, 40]"
    assert step.flops == 2 * 6 * 24 * 40
    assert step.kernel.startswith("tor_gemm_f32")
    assert step.runs == 1 and not step.external
    assert 0 < step.seconds <= p.seconds


@pytest.mark.parametrize(
    ("function", "inputs", "word", "flops"),
    [
        (torch.matmul, [(5, 7, 16), (5, 16, 9)], "matmul", 2 * 5 * 7 * 16 * 9),
        (
            torch.nn.functional.scaled_dot_product_attention,
            [(2, 4, 10, 32), (2, 4, 20, 32), (2, 4, 20, 16)],
            "attention",
            2 * 2 * 4 * 10 * 20 * (32 + 16),
        ),
        (
            lambda x, w: torch.conv2d(x, w, stride=2, padding=1, groups=2),
            [(2, 8, 9, 9), (6, 4, 3, 3)],
            "conv",
            2 * (2 * 6 * 5 * 5) * 9 * 4,
        ),
        (
            lambda x, w: torch.conv_transpose2d(x, w, stride=2),
            [(2, 8, 4, 4), (8, 6, 3, 3)],
            "conv",
            2 * (2 * 8 * 4 * 4) * 9 * 6,
        ),
    ],
)
def test_flops_of_products(function, inputs, word, flops):
    p = profile(function, *(torch.randn(size) for size in inputs))
    assert only(p, word).flops == flops


def test_bytes_of_a_pointwise_step():
    p = profile(lambda x, y: torch.exp(x + y), torch.randn(33, 1, 5), torch.randn(33, 7, 5))
    step = only(p, "fused")
    assert step.flops == 0
    assert step.bytes == 4 * (33 * 5 + 2 * 33 * 7 * 5)


def test_products_read_their_packed_weights():
    p = profile(nn.Linear(320, 200), torch.randn(6, 320))
    assert only(p, "linear").bytes == 4 * (6 * 320 + 6 * 200 + 320 * 200 + 200)
    p = profile(nn.Conv2d(8, 12, 3, groups=2, padding=1), torch.randn(1, 8, 10, 10))
    assert only(p, "conv").bytes == 4 * (8 * 100 + 12 * 100 + 12 * 4 * 9 + 12)


def test_an_embedding_reads_the_rows_it_takes():
    table = nn.Embedding(1000, 16)
    p = profile(lambda i: table(i), torch.arange(6))
    assert only(p, "embedding").bytes == 2 * 6 * 16 * 4 + 6 * 8


def test_runs_of_one_step_add_up():
    layer = nn.Linear(8, 8)
    with torch.no_grad():
        run = compiled(layer)
        x = torch.randn(3, 8)
        run(x)
        with toroid.profile() as p:
            for _ in range(7):
                run(x)
    assert only(p, "linear").runs == 7


def test_each_size_has_its_own_rows():
    layer = nn.Linear(8, 8)
    with torch.no_grad():
        run = compiled(layer, dynamic=True)
        run(torch.randn(3, 8))
        with toroid.profile() as p:
            for length in (4, 5, 4, 5, 4):
                run(torch.randn(length, 8))
    assert {(s.shape, s.runs) for s in p.steps()} == {("float32[4, 8]", 3), ("float32[5, 8]", 2)}
    # Sizes that come back are not described anew.
    assert len({event[0] for event in p._events}) == len(p._steps)


def test_external_nodes_are_told_apart():
    torch._dynamo.reset()
    run = torch.compile(lambda x: torch.linalg.matrix_exp(x) + 1, backend="toroid")
    x = torch.eye(4)
    run(x)
    with toroid.profile() as p:
        run(x)
    assert [step.external for step in p.steps()].count(True) == 1
    assert "external aten.linalg_matrix_exp.default" in str(p)


def test_threads_are_told_apart():
    layer = nn.Linear(8, 8)
    x = torch.randn(3, 8)
    run = compiled(layer)

    def work():
        with torch.no_grad():
            run(x)

    work()
    with toroid.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert only(p, "linear").runs == 3
    assert len({event[1] for event in p._events}) == 3


def test_table():
    p = profile(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)), torch.randn(9, 64))
    text = str(p)
    assert "linear {gelu_erf}" in text and "GFLOP/s" in text and "GB/s" in text and "peak" in text
    assert (
        len({line.index("float32[9, 64]") for line in text.splitlines() if "float32[9" in line})
        == 1
    )


def test_nothing_ran():
    with toroid.profile() as p:
        pass
    assert p.steps() == [] and "0 runs" in str(p)


def test_trace_file(tmp_path):
    p = profile(nn.Linear(8, 8), torch.randn(3, 8))
    path = tmp_path / "trace.json"
    p.save_trace(path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(p._events)
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events)
    (linear,) = [e for e in events if e["name"] == "linear"]
    assert linear["args"]["flops"] == 2 * 3 * 8 * 8
    assert [f.name for f in tmp_path.iterdir()] == ["trace.json"]


def test_a_trace_that_cannot_be_written_leaves_nothing(tmp_path):
    p = profile(nn.Linear(8, 8), torch.randn(3, 8))
    with pytest.raises(OSError):
        p.save_trace(tmp_path / "missing" / "trace.json")
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError):
        p.save_trace(target)
    assert [f.name for f in tmp_path.iterdir()] == ["folder"]


def test_a_trace_goes_where_the_path_leads(tmp_path):
    """The file took the place of links and devices, /dev/null among them."""
    p = profile(nn.Linear(8, 8), torch.randn(3, 8))
    link, pipe = tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to("trace.json")
    p.save_trace(link)
    assert link.is_symlink() and json.loads((tmp_path / "trace.json").read_text())
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        p.save_trace(pipe)
        assert json.loads(reader.communicate(timeout=60)[0]) == p.trace()
    assert pipe.is_fifo()


def test_one_profile_at_a_time():
    with toroid.profile(), pytest.raises(ValueError, match="already"), toroid.profile():
        pass
    with toroid.profile():
        pass


def test_an_exception_ends_the_profile():
    with pytest.raises(KeyError), toroid.profile() as p:
        raise KeyError
    assert p.seconds > 0
    with toroid.profile():
        pass


def test_ranges_in_the_profiler_of_pytorch():
    layer = nn.Linear(8, 8)
    x = torch.randn(3, 8)
    with torch.no_grad():
        run = compiled(lambda x: torch.relu(layer(x)))
        run(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
            run(x)
            run(x)
        run(x)
    counts = {row.key: row.count for row in p.key_averages()}
    assert counts["toroid::linear {relu}"] == 2


def test_steps_without_operands():
    p = profile(
        lambda x, n: (x + 1, torch.arange(n.shape[0])),
        torch.randn(64),
        torch.empty(5),
        dynamic=True,
    )
    assert "arange" in str(p)
