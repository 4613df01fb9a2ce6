"""Other libraries' products: Debian's OpenBLAS, BLIS and oneDNN, and plugins that are not right.

`make setup` installs the libraries. Each test runs in processes of its own, since what a process
has loaded stays.
"""

from __future__ import annotations

import json
import subprocess

import pytest
import toroid
from plugins import shared
from tune_run import PROGRAM, RESULTS, environment, python, rows
from tune_run import toroid as program

FOLDER = toroid.tunable.provider_folder()

#: Provider, the variable and the soname that it takes, and how its version begins.
LIBRARIES = {
    "openblas": ("cblas", "TOROID_CBLAS", ("libopenblas.so.0",), "OpenBLAS 0."),
    "blis": ("cblas", "TOROID_CBLAS", ("libblis.so.4",), "BLIS "),
    "onednn": ("onednn", "TOROID_ONEDNN", ("libdnnl.so.3", "libdnnl.so.2"), "oneDNN "),
}


def sonames():
    lines = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in lines.stdout.splitlines()[1:]}


@pytest.fixture(params=LIBRARIES)
def library(request):
    """Variables that ask for a library, the name of its provider and how its version begins."""
    provider, variable, names, version = LIBRARIES[request.param]
    there = [name for name in names if name in sonames()]
    assert there, f"none of {names} is installed; make setup installs it"
    variables = {"TOROID_BACKEND_PATH": FOLDER, "PROVIDERS": provider, variable: there[0]}
    return variables, provider, version


#: Products whose right side is in strides: rows and columns, batches, broadcast, bias, epilogues.
MODEL = """
import torch, toroid, sys
torch.manual_seed(0)
def f(a, b, c, w, bias):
    scores = torch.relu(a @ b.transpose(-1, -2) * 0.125)
    linear = torch.nn.functional.gelu(torch.nn.functional.linear(c, w, bias))
    return scores @ b, linear, torch.relu(c.t() @ linear) + 1, a[0, 0] @ w.t(), c[:1] @ c.t()
x = (torch.randn(2, 3, 40, 64), torch.randn(2, 1, 24, 64), torch.randn(300, 64),
     torch.randn(100, 64), torch.randn(100))
with torch.no_grad():
    want = f(*x)
    compiled = torch.compile(f, backend="toroid", options={"freeze": False})
    for threads in (1, 2):
        torch.set_num_threads(threads)
        got = compiled(*x)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
        assert [g.stride() for g in got] == [w.stride() for w in want]
        if threads == 1:
            alone = got
assert torch.get_num_threads() == 2  # the library's threads are not PyTorch's
"""
SAME = "assert all(torch.equal(a, g) for a, g in zip(alone, got))"
STEPS = "print(toroid.explain(f, *x, options={'freeze': False}).steps())"


def record_products(folder):
    """The operators of the model whose right side is in strides."""
    python(folder, MODEL, RECORD_UNTUNED=1, UNTUNED_FILENAME="all.csv")
    found = [row for row in rows(folder / "all.csv") if ";packed=0;" in row]
    assert len(found) >= 10
    return found


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    return record_products(tmp_path_factory.mktemp("products"))


def write_results(folder, solutions, **variables):
    """A file of results with the validators that hold under these variables."""
    source = "from toroid import tunable; import json; print(json.dumps(tunable.get_validators()))"
    validators = json.loads(python(folder, source, **variables))
    head = [f"Validator,{key},{value}" for key, value in validators]
    (folder / RESULTS).write_text("\n".join([*head, *solutions]) + "\n")
    return dict(validators)


def test_answers_are_eagers(tmp_path, library, products):
    """With every product by the library, whole or in blocks, by one thread and by two."""
    variables, provider, _ = library
    half = len(products) // 2  # those of one thread come first
    blocks = ["" if i % half % 2 else ";mc=24;nc=32" for i in range(2 * half)]
    solutions = [f"{r},provider:{provider}{b}" for r, b in zip(products, blocks, strict=True)]
    write_results(tmp_path, solutions, **variables)
    said = python(tmp_path, MODEL + SAME + "\n" + STEPS, ENABLED=1, TUNING=0, **variables)
    assert "warning" not in said
    assert said.count(f"provider:{provider}") == half


def test_the_version_is_a_validator(tmp_path, library, products):
    variables, provider, version = library
    key = f"PROVIDER_{provider.upper()}"
    assert write_results(tmp_path, [f"{products[0]},Default"], **variables)[key].startswith(version)
    file = tmp_path / RESULTS
    file.write_text(file.read_text().replace(f"{key},{version}", f"{key},{version}9"))
    use = "from toroid import tunable; print(tunable.read_file())"
    said = python(tmp_path, use, TUNING=0, **variables)
    assert "False" in said and f'{key} is "{version}9' in said
    # Without the provider, a result of it is worth nothing either.
    assert f"its validator {key} is not known here" in python(tmp_path, use, TUNING=0)


