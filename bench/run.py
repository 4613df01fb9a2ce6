"""Whole models on several engines, in turns in one process.

    python bench/run.py [--models bert,resnet50]
                        [--engines eager,toroid,inductor,onnxruntime,openvino]
                        [--threads 1] [--seconds 5] [--json FILE] [--record [NOTE]]

Models come from transformers' configs with random weights; by name also the convolution nets of
nets.py. Each row has the median time of a call,
the ratio of the first engine's median to it, the time to the first result (compiling or exporting
included), and the error against float64 as a multiple of the first engine's. Engines take turns
call by call, so that a machine that slows down slows all of them down. An engine that is not
installed, or that fails, has its reason in place of numbers.

`--record` writes bench/results/<level>.json and has bench/draw.py make the pictures and the tables
of the documents from it; NOTE says what readers should know of the machine. The record also has
what Toroid's steps do and how long they take.
"""

import argparse
import copy
import datetime
import importlib.util
import json
import math
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import toroid as package  # noqa: E402
from models import MODELS, MORE, TITLES  # noqa: E402

PAUSE = 0.02  # seconds between calls: threads of the engine before go to sleep
MIN_CALLS = 5
PROFILED = 3  # calls
RESULTS = Path(__file__).resolve().parent / "results"
LEVELS = ("avx512", "avx2", "sve", "neon")
NOTE = "Engines took turns call by call; medians."


# ------------------------------------------------------------------ engines: module, inputs -> call


class NotInstalled(Exception):
    """An engine that was asked for is not there."""


def eager(model, inputs, threads):
    return lambda: model(*inputs)


def toroid(model, inputs, threads, **options):
    compiled = torch.compile(model, backend="toroid", options=options)
    return lambda: compiled(*inputs)


def toroid_strict(model, inputs, threads):
    """Fails where PyTorch would have to run a node."""
    return toroid(model, inputs, threads, strict=True)


def inductor(model, inputs, threads):
    import torch._inductor.config as config
    from torch._inductor.utils import fresh_cache

    compiled = torch.compile(model)
    with fresh_cache(), config.patch(freezing=True):
        compiled(*inputs)
    return lambda: compiled(*inputs)


def need(*packages):
    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise NotInstalled(f"{name} is not installed")


def exported(model, inputs, folder):
    path = str(Path(folder) / "model.onnx")
    torch.onnx.export(model, inputs, path, dynamo=True, verbose=False)
    return path


def onnx_session(path, inputs, threads):
    """The call of an exported model, loaded into ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {slot.name: x.numpy() for slot, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: torch.from_numpy(session.run(None, feed)[0])


def onnxruntime(model, inputs, threads):
    need("onnxruntime", "onnxscript")
    with tempfile.TemporaryDirectory() as folder:
        return onnx_session(exported(model, inputs, folder), inputs, threads)


def openvino(model, inputs, threads):
    need("openvino", "onnxscript")
    import openvino as ov

    wishes = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = exported(model, inputs, folder)
        request = ov.Core().compile_model(path, "CPU", wishes).create_infer_request()
    feed = [x.numpy() for x in inputs]
    return lambda: torch.from_numpy(request.infer(feed)[0])


ENGINES = {f.__name__: f for f in (eager, toroid, toroid_strict, inductor, onnxruntime, openvino)}

# ------------------------------------------------------------------ measuring


def machine():
    """What a reader has to know to compare."""
    info = package.info()
    level = next((name for name in LEVELS if name in info.features.split()), "generic")
    flops, read = package.profiling.peaks()
    return {
        "cpu": info.cpu,
        "level": level,
        "date": datetime.date.today().isoformat(),
        "peak_flops": flops,
        "peak_bytes": read,
    }


def clock(call):
    begin = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begin


def error(result, exact):
    return (result.double() - exact).square().mean().sqrt().item()


def start(name, model, inputs, exact, threads):
    """Build an engine's call; the row of numbers so far, or of the reason why there are none."""
    torch._dynamo.reset()
    begin = time.perf_counter()
    try:
        call = ENGINES[name](copy.deepcopy(model), inputs, threads)
        result = call()
    except NotInstalled as missing:
        return None, {"missing": str(missing)}
    except Exception as failure:
        text = str(failure).strip() or type(failure).__name__
        return None, {"failed": text.splitlines()[0]}
    return call, {"first_s": time.perf_counter() - begin, "error": error(result, exact)}


