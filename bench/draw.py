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
INK, BAR = "#7d8590", "#3f8fd2"  # legible on white and on near-black


def ratios(record):
    """Speed over the first engine's, by title; the last engine is drawn."""
    name = record["engines"][-1]
    rows = {m: rows[name] for m, rows in record["results"].items() if "ratio" in rows[name]}
    return {record["titles"].get(m, m): row["ratio"] for m, row in rows.items()}


def caption(record):
    """Machine, versions and date in a line."""
    threads = "one thread" if record["threads"] == 1 else f"{record['threads']} threads"
    return (
        f"{record['cpu']} at level {record['level']}, {threads}, PyTorch {record['torch']}, "
        f"{record['date']}"
    )


def mean_line(record):
    """The geometric mean in words."""
    return f"Geometric mean: {statistics.geometric_mean(ratios(record).values()):.2f}"


def picture(record, path):
    """Draw a bar for each model, the fastest above."""
    found = sorted(ratios(record).items(), key=lambda item: item[1])
    titles, values = zip(*found, strict=True)
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "toroid", "font.size": 11})
    plt.rcParams["font.family"] = "sans-serif"
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(found) + 1.2))
    bars = axes.barh(titles, values, color=BAR, height=0.66)
    axes.bar_label(bars, fmt="%.2f", padding=4, color=INK)
    axes.axvline(1, color=INK, linewidth=1, linestyle="--")
    axes.set_title("Speed over eager PyTorch (dashed)", color=INK, loc="left")
    axes.set_xlabel(f"{mean_line(record)}. {caption(record)}", color=INK, fontsize=9, loc="left")
    axes.tick_params(colors=INK, length=0)
    axes.set_xlim(0, max(values) * 1.08)
    axes.spines[:].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def milliseconds(number):
    return f"{number:.0f} ms" if number >= 200 else f"{number:.3g} ms"


def table(record):
    """Markdown rows in the bench's order."""
    first, name = record["engines"][0], record["engines"][-1]
    lines = [
        f"| model | {first} | toroid | ratio | first result | error / {first}'s |",
        "|---|---|---|---|---|---|",
    ]
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