def test_tuning_offers_it(tmp_path, library, products):
    variables, provider, version = library
    (tmp_path / "list.csv").write_text("\n".join(products) + "\n")
    said = program(tmp_path, "tune", "list.csv", **variables)
    assert "rejected" not in said and f"{len(products)} tuned" in said
    text = (tmp_path / RESULTS).read_text()
    assert f"Validator,PROVIDER_{provider.upper()},{version}" in text
    # Operators of two threads, in workers that have been forked with the library loaded.
    (tmp_path / RESULTS).unlink()
    said = program(tmp_path, "tune", "--workers", "1", "list.csv", **variables)
    assert f"{len(products)} tuned" in said


def test_nothing_is_loaded_unless_asked_for(tmp_path):
    source = """
from toroid import tunable
def loaded():
    return any("toroid_provider" in line for line in open("/proc/self/maps"))
validators = tunable.get_validators()
assert not loaded() and not any(key.startswith("PROVIDER") for key, _ in validators)
tunable.set_providers(["cblas"])
assert tunable.get_providers() == ("cblas",) and not loaded()
assert dict(tunable.get_validators())["PROVIDER_CBLAS"] and loaded()
tunable.set_providers([])
assert tunable.get_providers() == () and tunable.get_validators() == validators
"""
    variables = {"TOROID_BACKEND_PATH": FOLDER, "TOROID_CBLAS": "libopenblas.so.0"}
    assert python(tmp_path, source, **variables) == ""


# ------------------------------------------------------------------ what cannot be had


def validators(folder, provider, **variables):
    """What asking for a provider says, with its validator if there is one."""
    source = "from toroid import tunable; print(dict(tunable.get_validators()))"
    return python(
        folder, source, **{"TOROID_BACKEND_PATH": FOLDER, "PROVIDERS": provider, **variables}
    )


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "TOROID_CBLAS names no library; expected a path, or a soname as libopenblas.so.0"),
        ("lib/libblas.so", "lib/libblas.so is neither an absolute path nor a soname"),
        ("libnothing.so.7", "TOROID_CBLAS: libnothing.so.7: cannot open shared object file"),
        ("libm.so.6", "TOROID_CBLAS: libm.so.6 has no cblas_sgemm"),
    ],
)
def test_no_library(tmp_path, name, complaint):
    said = validators(tmp_path, "cblas", TOROID_CBLAS=name)
    assert said.count("provider cblas is left out: ") == 1 and complaint in said
    assert "PROVIDER_CBLAS" not in said


BLAS = """
void cblas_sgemm(void) {}
const char *openblas_get_config(void) { return "OpenBLAS 9.9 %s"; }
int openblas_get_parallel(void) { return %d; }
void openblas_set_num_threads(int threads) { (void)threads; }
"""


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (BLAS % ("USE64BITINT", 1), "OpenBLAS 9.9 USE64BITINT has 64-bit integers, expected 32"),
        (BLAS % ("SINGLE_THREADED", 0), "was made without threads: calls from several threads"),
        (
            """
void cblas_sgemm(void) {}
const char *bli_info_get_version_str(void) { return "9.9"; }
long bli_info_get_blas_int_type_size(void) { return 64; }
void bli_thread_set_num_threads(long threads) { (void)threads; }
""",
            "BLIS 9.9 has 64-bit integers, expected 32",
        ),
    ],
)
def test_libraries_that_would_not_do(tmp_path, source, complaint):
    library = shared(tmp_path / "libblas.so", source)
    said = validators(tmp_path, "cblas", TOROID_CBLAS=library)
    assert complaint in said and "PROVIDER_CBLAS" not in said


def test_a_onednn_with_threads_of_its_own(tmp_path):
    source = """
void dnnl_sgemm(void) {}
static const struct { int v[3]; const char *hash; unsigned cpu, gpu; } version = {
    {9, 8, 7}, "abc", 4, 0};
const void *dnnl_version(void) { return &version; }
"""
    library = shared(tmp_path / "libdnnl.so", source)
    said = validators(tmp_path, "onednn", TOROID_ONEDNN=library)
    assert "oneDNN 9.8.7 abc cannot be held to one thread: its runtime is 4" in said


def test_any_other_cblas(tmp_path, products):
    """A library that nobody knows, by its path."""
    source = """
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += (ta == 112 ? a[p * lda + i] : a[i * lda + p]) *
                       (tb == 112 ? b[j * ldb + p] : b[p * ldb + j]);
            c[i * ldc + j] = order == 101 && beta == 0 ? alpha * sum : 0;
        }
}
"""
    library = shared(tmp_path / "libmine.so", source)
    variables = {"TOROID_BACKEND_PATH": FOLDER, "PROVIDERS": "cblas", "TOROID_CBLAS": library}
    held = write_results(tmp_path, [f"{row},provider:cblas" for row in products], **variables)
    assert held["PROVIDER_CBLAS"] == str(library)
    assert python(tmp_path, MODEL + SAME, ENABLED=1, TUNING=0, **variables) == ""


# ------------------------------------------------------------------ plugins

