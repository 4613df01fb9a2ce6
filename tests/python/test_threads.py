"""Answers do not depend on the number of threads, and one compiled model serves many callers."""

import os
import threading

import pytest
import torch
from support import toroid


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(96, 384)
        self.norm = torch.nn.LayerNorm(384)
        self.b = torch.nn.Linear(384, 96)

    def forward(self, x):
        y = torch.softmax(self.norm(torch.nn.functional.gelu(self.a(x))), -1)
        return self.b(y) + x, y.sum(0), x.cumsum(1)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(compiled, x):
    with torch.no_grad():
        return [t.clone() for t in compiled(x)]


@pytest.mark.parametrize("rows", [1, 7, 130])
def test_bit_identical_for_any_number_of_threads(rows, threads):
    compiled = toroid(Model().eval())
    x = torch.randn(rows, 96)
    answers = []
    for n in (1, 2, 4):
        torch.set_num_threads(n)
        answers.append(run(compiled, x))
    for other in answers[1:]:
        assert all(torch.equal(a, b) for a, b in zip(answers[0], other, strict=True))


def test_option_threads_is_bit_identical_too():
    model, x = Model().eval(), torch.randn(33, 96)
    answers = []
    for n in (1, 3):
        torch._dynamo.reset()
        answers.append(run(toroid(model, options={"threads": n}), x))
    assert all(torch.equal(a, b) for a, b in zip(*answers, strict=True))


def test_eight_python_threads_on_one_model():
    compiled = toroid(Model().eval(), dynamic=True)
    inputs = [torch.randn(3 + 5 * i, 96) for i in range(8)]
    want = [run(compiled, x) for x in inputs]
    wrong = []

    def work(i):
        try:
            for _ in range(40):
                got = run(compiled, inputs[i])
                if not all(torch.equal(a, b) for a, b in zip(got, want[i], strict=True)):
                    wrong.append(f"thread {i}: another answer")
        except Exception as error:
            wrong.append(f"thread {i}: {error!r}")

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_fork_after_use(threads):
    torch.set_num_threads(2)
    compiled = toroid(Model().eval())
    x = torch.randn(64, 96)
    want = run(compiled, x)
    # PyTorch's own pool does not survive a fork; only Toroid's part is asked for in the child.
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            got = run(compiled, x)
            code = 0 if all(torch.equal(a, b) for a, b in zip(got, want, strict=True)) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert all(torch.equal(a, b) for a, b in zip(run(compiled, x), want, strict=True))
