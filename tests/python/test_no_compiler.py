"""Nothing is compiled by a compiler at run time: it works with an empty PATH and no g++."""

import os
import subprocess
import sys
import textwrap

SCRIPT = """
import subprocess
import torch

def refuse(*args, **kwargs):
    raise AssertionError(f"a program was started: {args}")

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).eval()
x = torch.randn(3, 8)
compiled = torch.compile(model, backend="toroid", options={"strict": True})
subprocess.Popen = subprocess.run = refuse
with torch.no_grad():
    assert torch.allclose(compiled(x), model(x), atol=1e-5)
print("fine")
"""


def test_no_program_is_started(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in ("PATH", "CC", "CXX")}
    env |= {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], env=env, capture_output=True, text=True
    )
    assert done.stdout.strip() == "fine", done.stderr


def test_importing_the_package_imports_no_torch():
    code = "import sys, toroid; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
