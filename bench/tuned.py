"""Whole models with tuning results beside the same models without, in turns in one process.

    python bench/tuned.py [--models bert,resnet50,llama_decode] [--threads 1] [--seconds 10]
                          [--results FILE]

Records what each model's steps are, tunes them, prints what was gained by operator, and then times
the model by Default and by the results, call by call. Results go to a file of their own, or to
FILE, whose rows are then used and not measured again.
"""

import argparse
import math
import os
import statistics
import tempfile
from pathlib import Path

import run
import torch
from models import MODELS, MORE
from toroid import tunable

CLEARLY = 1.1  # a gain that says that the cost model is wrong


def compiled(model, tune):
    torch._dynamo.reset()
    return torch.compile(model, backend="toroid", options={"strict": True, "tune": tune})


def tuned(model, inputs, folder):
    """Tune the model's operators; a row of each: params, by Default and best, and the solution."""
    untuned = folder / f"{type(model).__name__}.csv"
    os.environ["TOROID_TUNABLEOP_UNTUNED_FILENAME"] = str(untuned)
    tunable.record_untuned_enable()
    compiled(model, tune=False)(*inputs)
    tunable.record_untuned_enable(False)
    rows = []

    def report(op, params, solution, default_ms, ms, failure, done, total):
        print(f"\r{done} of {total}", end="", flush=True)
        if not failure:
            rows.append((f"{op},{params}", default_ms, ms, solution))

    if untuned.exists():
        tunable.tuning_enable()
        tunable.tune_operators_in_file(untuned, report=report)
        tunable.tuning_enable(False)
    print("\r", end="")
    return rows


def show(rows):
    gains = [default_ms / ms for _, default_ms, ms, _ in rows]
    print(f"{len(rows)} operators tuned", end="")
    if rows:
        right = sum(gain == 1 for gain in gains)
        wrong = sum(gain > CLEARLY for gain in gains)
        print(
            f": gain {statistics.geometric_mean(gains):.3f} (geometric mean), Default the best of"
            f" {right}, wrong by over 10 % for {wrong}"
        )
    else:
        print()
    for params, default_ms, ms, solution in sorted(rows, key=lambda row: row[2] / row[1]):
        if default_ms / ms > 1:
            print(f"  {default_ms:9.4f} {ms:9.4f} {default_ms / ms:6.2f}  {solution}  {params}")


@torch.no_grad()
def measure(name, folder, seconds):
    torch.manual_seed(0)
    model, inputs = {**MODELS, **MORE}[name]()
    model.eval()
    print(name)
    show(tuned(model, inputs, folder))
    calls = {}
    for tune in (False, True):
        call = compiled(model, tune)
        call(*inputs)
        calls[tune] = lambda call=call: call(*inputs)
    times = {tune: statistics.median(t) for tune, t in run.take_turns(calls, seconds).items()}
    ratio = times[False] / times[True]
    print(
        f"{name}: {times[False] * 1e3:.2f} ms by Default, {times[True] * 1e3:.2f} ms by results,"
        f" {ratio:.3f} times as fast\n",
        flush=True,
    )
    return ratio


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--models",
        type=run.names([*MODELS, *MORE]),
        default=["bert", "resnet50", "llama_decode"],
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="for each model")
    parser.add_argument("--results", type=Path, help="keep the results there")
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        tunable.set_filename(args.results or Path(folder) / "results.csv")
        tunable.tuning_enable(False)
        ratios = [measure(name, Path(folder), args.seconds) for name in args.models]
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")


if __name__ == "__main__":
    main()