HEAD = """
#include "toroid/provider.h"
static ToroidStatus gemm(const ToroidProviderHost *host, void *user, const ToroidProduct *p) {
    BODY
}
"""
WORKS = "(void)host; (void)user; (void)p; return TOROID_OK;"
FAILS = 'return host->set_error(TOROID_FAILED, "no such shape");'
PLAIN = """
TOROID_API const ToroidProvider toroid_provider = {
    sizeof(ToroidProvider), TOROID_PROVIDER_ABI, "made", gemm, 0, 0, 0};
"""


@pytest.fixture
def folder(tmp_path):
    """Where the plugins of one test are."""
    place = tmp_path / "plugins"
    place.mkdir(mode=0o755)
    return place


def build(folder, tail=PLAIN, body=WORKS):
    return shared(folder / "toroid_provider_made.so", HEAD.replace("BODY", body) + tail)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("int other;", "it has no symbol toroid_provider"),
        ("TOROID_API const int toroid_provider = 7;", "the symbol has 4 bytes"),
        ("TOROID_API void toroid_provider(void) {}", "toroid_provider is no ToroidProvider"),
        (
            PLAIN.replace("TOROID_PROVIDER_ABI", "7"),
            "ToroidProvider.abi is 7; this Toroid has providers of ABI 1",
        ),
        (
            PLAIN.replace("sizeof(ToroidProvider)", "16"),
            "ToroidProvider.struct_bytes is 16, expected sizeof(ToroidProvider)",
        ),
        (
            PLAIN.replace("sizeof(ToroidProvider)", "1000"),
            "ToroidProvider.struct_bytes is 1000, the symbol has",
        ),
        (PLAIN.replace('"made"', '"other"'), 'its provider is "other", expected "made"'),
        (PLAIN.replace("gemm", "0"), 'provider "made": gemm_f32 is NULL'),
    ],
)
def test_wrong_plugins(tmp_path, folder, source, complaint):
    file = build(folder, source)
    said = validators(tmp_path, "made", TOROID_BACKEND_PATH=folder)
    assert f"provider made is left out: plugin {file}: " in said and complaint in said
    assert "PROVIDER_MADE" not in said


def test_what_others_can_write(tmp_path, folder):
    file = build(folder)
    assert "'PROVIDER_MADE': ''" in validators(tmp_path, "made", TOROID_BACKEND_PATH=folder)
    file.chmod(0o757)
    assert "others can write it" in validators(tmp_path, "made", TOROID_BACKEND_PATH=folder)
    file.chmod(0o755)
    folder.chmod(0o775)
    said = validators(tmp_path, "made", TOROID_BACKEND_PATH=folder)
    assert "no folder of TOROID_BACKEND_PATH has toroid_provider_made.so" in said
    assert f"{folder}: others can write it" in said


def test_a_wrong_name_is_answered_with_the_closest(tmp_path):
    said = validators(tmp_path, "cbals,onednn", TOROID_ONEDNN="libnothing.so")
    assert 'toroid_provider_cbals.so; did you mean "cblas"?' in said
    assert "provider onednn is left out" in said


def test_structs_that_grew(tmp_path, folder):
    """The next version's header, and one that ends after what is needed."""
    longer = """
typedef struct { ToroidProvider known; const void *unknown[9]; } Longer;
TOROID_API const Longer toroid_provider = {
    {sizeof(Longer), TOROID_PROVIDER_ABI, "made", gemm, 0, 0, 0}, {&toroid_provider}};
"""
    shorter = """
typedef struct { size_t bytes; int abi; const char *name; void *gemm; } Shorter;
TOROID_API const Shorter toroid_provider = {sizeof(Shorter), TOROID_PROVIDER_ABI, "made", gemm};
"""
    for source in (longer, shorter):
        build(folder, source)
        assert "'PROVIDER_MADE': ''" in validators(tmp_path, "made", TOROID_BACKEND_PATH=folder)


@pytest.mark.parametrize(("body", "reason"), [(FAILS, "no such shape"), (WORKS, "operand")])
def test_a_plugin_that_fails_or_lies_is_reported_and_skipped(
    tmp_path, folder, products, body, reason
):
    """Of one that writes nothing, the numeric check tells."""
    build(folder, body=body)
    variables = {"TOROID_BACKEND_PATH": folder, "PROVIDERS": "made"}
    (tmp_path / "list.csv").write_text("\n".join(products) + "\n")
    done = subprocess.run(
        [PROGRAM, "tune", "list.csv"],
        cwd=tmp_path,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and f"{len(products)} tuned" in done.stdout
    assert f"tuning gemm_f32: provider:made is rejected: {reason}" in done.stderr
    assert not any("provider:" in row for row in rows(tmp_path / RESULTS))


def test_a_plugin_that_fails_in_a_run(tmp_path, folder, products):
    """The answer is right all the same, with one warning."""
    build(folder, body=FAILS)
    variables = {"TOROID_BACKEND_PATH": folder, "PROVIDERS": "made"}
    write_results(tmp_path, [f"{row},provider:made" for row in products], **variables)
    said = python(tmp_path, MODEL, ENABLED=1, TUNING=0, **variables)
    want = "provider made failed: no such shape; Toroid's own kernels take over"
    assert said.strip() == f"toroid: warning: {want}"
