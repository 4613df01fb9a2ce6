"""The documents: their code runs and prints what they show, their tables and links are true."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import shlex
from pathlib import Path

import pytest
import torch
import toroid
from sybil import Document, Example, Sybil
from sybil.parsers.myst import CodeBlockParser
from toroid.options import Options

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LANGUAGES = ("python", "text", "sh", "c")


# ------------------------------------------------------------------ blocks of code


def run_python(example: Example) -> None:
    """Run a block in the namespace of its page and keep what it prints."""
    out = io.StringIO()
    # Lines of the block in tracebacks are those of the page.
    code = "\n" * (example.line + example.parsed.line_offset) + example.parsed
    with contextlib.redirect_stdout(out):
        exec(compile(code, example.path, "exec"), example.namespace)
    example.namespace["printed"] = out.getvalue()


#: What differs between machines and runs: kernels, shares, times, sizes, counts that are not 0.
VARYING = [
    (re.compile(r"\btor_\w+"), "KERNEL"),
    (re.compile(r"\d+%|\d[\d,]*\.\d+(e-?\d+)?|\b[1-9][\d,]*\b"), "N"),
    (re.compile(r"N%"), "N"),
    (re.compile(r"N ([KMG]i)?B\b"), "N bytes"),
    (re.compile(r"\s+"), " "),
]


def masked(text: str) -> list[str]:
    for pattern, word in VARYING[:-1]:
        text = pattern.sub(word, text)
    return [VARYING[-1][0].sub(" ", line).strip() for line in text.strip().splitlines()]


def compare_output(example: Example) -> None:
    """A block of text is what the code before it printed; `...` stands for lines left out."""
    shown, printed = masked(example.parsed), masked(example.namespace.pop("printed"))
    if "..." in shown:
        missing = [line for line in shown if line not in [*printed, "..."]]
        assert not missing, "\n".join([*missing, "is not in", *printed])
    else:
        assert shown == printed


def check_shell(example: Example) -> None:
    """Targets of make, scripts and their options exist; running them is other tests' work."""
    makefile = (ROOT / "Makefile").read_text()
    for line in example.parsed.splitlines():
        words = shlex.split(line, comments=True)
        if "make" in words:
            for target in words[words.index("make") + 1 :]:
                assert "=" in target or re.search(rf"^{target}:", makefile, re.M), line
        scripts = [word for word in words if re.fullmatch(r"\w+/[\w/]+\.(py|sh)", word)]
        for script in scripts:
            source = (ROOT / script).read_text()
            for option in re.findall(r" (--[a-z-]+)", line.partition(script)[2]):
                assert f'"{option}"' in source, f"{script} has no {option}"


def find_c(example: Example) -> None:
    """C on a page is part of a program that a test builds and runs."""
    sources = sorted((ROOT / "examples").glob("*/*.c"))
    program = " ".join(word for source in sources for word in source.read_text().split())
    for part in example.parsed.strip().split("\n\n"):
        assert " ".join(part.split()) in program, part


EVALUATORS = dict(zip(LANGUAGES, (run_python, compare_output, check_shell, find_c), strict=True))
sybil = Sybil([CodeBlockParser(language, run) for language, run in EVALUATORS.items()])


def read(page: Path) -> Document:
    return sybil.parse(page)


@pytest.fixture
def without_other_tests_backends(monkeypatch):
    """Names stay registered as long as the process, which may have run other files before."""
    everything = toroid.backends.list
    before = set(everything(None)) - {"toroid", "toroid_debug", "toroid_reference"}
    monkeypatch.setattr(
        toroid.backends, "list", lambda *a, **k: [n for n in everything(*a, **k) if n not in before]
    )


@pytest.mark.usefixtures("without_other_tests_backends")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("TOROID_CACHE_DIR", "TOROID_CACHE_SIZE"):
        monkeypatch.setenv(name, "")  # so that what the page sets is undone
        monkeypatch.delenv(name)
    document = read(page)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    document.namespace.update(torch=torch, toroid=toroid, model=model.eval(), x=torch.randn(8, 64))
    for example in document.examples():
        example.evaluate()


def test_no_block_goes_unchecked():
    """A block without a language is a drawing or a grammar."""
    fence = re.compile(r"^ *```(\S*)", re.M)
    for page in PAGES:
        for language in fence.findall(page.read_text())[::2]:
            assert language in ("", *LANGUAGES) or language.startswith("{"), f"{page}: {language}"


def test_masks():
    row = "0.457   2.2%    12  2.5 GB/s  float32[2, 10]  linear  tor_gemm_f32__avx2_4x24"
    other = "11.2  33.0%     6  10.5 GB/s  float32[2, 10]  linear  tor_gemm_f32__avx512_8x48"
    assert masked(row) == masked(other)
    assert masked("0 external nodes") != masked("2 external nodes")
    assert masked("weights 41.1 MiB") == masked("weights 940 B") != masked("weights 0 B")


# ------------------------------------------------------------------ tables


def first_column(page: Path) -> list[str]:
    """Names in the first column of a page's tables."""
    rows = re.findall(r"^\| (`.*?) \|", page.read_text(), re.M)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_options_are_listed():
    page = DOCS / "reference" / "options.md"
    assert first_column(page) == [field.name for field in dataclasses.fields(Options)]
    for field in dataclasses.fields(Options):
        assert f"| `{field.name}` | `{field.default}` |" in page.read_text()


def test_environment_is_listed():
    sources = [path for name in ("src", "providers") for path in (ROOT / name).rglob("*.c")]
    sources += (ROOT / "python").rglob("*.py")
    text = "".join(path.read_text() for path in sources)
    calls = r"getenv\(|open_library\(host, |environ\.get\(|environ\["
    used = re.findall(rf'(?:{calls})"((?:TOROID|DNNL)_\w+)"', text)
    settings = (ROOT / "src" / "tune" / "settings.c").read_text()
    used += [f"TOROID_TUNABLEOP_{name}" for name in re.findall(r"\bSETTING\(([A-Z_]+),", settings)]
    assert set(first_column(DOCS / "reference" / "environment.md")) == set(used)


def test_links():
    """Targets inside the repository exist; `make docs` looks at the headings too."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_pages_are_in_the_table_of_contents():
    listed = set()
    for index in DOCS.rglob("index.md"):
        entries = re.findall(r"^```\{toctree\}\n(.*?)^```", index.read_text(), re.M | re.S)
        names = [n for block in entries for n in block.split("\n") if n and n[0] != ":"]
        listed |= {(index.parent / f"{name}.md").resolve() for name in names}
    assert listed == {page for page in DOCS.rglob("*.md") if page != DOCS / "index.md"}


# ------------------------------------------------------------------ headers and docstrings


def test_public_headers_are_documented():
    for header in (ROOT / "include" / "toroid").glob("*.h"):
        lines = header.read_text().splitlines()
        for above, line in zip(lines, lines[1:], strict=False):
            if line.startswith(("TOROID_API", "static inline", "typedef")):
                assert above.startswith("///"), f"{header.name}: {line}"


def test_public_functions_are_documented():
    for name in toroid.__all__:
        thing = getattr(toroid, name)
        assert isinstance(thing, str) or thing.__doc__
