"""Draws what `bench/run.py --record` measured: pictures and tables for the documents.

    python bench/draw.py bench/results/avx2.json

Writes docs/images/bench.svg and roofline.svg, and the tables between the marks of
docs/reference/measurements.md.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
MARKS = "<!-- bench/draw.py writes from here -->", "<!-- to here -->"
STEP_MARKS = "<!-- bench/draw.py writes the steps from here -->", "<!-- the steps to here -->"
INK = "#7d8590"  # legible on white and on near-black, as the bars' colours are
#: Kinds of steps, by the first word of what a step does; the rest are "other".
KINDS = {
    "linear": "products",
    "matmul": "products",
    "conv": "convolutions",
    "attention": "attention",
}
KIND_COLOURS = {
    "products": "#3f8fd2",
    "convolutions": "#5f9e6e",
    "attention": "#b08d57",
    "other": "#8f6fb3",
}
COLOURS = {
    "toroid": "#3f8fd2",
    "onnxruntime": "#b08d57",
    "openvino": "#8f6fb3",
    "inductor": "#5f9e6e",
}


def title(engine):
    """An engine's name for readers."""
    return engine.removesuffix("_strict")


def others(record):
    """The engines that are drawn, Toroid first: those with a ratio to the first engine."""
    measured = [name for name in record["engines"][1:] if ratios(record, name)]
    return sorted(measured, key=lambda name: title(name) != "toroid")


def ratios(record, engine):
    """Speed over the first engine's, by title."""
    rows = {m: rows[engine] for m, rows in record["results"].items() if "ratio" in rows[engine]}
    return {record["titles"].get(m, m): row["ratio"] for m, row in rows.items()}


def caption(record):
    """Machine, versions and date in a line."""
    threads = "one thread" if record["threads"] == 1 else f"{record['threads']} threads"
    return (
        f"{record['cpu']} at level {record['level']}, {threads}, PyTorch {record['torch']}, "
        f"{record['date']}"
    )


def mean_line(record):
    """The geometric means in words."""
    means = {
        title(e): statistics.geometric_mean(ratios(record, e).values()) for e in others(record)
    }
    if len(means) == 1:
        return f"Geometric mean: {means['toroid']:.2f}"
    return "Geometric means: " + ", ".join(f"{e} {mean:.2f}" for e, mean in means.items())


