"""The page that `Explanation.html` gives: one file that needs no network.

What it shows comes from ``Executable.record()``. The page's own JavaScript draws it; dagre, kept
here as it is released, finds the places of boxes and edges.
"""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toroid.report import Explanation, GraphReport

#: In the order in which one uses the other.
_SCRIPTS = (
    "words.js",
    "model.js",
    "layout.js",
    "boxes.js",
    "camera.js",
    "minimap.js",
    "drawing.js",
    "search.js",
    "details.js",
    "steps.js",
    "side.js",
    "main.js",
)


def page(explanation: Explanation) -> str:
    """Put the page together."""
    parts = {
        "title": html.escape(explanation.name),
        "style": _text("page.css"),
        "data": _json(_report(explanation)),
        "dagre": _dagre(),
        "script": "\n".join(_text(name) for name in _SCRIPTS),
    }
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], _text("page.html"))


def _text(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def _dagre() -> str:
    """The layout library with its licence, and without the address of a map that is not here."""
    code, _, _ = _text("dagre.min.js").partition("//# sourceMappingURL=")
    return f"/*\n{_text('dagre.LICENSE')}*/\n{code}"


def _json(data: Any) -> str:
    """JSON that may stand inside a script element: nothing in it ends the element or opens one."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _report(explanation: Explanation) -> dict[str, Any]:
    import torch

    import toroid

    return {
        "title": explanation.name,
        "about": f"compiled by Toroid {toroid.__version__} for PyTorch {torch.__version__}",
        "breaks": explanation.breaks,
        "graphs": [_graph(graph) for graph in explanation.graphs],
    }


def _graph(report: GraphReport) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "fallback": report.fallback,
        "compiler": report.compiler,
        "stats": report.stats,
        "record": report.executable.record() if report.executable else None,
    }
