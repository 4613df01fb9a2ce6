"""Plugins in C, built against the installed headers: found, loaded once, or refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from c_library import CC, ROOT, install, run

EXAMPLE = ROOT / "examples" / "plugin"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The example, built by its Makefile, and the environment to run it in."""
    installed = install(tmp_path_factory.mktemp("install"))
    folder = tmp_path_factory.mktemp("plugin")
    for file in EXAMPLE.iterdir():
        shutil.copy(file, folder)
    run("make", "-C", folder, env=installed.environment)
    return folder, installed


@pytest.fixture
def folder(tmp_path):
    """Where the plugins of one test are."""
    place = tmp_path / "plugins"
    place.mkdir(mode=0o755)
    return place


def use(built, path, name="printing", **environment):
    """Run the example's program: its exit code, its lines, its complaint."""
    program, installed = built
    done = subprocess.run(
        [program / "use", name],
        capture_output=True,
        text=True,
        timeout=60,
        env={**installed.environment, "TOROID_BACKEND_PATH": str(path), **environment},
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout.splitlines(), done.stderr.strip()


def refusal(built, path, name="printing", **environment):
    code, _, complaint = use(built, path, name, **environment)
    assert code == 1
    return complaint


def build(built, folder, source, name="made", flags=()):
    """A plugin of the given source; `flags` come before those of the installed headers."""
    file = folder / f"{name}.c"
    file.write_text('#include "toroid/backend.h"\n' + source)
    target = folder / f"toroid_backend_{name}.so"
    run(CC, "-std=c99", "-Wall", *flags, *built[1].cflags, "-fPIC", "-shared", file, "-o", target)
    return target


COMPILE = """
static ToroidStatus compile(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    (void)user;
    %s
}
"""
DELEGATE = COMPILE % "return host->compile(out, graph, options);"
PLAIN = """
TOROID_API const ToroidBackend toroid_backend = {
    sizeof(ToroidBackend), TOROID_BACKEND_ABI, "made", compile, 0, 0, 0};
"""


def copy_example(built, folder, name="printing"):
    target = folder / f"toroid_backend_{name}.so"
    shutil.copy(built[0] / "toroid_backend_printing.so", target)
    target.chmod(0o755)
    return target


def test_the_example(built):
    code, lines, complaint = use(built, built[0])
    assert (code, complaint) == (0, "")
    assert lines[0] == "printing speedy toroid"
    assert lines[1] == "printing: a graph"
    assert any("relu" in line for line in lines[2:-1])
    assert lines[-1] == "printing: 0 2 0 4"
    assert len((EXAMPLE / "Makefile").read_text().splitlines()) <= 12


def test_a_built_in_backend_needs_no_plugin(built):
    code, lines, _ = use(built, "", "toroid")
    assert code == 0 and lines == ["toroid", "toroid: 0 2 0 4"]


def test_listing_loads_nothing(built, folder):
    (folder / "toroid_backend_of-text.so").write_text("no shared object")
    (folder / "toroid_backend_.so").touch()
    (folder / "toroid_backend_a b.so").touch()
    (folder / "libtoroid_backend_x.so").touch()
    code, lines, _ = use(built, folder, "toroid")
    assert code == 0 and lines[0] == "of-text toroid"


def test_the_first_folder_wins(built, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    (other / "toroid_backend_printing.so").write_text("no shared object")
    copy_example(built, folder)
    code, lines, _ = use(built, f"{folder}:{other}")
    assert code == 0 and lines[0] == "printing toroid"
    assert "it is cut" in refusal(built, f"{other}::{folder}")


def test_closest_names_include_plugins(built, folder):
    copy_example(built, folder)
    assert 'did you mean "printing"' in refusal(built, folder, "prnting")


def test_a_failing_hook(built):
    complaint = refusal(built, built[0], PRINTING_FAILS="1")
    assert complaint == 'backend "printing": PRINTING_FAILS is set'


# ------------------------------------------------------------------ folders and files


def test_a_relative_path(built):
    complaint = refusal(built, "plugins")
    assert complaint.startswith('there is no backend "printing"')
    assert complaint.endswith("not searched; plugins: it is no absolute path")


def test_a_missing_folder(built, folder):
    assert "No such file or directory" in refusal(built, folder / "nowhere")
    (folder / "file").touch()
    assert "it is no folder" in refusal(built, folder / "file")


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_folder_that_others_can_write(built, folder, mode):
    copy_example(built, folder)
    folder.chmod(mode)
    assert f"others can write it (mode {mode:o})" in refusal(built, folder)
    assert use(built, folder, "toroid")[1][0] == "toroid"  # not listed either


@pytest.mark.parametrize("mode", [0o775, 0o646])
def test_a_file_that_others_can_write(built, folder, mode):
    file = copy_example(built, folder)
    file.chmod(mode)
    assert refusal(built, folder) == f"plugin {file}: others can write it (mode {mode:o})"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_another_owner(built, folder, which):
    file = copy_example(built, folder)
    os.chown(file if which == "file" else folder, 12345, -1)
    assert "it belongs to user 12345, expected root or user 0" in refusal(built, folder)


def test_links_and_folders(built, folder):
    (folder / "toroid_backend_printing.so").symlink_to(built[0] / "toroid_backend_printing.so")
    assert "it is a link" in refusal(built, folder)
    (folder / "toroid_backend_folder.so").mkdir(mode=0o755)
    assert "it is no regular file" in refusal(built, folder, "folder")
    os.mkfifo(folder / "toroid_backend_pipe.so", 0o644)
    assert "it is no regular file" in refusal(built, folder, "pipe")


# ------------------------------------------------------------------ shared objects


def test_truncated_objects(built, folder):
    file = copy_example(built, folder)
    whole = file.read_bytes()
    for bytes_left in (0, 10, 63, 64, 100, len(whole) // 4, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:bytes_left])
        assert f"it is cut: {bytes_left} of at least " in refusal(built, folder)


def test_no_shared_object(built, folder):
    (folder / "toroid_backend_text.so").write_text("no shared object" * 100)
    assert "it is no shared object of this machine" in refusal(built, folder, "text")
    shutil.copy(built[0] / "use", folder / "toroid_backend_use.so")
    assert "dynamically load" in refusal(built, folder, "use")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("int other;", "it has no symbol toroid_backend"),
        (
            "TOROID_API void toroid_backend(void) {}",
            "its symbol toroid_backend is no ToroidBackend",
        ),
        ("TOROID_API const int toroid_backend = 7;", "the symbol has 4 bytes"),
        (
            DELEGATE + PLAIN.replace("TOROID_BACKEND_ABI", "7"),
            "ToroidBackend.abi is 7; this Toroid has backends of ABI 1",
        ),
        (
            DELEGATE + PLAIN.replace("sizeof(ToroidBackend)", "16"),
            "ToroidBackend.struct_bytes is 16, expected sizeof(ToroidBackend)",
        ),
        (
            DELEGATE + PLAIN.replace("sizeof(ToroidBackend)", "1000"),
            "ToroidBackend.struct_bytes is 1000, the symbol has",
        ),
        (DELEGATE + PLAIN.replace('"made"', '"other"'), 'its backend is "other", expected "made"'),
        (PLAIN.replace("compile", "0"), 'backend "made": compile is NULL'),
        (
            "extern int nowhere;\nint *get = &nowhere;" + DELEGATE + PLAIN,
            "undefined symbol: nowhere",
        ),
    ],
)
def test_wrong_objects(built, folder, source, complaint):
    file = build(built, folder, source)
    got = refusal(built, folder, "made")
    assert got.startswith(f"plugin {file}: ") and complaint in got


def test_structs_that_grew(built, folder):
    # The next version's header, and one from before the optional fields.
    longer = """
static const struct { ToroidBackend known; void *unknown[9]; } longer;
typedef struct { ToroidBackend known; const void *unknown[9]; } Longer;
TOROID_API const Longer toroid_backend = {
    {sizeof(Longer), TOROID_BACKEND_ABI, "made", compile, 0, 0, 0}, {&longer}};
"""
    shorter = """
typedef struct { size_t bytes; int abi; const char *name; void *compile; } Shorter;
TOROID_API const Shorter toroid_backend = {sizeof(Shorter), TOROID_BACKEND_ABI, "made", compile};
"""
    for source in (longer, shorter):
        build(built, folder, DELEGATE + source)
        assert use(built, folder, "made")[1][-1] == "made: 0 2 0 4"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            'return host->set_error(TOROID_UNSUPPORTED, "no relu");',
            'backend "made": no relu',
        ),
        ("return TOROID_FAILED;", "its compile function gave no reason: failed"),
        ("return TOROID_OK;", "its compile function made no executable"),
        (
            """
    ToroidGraph *g;
    ToroidSize size = 4;
    ToroidValue *x[2];
    host->graph_create(&g);
    host->graph_input(g, "x", TOROID_FLOAT32, 1, &size, 0, x);
    x[1] = x[0];
    host->graph_outputs(g, x, 2);
    return host->compile(out, &g, options);""",
            "it made an executable with 2 outputs, expected 1",
        ),
    ],
)
def test_wrong_results(built, folder, body, complaint):
    build(built, folder, COMPILE % body + PLAIN)
    assert complaint in refusal(built, folder, "made")


