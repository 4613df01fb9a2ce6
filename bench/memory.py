"""Peak memory of convolution nets on Toroid and on ONNX Runtime, each in a process of its own.

    python bench/memory.py [--models mobilenetv2,resnet50] [--threads 1] [--calls 10]

Both figures are high-water marks (VmHWM, reset before) of resident memory above what was there just
before the engine got the model: `first` until the first result, `calls` over the calls that follow.
By then libraries are loaded, the model of PyTorch is there, and for Toroid PyTorch has captured the
graph once for another backend, which does not make the second capture free: most of `first` is
PyTorch's. ONNX Runtime reads a file that yet another process exported. `weights` is what the
parameters take, which both engines hold once more in a form of their own.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from models import MODELS, MORE
from run import exported, names, onnx_session, toroid

NETS = ["convnext", "resnet50", "mobilenetv2", "efficientnet"]
FIGURES = ("first", "calls", "weights")
RESET_PEAK = "5"  # for /proc/self/clear_refs


def status(key):
    """Return a figure of the process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")


def forget_peak():
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)


def build(name):
    torch.manual_seed(0)
    model, inputs = {**MODELS, **MORE}[name]()
    return model.eval(), inputs


@torch.no_grad()
def peak(name, engine, threads, calls, folder):
    """Return how far memory rises, in bytes; runs in the child."""
    torch.set_num_threads(threads)
    model, inputs = build(name)
    if engine == "toroid":
        torch.compile(model, backend="aot_eager")(*inputs)
        torch._dynamo.reset()
    else:
        import onnxruntime  # noqa: F401
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # lest freed memory hides what the engine takes
    before = status("VmRSS")
    forget_peak()
    if engine == "toroid":
        call = toroid(model, inputs, threads, strict=True)
    else:
        call = onnx_session(str(Path(folder) / "model.onnx"), inputs, threads)
    call()
    first = status("VmHWM") - before
    gc.collect()
    forget_peak()
    for _ in range(calls):
        call()
    weights = sum(p.nbytes for p in model.parameters())
    return {"first": first, "calls": status("VmHWM") - before, "weights": weights}


def child(*arguments):
    """Call this script in a process of its own; return what it prints last."""
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run_child(task, name, *rest):
    if task == "export":
        exported(*build(name), rest[0])
        return None
    engine, threads, calls, folder = rest
    return peak(name, engine, int(threads), int(calls), folder)


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=names([*MODELS, *MORE]), default=NETS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        print(json.dumps(run_child(*args.child)))
        return
    print(f"{'model':13}{'engine':13}" + "".join(f"{f'{key} MB':>12}" for key in FIGURES))
    for name in args.models:
        with tempfile.TemporaryDirectory() as folder:
            child("export", name, folder)
            for engine in ("onnxruntime", "toroid"):
                row = child("peak", name, engine, args.threads, args.calls, folder)
                numbers = "".join(f"{row[key] / 1e6:12.1f}" for key in FIGURES)
                print(f"{name:13}{engine:13}{numbers}", flush=True)


if __name__ == "__main__":
    main()
