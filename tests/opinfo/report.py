"""Outcomes as lines of JSON, as the table that a run prints, and as a page of `docs/`."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from sample import FAILURES, STATUSES, Outcome
from worker import Result

Counts = dict[str, collections.Counter[str]]
Reasons = dict[str, dict[tuple[str, str], list[str]]]


def to_line(r: Result) -> str:
    """One result as a line of JSON."""
    return json.dumps([r.op, r.dtype, r.number, r.outcome.status, r.outcome.reason])


def read(paths: Iterable[Path]) -> list[Result]:
    """Results of earlier runs; of one sample, what the last file says."""
    found: dict[tuple[str, str, int], Result] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            op, dtype, number, status, reason = json.loads(line)
            found[op, dtype, number] = Result(op, dtype, number, Outcome(status, reason))
    return list(found.values())


def group(results: Iterable[Result]) -> tuple[Counts, Reasons]:
    """For each op how many samples have each status, and which samples each reason."""
    counts: Counts = {}
    reasons: Reasons = {}
    for r in results:
        counts.setdefault(r.op, collections.Counter())[r.outcome.status] += 1
        if r.outcome.reason and r.outcome.status != "decomposed":
            key = (r.outcome.status, r.outcome.reason)
            reasons.setdefault(r.op, {}).setdefault(key, []).append(f"{r.dtype}#{r.number}")
    return counts, reasons


def table(results: Sequence[Result], everything: bool) -> str:
    """A row for each op, with the most frequent reasons below."""
    rows, reasons = group(results)
    lines = [f"{'op':44}" + "".join(f"{s:>11}" for s in STATUSES)]
    for op, counts in sorted(rows.items()):
        if not everything and set(counts) == {"native"}:
            continue
        lines.append(f"{op:44}" + "".join(f"{counts[s] or '':>11}" for s in STATUSES))
        order = sorted(reasons.get(op, {}).items(), key=lambda r: -STATUSES.index(r[0][0]))
        for (status, reason), where in order[:8]:
            more = f" +{len(where) - 3}" if len(where) > 3 else ""
            lines.append(f"    {status} {' '.join(where[:3])}{more}: {reason[:300]}")
    total = sum(rows.values(), collections.Counter())
    lines.append(f"{'all samples':44}" + "".join(f"{total[s]:>11}" for s in STATUSES))
    for title, kind in (("ops fully native", {"native"}), ("or decomposed", set(STATUSES[:2]))):
        lines.append(f"{title}: {sum(set(counts) <= kind for counts in rows.values())}/{len(rows)}")
    return "\n".join(lines)


def _calls(reasons: dict[tuple[str, str], list[str]]) -> str:
    """The ATen calls that PyTorch runs, the most frequent first."""
    calls: collections.Counter[str] = collections.Counter()
    for (status, reason), where in reasons.items():
        if status == "external":
            calls.update({part.partition(": ")[0]: len(where) for part in reason.split("; ")})
    names = [f"`{name.removeprefix('aten.')}`" for name, _ in calls.most_common(3)]
    return ", ".join(names) + (", ..." if len(calls) > 3 else "")


def markdown(results: Sequence[Result]) -> str:
    """A page: the ops without anything left to PyTorch, then a table of the others."""
    rows, reasons = group(results)
    whole = {op for op, counts in rows.items() if set(counts) <= set(STATUSES[:2])}
    shown = [s for s in STATUSES if any(rows[op][s] for op in rows) and s not in FAILURES]
    total = sum(rows.values(), collections.Counter())
    failed = sum(total[s] for s in FAILURES)
    sums = ", ".join(f"{total[s]:,} {s}" for s in shown)
    dtypes = ", ".join(sorted({r.dtype for r in results}))
    lines = [
        "# Operators",
        "",
        "What becomes of PyTorch's `OpInfo` samples; [testing.md](testing.md) has the columns.",
        "Written by `tests/opinfo --read FILES --markdown` from the JSON of runs.",
        "",
        f"{total.total():,} samples of {len(rows)} ops ({dtypes}): {sums}; {failed} failed.",
        "",
        f"## {len(whole)} ops without a call to PyTorch",
        "",
        ", ".join(f"`{op}`" for op in sorted(whole)),
        "",
        f"## {len(rows) - len(whole)} others",
        "",
        "| op | " + " | ".join(shown) + " | calls that PyTorch runs |",
        "|---" * (len(shown) + 2) + "|",
    ]
    for op in sorted(rows.keys() - whole):
        numbers = " | ".join(str(rows[op][s] or "") for s in shown)
        lines.append(f"| `{op}` | {numbers} | {_calls(reasons.get(op, {}))} |")
    return "\n".join(lines) + "\n"