# ------------------------------------------------------------------ passes of a plugin


SPEEDY = """
import torch, toroid

def f(x):
    return torch.log(torch.softmax(x, 1)), torch.relu(torch.relu(x)).t()

x = torch.tensor([[0.0, 200.0], [1.0, 1.0]])
rows = [x, torch.cat([x, x]), torch.cat([x, x, x])]
with torch.no_grad():
    compiled = torch.compile(f, backend=toroid.backends.get("speedy"), dynamic=None)
    for x in rows:
        got, want = compiled(x), (torch.log_softmax(x, 1), torch.relu(x).t())
        torch.testing.assert_close(got, want)
        assert [g.stride() for g in got] == [w.stride() for w in want]
y = torch.tensor([[-1.0, 2.0], [3.0, -4.0]], requires_grad=True)
torch.compile(f, backend=toroid.compose("speedy", "toroid"))(y)[1].sum().backward()
assert torch.equal(y.grad, (y > 0).float())
"""


def test_the_example_with_passes(built):
    """Under torch.compile, where strides are promised and sizes may be open."""
    environment = {**os.environ, "TOROID_BACKEND_PATH": str(built[0])}
    lines = run(sys.executable, "-c", SPEEDY, env=environment).splitlines()
    assert lines[:2] == ["speedy: 2 changes"] * 2  # one shape, then any
    assert use(built, built[0], "speedy")[1][-2:] == ["speedy: 0 changes", "speedy: 0 2 0 4"]


def test_a_host_that_grew(built, folder):
    """A plugin that was built against a header whose ToroidHost ended earlier."""
    header = (built[1].prefix / "include" / "toroid" / "backend.h").read_text()
    start, end = header.index("    // See toroid/rewrite.h."), header.index("} ToroidHost;")
    older = folder / "toroid"
    older.mkdir()
    (older / "backend.h").write_text(header[:start] + header[end:])
    body = """
    if (host->struct_bytes <= sizeof *host) return host->set_error(TOROID_FAILED, "no longer");
    return host->compile(out, graph, options);"""
    source = COMPILE % body + PLAIN
    build(built, folder, source, flags=[f"-I{folder}"])
    assert use(built, folder, "made")[1][-1] == "made: 0 2 0 4"
