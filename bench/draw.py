"""Draws what `bench/run.py --record` measured: a picture for the README, a table for the documents.

    python bench/draw.py bench/results/avx2.json

Writes docs/images/bench.svg, and the table and its caption between the marks of
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
INK = "#7d8590"  # legible on white and on near-black, as the bars' colours are
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


def into_page(record, page):
    """Replace what stands between the marks."""
    before, _, rest = page.read_text().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not end:
        raise SystemExit(f"{page} has no {MARKS[0]} and {MARKS[1]}")
    parts = [f"{caption(record)}. {record['note']}", table(record), f"{mean_line(record)}."]
    text = "\n\n".join([MARKS[0], *parts, MARKS[1]])
    page.write_text(before + text + after)


def draw(
    path,
    picture_path=ROOT / "docs/images/bench.svg",
    page=ROOT / "docs/reference/measurements.md",
):
    record = json.loads(Path(path).read_text())
    picture(record, picture_path)
    into_page(record, page)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="JSON of bench/run.py --record")
    draw(parser.parse_args(argv).results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