def picture(record, path):
    """Draw a group of bars for each model, the one with the fastest Toroid above."""
    engines = others(record)
    order = sorted(ratios(record, engines[0]).items(), key=lambda item: item[1])
    titles = [model for model, _ in order]
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "toroid", "font.size": 11})
    plt.rcParams["font.family"] = "sans-serif"
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(titles) * len(engines) ** 0.5 + 1.4))
    height = 0.76 / len(engines)
    for i, engine in enumerate(engines):
        found = ratios(record, engine)
        shown = [(at, found[model]) for at, model in enumerate(titles) if model in found]
        at = [row + ((len(engines) - 1) / 2 - i) * height for row, _ in shown]
        name = title(engine)
        bars = axes.barh(
            at, [x for _, x in shown], color=COLOURS.get(name, INK), height=height, label=name
        )
        small = {} if len(engines) == 1 else {"fontsize": 8}
        axes.bar_label(bars, fmt="%.2f", padding=4, color=INK, **small)
    axes.set_yticks(range(len(titles)), titles)
    axes.axvline(1, color=INK, linewidth=1, linestyle="--")
    axes.set_title("Speed over eager PyTorch (dashed)", color=INK, loc="left")
    axes.set_xlabel(f"{mean_line(record)}\n{caption(record)}", color=INK, fontsize=9, loc="left")
    axes.tick_params(colors=INK, length=0)
    axes.set_xlim(0, max(max(ratios(record, e).values()) for e in engines) * 1.08)
    axes.spines[:].set_visible(False)
    if len(engines) > 1:
        axes.legend(loc="lower right", frameon=False, labelcolor=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def milliseconds(number):
    return f"{number:.0f} ms" if number >= 200 else f"{number:.3g} ms"


def table(record):
    """Markdown rows in the bench's order: Toroid's figures, then the others' ratios."""
    first, name, *peers = record["engines"][0], *others(record)
    heads = ["model", first, "toroid", "ratio", "first result", f"error / {first}'s", *peers]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for model, rows in record["results"].items():
        row = rows[name]
        if "ratio" not in row:
            continue
        cells = [
            record["titles"].get(model, model),
            milliseconds(rows[first]["ms"]),
            milliseconds(row["ms"]),
            f"{row['ratio']:.2f}",
            f"{row['first_s']:.1f} s",
            f"{row['error_ratio']:.2f}",
            *(f"{rows[peer]['ratio']:.2f}" if "ratio" in rows[peer] else "-" for peer in peers),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def kind(step):
    return KINDS.get(step["work"].split()[0], "other")


def profiled(record):
    """Toroid's steps by model."""
    _, name, *_ = record["engines"][0], *others(record)
    return {
        m: rows[name]["steps"] for m, rows in record["results"].items() if "steps" in rows[name]
    }


def step_table(record):
    """Markdown rows: how a model's time divides among kinds of steps, and its share of the peak."""
    kinds = list(KIND_COLOURS)
    heads = ["model", *kinds, "GFLOP/s", "of the peak"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for model, steps in profiled(record).items():
        whole = sum(step["ms"] for step in steps)
        shares = [sum(s["ms"] for s in steps if kind(s) == k) / whole for k in kinds]
        rate = sum(step["flops"] for step in steps) / whole * 1e3
        cells = [
            record["titles"].get(model, model),
            *(f"{share:.0%}" if share else "-" for share in shares),
            f"{rate / 1e9:.1f}",
            f"{rate / record['peak_flops'] / record['threads']:.0%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def roofline(record, path):
    """Draw each step with products under the machine's limits; its dot's area is its time.

    Williams, Waterman & Patterson 2009, "Roofline: an insightful visual performance model".
    """
    figure, axes = plt.subplots(figsize=(9, 5))
    peak, read = record["peak_flops"] * record["threads"] / 1e9, record["peak_bytes"] / 1e9
    for model, steps in profiled(record).items():
        whole = sum(step["ms"] for step in steps)
        for step in steps:
            if not step["flops"] or not step["bytes"]:
                continue
            axes.scatter(
                step["flops"] / step["bytes"],
                step["flops"] / step["ms"] / 1e6,
                s=400 * step["ms"] / whole,
                color=KIND_COLOURS[kind(step)],
                alpha=0.5,
                linewidth=0,
                gid=f"{model}: {step['work']}",
            )
    left, right = 0.2, 1000
    axes.plot([left, peak / read, right], [left * read, peak, peak], color=INK, linewidth=1)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(left * read / 2, peak * 1.6))
    axes.set_title("GFLOP/s of Toroid's steps with products", color=INK, loc="left")
    text = f"flops for each byte read or written\n{caption(record)}"
    axes.set_xlabel(text, color=INK, fontsize=9, loc="left")
    axes.tick_params(colors=INK, which="both", length=0)
    axes.spines[:].set_visible(False)
    for name in ("products", "convolutions", "attention"):
        axes.scatter([], [], color=KIND_COLOURS[name], label=name)
    axes.legend(loc="lower right", frameon=False, labelcolor=INK)
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def between(text, marks, parts):
    """`text` with `parts` as what stands between the marks."""
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise SystemExit(f"there is no {marks[0]} and {marks[1]}")
    return before + "\n\n".join([marks[0], *parts, marks[1]]) + after


def draw(
    path,
    picture_path=ROOT / "docs/images/bench.svg",
    page=ROOT / "docs/reference/measurements.md",
):
    record = json.loads(Path(path).read_text())
    picture(record, picture_path)
    parts = [f"{caption(record)}. {record['note']}", table(record), f"{mean_line(record)}."]
    text = between(page.read_text(), MARKS, parts)
    if profiled(record):
        roofline(record, picture_path.with_name("roofline.svg"))
        text = between(text, STEP_MARKS, [step_table(record)])
    page.write_text(text)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="JSON of bench/run.py --record")
    draw(parser.parse_args(argv).results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