def take_turns(calls, seconds):
    """Seconds of each call of each engine; each round begins with another engine."""
    times = {name: [] for name in calls}
    order = list(calls)
    end = time.perf_counter() + seconds
    while order and (time.perf_counter() < end or len(times[order[0]]) < MIN_CALLS):
        for name in order:
            time.sleep(PAUSE)
            times[name].append(clock(calls[name])[1])
        order.append(order.pop(0))
    return times


def steps(call):
    """What Toroid's steps do, by work, kernel and size: flops, bytes and ms of one call."""
    with package.profile() as profile:
        for _ in range(PROFILED):
            call()
    return [
        {
            "work": step.work,
            "flops": step.flops * step.runs / PROFILED,
            "bytes": step.bytes * step.runs / PROFILED,
            "ms": step.seconds * 1e3 / PROFILED,
        }
        for step in profile.steps()
    ]


@torch.no_grad()
def measure(model_name, engines, threads, seconds):
    torch.manual_seed(0)
    model, inputs = {**MODELS, **MORE}[model_name]()
    model.eval()
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    exact = copy.deepcopy(model).double()(*wide)
    rows, calls = {}, {}
    for name in engines:
        call, rows[name] = start(name, model, inputs, exact, threads)
        if call:
            calls[name] = call
    for name, times in take_turns(calls, seconds).items():
        rows[name] |= {"ms": statistics.median(times) * 1e3, "calls": len(times)}
        if name.startswith("toroid"):
            rows[name]["steps"] = steps(calls[name])
    first = rows[engines[0]]
    for row in rows.values():
        if "ms" in row and "ms" in first:
            row["ratio"] = first["ms"] / row["ms"]
            row["error_ratio"] = row["error"] / first["error"] if first["error"] else math.nan
    return rows


def line(model_name, name, row):
    head = f"{model_name:13}{name:14}"
    if "ms" not in row:
        return f"{head}  {row.get('missing') or row['failed']}"
    ratio = f"{row['ratio']:8.2f}" if "ratio" in row else f"{'':8}"
    error_ratio = f"{row['error_ratio']:9.2f}" if "ratio" in row else f"{'':9}"
    return f"{head}{row['ms']:10.2f}{ratio}{row['first_s']:10.2f}{error_ratio}{row['calls']:8}"


def names(known):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return chosen

    return parse


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=names([*MODELS, *MORE]), default=list(MODELS))
    parser.add_argument("--engines", type=names(ENGINES), default=["eager", "toroid"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5, help="for each model, all engines")
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    parser.add_argument(
        "--record", nargs="?", const=NOTE, metavar="NOTE", help="write and draw them for the docs"
    )
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    print(f"PyTorch {torch.__version__}, {args.threads} thread(s)\n")
    print(f"{'model':13}{'engine':14}{'ms':>10}{'ratio':>8}{'first s':>10}{'error':>9}{'calls':>8}")
    results = {}
    for model_name in args.models:
        results[model_name] = measure(model_name, args.engines, args.threads, args.seconds)
        for name, row in results[model_name].items():
            print(line(model_name, name, row), flush=True)
    for name in args.engines[1:]:
        ratios = [rows[name]["ratio"] for rows in results.values() if "ratio" in rows[name]]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            print(f"{name}: {mean:.2f} times as fast as {args.engines[0]} (geometric mean)")
    record = {"torch": torch.__version__, "threads": args.threads, "engines": args.engines}
    record |= {**machine(), "note": args.record or NOTE, "titles": TITLES, "results": results}
    text = json.dumps(record, indent=1) + "\n"
    if args.json:
        args.json.write_text(text)
    if args.record:
        from draw import draw

        path = RESULTS / f"{record['level']}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        draw(path)
        print(f"{path}, docs/images and docs/reference/measurements.md are written")
    return int(any("failed" in row for rows in results.values() for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
