"""Memory of the process: flat over shapes, given back when it is idle."""

from __future__ import annotations

import subprocess
import sys
import textwrap

HEAD = """
import gc, random, time
import torch, toroid
from torch import nn

def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

torch.set_num_threads(1)
random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 64))
compiled = torch.compile(model, backend="toroid", dynamic=True, options={"strict": True})
torch.set_grad_enabled(False)
"""


def run(code):
    program = HEAD + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [int(word) for word in done.stdout.split()]


def test_flat_over_5000_random_shapes():
    after_1000, after_5000 = run("""
        for i in range(1, 5001):
            compiled(torch.randn(random.randint(1, 9), random.randint(1, 200), 64))
            if i in (1000, 5000):
                print(resident())
    """)
    assert after_5000 < 1.02 * after_1000


def test_working_memory_goes_back():
    """A batch that needs 400 MB and more, once."""
    start, large, small, trimmed, large_again, later, answer = run("""
        x = torch.randn(3, 5, 64)
        compiled(x)
        print(resident())
        compiled(torch.randn(4000, 100, 64))
        print(resident())
        compiled(x)
        print(resident())
        toroid.trim()
        print(resident())
        compiled(torch.randn(4000, 100, 64))
        compiled(x)
        print(resident())
        time.sleep(10.5)
        y = compiled(torch.randn(3, 6, 64))
        print(resident())
        print(int(torch.allclose(compiled(x), model(x), atol=1e-5)))
    """)
    assert large > start + 400_000
    assert small > start + 400_000  # the size may come again: pages are kept for a while
    assert trimmed < start + 50_000
    assert large_again > start + 400_000
    assert later < start + 50_000
    assert answer == 1


def test_an_executable_that_is_not_used_gives_its_memory_back():
    large, later = run("""
        compiled(torch.randn(4000, 100, 64))
        print(resident())
        other = torch.compile(lambda x: x * 2, backend="toroid")
        other(torch.ones(3))
        time.sleep(10.5)
        other(torch.ones(3))
        print(resident())
        compiled(torch.randn(2, 3, 64))  # still there
    """)
    assert later < large - 300_000
