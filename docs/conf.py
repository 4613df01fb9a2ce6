"""Sphinx's settings: `make docs` builds the site from docs/, docstrings and public headers."""

import re
import sys
from pathlib import Path

from hawkmoth.util import compiler

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

project = "Toroid"
PACKAGE = (ROOT / "python" / "toroid" / "__init__.py").read_text()
release = re.search(r'^__version__ = "(.*)"', PACKAGE, re.M)[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "hawkmoth",
    "hawkmoth.ext.javadoc",
]
exclude_patterns = ["requirements.txt"]
html_theme = "furo"
html_title = "Toroid"
html_static_path = ["images"]

# Links to headings of other pages go by GitHub's rule, so that they work in both places.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Python: neither PyTorch nor the extension is needed to read docstrings.
autodoc_mock_imports = ["torch", "toroid._core"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # NumPy docstrings have the types
napoleon_use_rtype = False
default_role = "py:obj"

# C: hawkmoth reads comments in /** */ only.
C_HEADERS = ROOT / "build" / "docs-headers"


def block_comments(text: str) -> str:
    """Turn runs of `///` lines into block comments whose commands stand apart."""

    def block(match: re.Match[str]) -> str:
        lines = [line.strip().removeprefix("///").strip("\n") for line in match[1].splitlines()]
        first = next((i for i, line in enumerate(lines) if line.startswith(" @")), len(lines))
        lines[first:first] = [""]
        of_the_file = "/**/\n" if match[2] else ""  # else it would go to the include guard
        return "/**\n" + "".join(f" *{line}\n" for line in lines) + " */\n" + of_the_file

    return re.sub(r"((?:^[ ]*///.*\n)+)(?=(#ifndef)?)", block, text, flags=re.M)


def write_headers() -> None:
    """Copy the public headers to where hawkmoth reads them."""
    for header in (ROOT / "include" / "toroid").glob("*.h"):
        copy = C_HEADERS / "toroid" / header.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(block_comments(header.read_text()))


write_headers()
hawkmoth_root = str(C_HEADERS)
hawkmoth_clang = [f"-I{C_HEADERS}", *compiler.get_include_args()]
hawkmoth_transform_default = "javadoc"
