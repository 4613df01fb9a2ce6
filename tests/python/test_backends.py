"""Backends by name in Python: the table in C, plugins under torch.compile, PyTorch's traps."""

from __future__ import annotations

import importlib.metadata
import sys
import threading

import pytest
import torch
import toroid
from c_library import run
from plugins import FAIL, REFUSE, environment
from support import assert_same
from torch._dynamo.exc import BackendCompilerFailed
from toroid import backend as backend_module
from toroid import backends
from toroid.report import listen

GROUP = "torch_dynamo_backends"
BUILT_IN = ["toroid", "toroid_debug", "toroid_reference"]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def f(x):
    return torch.relu(x) * 2 + 1


X = torch.tensor([[-1.0, 2.0], [3.0, -4.0]])


# ------------------------------------------------------------------ names


def test_list():
    """In a process of its own: nothing is ever removed from the table."""
    lists = "list(), b.list(exclude_tags=()), b.list(exclude_tags=None), b.list(['experimental'])"
    code = f"import toroid; b = toroid.backends; print(b.{lists}, sep='\\n')"
    assert run(sys.executable, "-c", code).splitlines() == [
        "['toroid']",
        *[str(BUILT_IN)] * 3,
    ]


def test_closest_names():
    with pytest.raises(ValueError, match='no backend "toriod"; did you mean "toroid"'):
        backends.get("toriod")
    with pytest.raises(
        ValueError, match='known are .*"toroid", "toroid_debug", "toroid_reference"'
    ):
        backends.get("x" * 60)
    with pytest.raises(TypeError):
        backends.get(3)


def test_listing_needs_no_pytorch():
    code = "import toroid, sys; print(toroid.backends.list()); print('torch' in sys.modules)"
    assert run(sys.executable, "-c", code).split("\n")[:2] == ["['toroid']", "False"]


def test_same_objects():
    assert backends.get("toroid") is backend_module.toroid
    assert backends.get("toroid_debug") is backend_module.toroid_debug
    assert backends.get("toroid_reference") is backend_module.toroid_reference


# ------------------------------------------------------------------ PyTorch's traps


@pytest.mark.parametrize("name", BUILT_IN)
def test_entry_points(name):
    assert name in torch._dynamo.list_backends(exclude_tags=())
    assert torch._dynamo.lookup_backend(name) is backends.get(name)
    # PyTorch writes tags on it, and asks for the hook.
    backends.get(name)._tags = backends.get(name)._tags
    assert backends.get(name)._dynamo_backend_init() is None


@pytest.mark.parametrize("name", BUILT_IN)
def test_first_lookup_in_a_process(name):
    """A decorated function would be registered twice: "duplicate name"."""
    code = (
        "import torch, torch._dynamo, sys\n"
        "from torch._dynamo.backends.registry import list_backends, lookup_backend\n"
        f"assert {name!r} in list_backends(())\n"
        "assert 'toroid' not in sys.modules\n"  # listing loads nothing
        f"f = lookup_backend({name!r})\n"
        f"assert f is lookup_backend({name!r}) and f.__module__ == 'toroid.backend'\n"
        f"assert f is getattr(sys.modules['toroid.backend'], {name!r})\n"
    )
    run(sys.executable, "-c", code)


def test_no_group_that_runs_while_torch_is_imported():
    groups = {e.group for e in importlib.metadata.distribution("toroid").entry_points}
    assert groups == {GROUP}


def test_one_object_means_no_recompiles(plugin):
    name = plugin("stable")
    assert backends.get(name) is backends.get(name)
    with listen() as reports:
        for _ in range(3):
            assert_same(torch.compile(f, backend=backends.get(name))(X), f(X))
    assert len(reports) == 1


def test_options_are_left_as_they_were_and_checked(plugin):
    name = plugin("optioned")
    options = {"threads": 3}
    assert_same(torch.compile(f, backend=backends.get(name), options=options)(X), f(X))
    assert options == {"threads": 3}
    assert environment("optioned_THREADS") == "3"
    with pytest.raises(BackendCompilerFailed, match="'optioned' has no option 'thread'; did you"):
        torch.compile(f, backend=backends.get(name), options={"thread": 3})(X)
    with pytest.raises(BackendCompilerFailed, match="'optioned' has no mode 'reduce-overhead'"):
        torch.compile(f, backend=backends.get(name), mode="reduce-overhead")(X)


def test_reset_leaves_backends_usable(plugin):
    name = plugin("reset")
    for _ in range(2):
        assert_same(torch.compile(f, backend=backends.get(name))(X), f(X))
        torch._dynamo.reset()


# ------------------------------------------------------------------ toroid_debug


def test_debug_prints_the_graph_twice(capfd):
    assert_same(torch.compile(f, backend="toroid_debug")(X), f(X))
    text = capfd.readouterr().out
    before, after = text.split("graph after the passes:")
    assert before.startswith("graph before the passes:")
    assert " relu " in before and " mul " in before and "fused" not in before
    assert "fused" in after and "@[2, 1]" in after


def test_debug_takes_options_and_gradients(capfd):
    g = torch.compile(f, backend="toroid_debug", options={"strict": True})
    x = X.clone().requires_grad_()
    g(x).sum().backward()
    assert_same(x.grad, torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    assert capfd.readouterr().out.count("graph before the passes:") == 2


# ------------------------------------------------------------------ plugins


def test_a_plugin_compiles_forward_and_backward(plugin):
    name = plugin("trained")
    assert name in backends.list()
    model = torch.nn.Linear(2, 3)
    x = X.clone().requires_grad_()
    with listen() as reports:
        torch.compile(model, backend=backends.get(name))(x).square().sum().backward()
    assert {(r.kind, r.backend, r.fallback) for r in reports} == {
        ("forward", name, None),
        ("backward", name, None),
    }
    got = x.grad, model.weight.grad
    model.zero_grad()
    y = X.clone().requires_grad_()
    model(y).square().sum().backward()
    assert_same(got, (y.grad, model.weight.grad))


def check_a_hard_graph(backend):
    """Dynamic shapes, a written input, an external node and a view that is returned."""

    def g(x, y):
        y.add_(1)
        return torch.linalg.svdvals(x).sum() + x.shape[0], x.transpose(0, 1)

    for rows in (3, 5, 7):
        x, y, z = torch.randn(rows, 4), torch.zeros(rows), torch.zeros(rows)
        want = g(x, z)
        assert_same(torch.compile(g, backend=backend, dynamic=True)(x, y), want)
        assert_same(y, z)


def test_a_plugin_with_dynamic_shapes_writes_and_external_nodes(plugin):
    check_a_hard_graph(backends.get(plugin("dynamic")))


def test_tags_are_known_once_it_is_loaded(plugin):
    name = plugin("tagged", tag="debug")
    assert name in backends.list()
    backends.get(name)
    assert name not in backends.list() and name in backends.list(())


def test_a_refusal_leaves_the_graph_to_pytorch(plugin):
    name = plugin("refusing", REFUSE)
    with listen() as reports:
        assert_same(torch.compile(f, backend=backends.get(name))(X), f(X))
    assert [r.fallback for r in reports] == ['backend "refusing": refusing takes nothing']
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="refusing takes nothing"):
        torch.compile(f, backend=backends.get(name), options={"strict": True})(X)


def test_an_error_is_an_error(plugin):
    name = plugin("broken", FAIL)
    with pytest.raises(BackendCompilerFailed, match='backend "broken": broken is broken'):
        torch.compile(f, backend=backends.get(name))(X)


def test_an_executable_of_another_graph_is_refused(plugin):
    """It would not have the strides that PyTorch was promised."""
    body = """
    ToroidGraph *g;
    ToroidSize sizes[] = {2, 2};
    ToroidValue *x;
    host->graph_create(&g);
    host->graph_input(g, "x", TOROID_FLOAT32, 2, sizes, 0, &x);
    host->graph_outputs(g, &x, 1);
    return host->compile(out, &g, options);"""
    name = plugin("other", body)
    with listen() as reports:
        assert_same(torch.compile(f, backend=backends.get(name))(X), f(X))
    assert "an executable of another graph" in reports[0].fallback


# ------------------------------------------------------------------ compositions


def test_a_composition_says_who_took_a_graph(plugin, caplog):
    names = plugin("first", REFUSE), plugin("second", FAIL), plugin("third"), "toroid"
    made = toroid.compose(*names)
    assert made is backends.compose(*names)
    model = torch.nn.Linear(2, 3)
    with listen() as reports, caplog.at_level("INFO", logger="toroid"), torch.no_grad():
        got = torch.compile(model, backend=made, options={"threads": 2})(X)
    assert_same(got, model(X).detach())
    assert [(r.kind, r.backend) for r in reports] == [("inference", "third")]
    assert "graph: compiled by third" in caplog.text
    # Options reach every member.
    assert [environment(f"{n}_THREADS") for n in names[:3]] == ["2", "2", "2"]


def test_explain_says_who_took_a_graph(plugin):
    made = toroid.compose(plugin("explained_not", REFUSE), plugin("explained"))
    found = toroid.explain(f, X, backend=made)
    assert [g.backend for g in found.graphs] == ["explained"]
    assert "inference graph by explained: " in str(found)
    assert "inference graph: " in str(toroid.explain(f, X))


def test_a_composition_goes_on_to_toroid(plugin):
    made = toroid.compose(plugin("refuses_all", REFUSE), "toroid")
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    with listen() as reports:
        torch.compile(f, backend=made, options={"strict": True})(x).sum().backward()
    f(y).sum().backward()
    assert_same(x.grad, y.grad)
    assert [(r.kind, r.backend) for r in reports] == [
        ("forward", "toroid"),
        ("backward", "toroid"),
    ]
    assert reports[0].executable._boxed_call


def test_a_composition_with_dynamic_shapes_writes_and_external_nodes(plugin):
    check_a_hard_graph(toroid.compose(plugin("refuses_dynamic", REFUSE), "toroid"))


def test_a_composition_that_all_refuse(plugin):
    made = toroid.compose(plugin("refuses_1", REFUSE), plugin("refuses_2", REFUSE))
    with listen() as reports:
        assert_same(torch.compile(f, backend=made)(X), f(X))
    assert 'backend "refuses_2": refuses_2 takes nothing' in reports[0].fallback
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed, match="refuses_1 takes nothing"):
        torch.compile(f, backend=made, options={"strict": True})(X)


def test_a_composition_that_fails(plugin):
    made = toroid.compose(plugin("fails_1", FAIL), plugin("fails_2", REFUSE))
    with pytest.raises(BackendCompilerFailed, match="fails_1 is broken; .*fails_2 takes nothing"):
        torch.compile(f, backend=made)(X)


def test_a_composition_forwards_hooks(plugin, monkeypatch):
    made = toroid.compose(plugin("member_1"), plugin("member_2"))
    made._dynamo_backend_init()
    assert environment("member_1_HOOKS") == environment("member_2_HOOKS") == "2"
    monkeypatch.setenv("member_2_FAILS", "1")
    for call in (made._dynamo_backend_init, lambda: toroid.compose("member_1", "member_2")):
        with pytest.raises(RuntimeError, match="member_2 has no device"):
            call()


def test_wrong_compositions():
    with pytest.raises(ValueError, match="at least one name"):
        toroid.compose()
    with pytest.raises(ValueError, match='did you mean "toroid"'):
        toroid.compose("toroid", "torid")
    with pytest.raises(TypeError):
        toroid.compose(3)


# ------------------------------------------------------------------ init hooks


def test_the_hook_runs_when_a_name_is_resolved(plugin):
    name = plugin("hooked")
    made = backends.get(name)
    assert environment("hooked_HOOKS") == "1"
    assert backends.get(name) is made
    assert environment("hooked_HOOKS") == "2"
    made._dynamo_backend_init()
    assert environment("hooked_HOOKS") == "3"


def test_the_hook_runs_at_the_first_call_of_the_backend(plugin):
    """Unless PyTorch has called it before, as versions from 2.15 do."""
    name = plugin("hooked_late")
    made = backends.get(name)
    for size in (2, 3, 4):
        torch.compile(lambda x: x + 1, backend=made, dynamic=False)(torch.ones(size))
    assert environment("hooked_late_HOOKS") == "2"
    early = backends.get(plugin("hooked_early"))
    early._dynamo_backend_init()
    torch.compile(f, backend=early)(X)
    assert environment("hooked_early_HOOKS") == "2"


def test_a_failing_hook(plugin, monkeypatch):
    name = plugin("hook_fails")
    monkeypatch.setenv("hook_fails_FAILS", "1")
    with pytest.raises(RuntimeError, match='backend "hook_fails": hook_fails has no device'):
        backends.get(name)
    monkeypatch.delenv("hook_fails_FAILS")
    made = backends.get(name)
    monkeypatch.setenv("hook_fails_FAILS", "1")
    with pytest.raises(RuntimeError, match="hook_fails has no device"):
        made._dynamo_backend_init()
    with pytest.raises(BackendCompilerFailed, match="hook_fails has no device"):
        torch.compile(f, backend=made)(X)


# ------------------------------------------------------------------ threads, refusals


def test_threads_get_one_object(plugin):
    name = plugin("raced")
    made = []
    threads = [threading.Thread(target=lambda: made.append(backends.get(name))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 16 and len(set(map(id, made))) == 1
    assert environment("raced_HOOKS") == "16"


def test_a_refused_plugin(plugin, tmp_path):
    name = plugin("open_to_all")
    file = tmp_path / "plugins" / f"toroid_backend_{name}.so"
    file.chmod(0o777)
    with pytest.raises(ValueError, match=f"{file}: others can write it"):
        backends.get(name)
    file.chmod(0o755)
    assert_same(torch.compile(f, backend=backends.get(name))(X), f(X))


def test_a_relative_path(monkeypatch):
    monkeypatch.setenv("TOROID_BACKEND_PATH", "plugins")
    with pytest.raises(ValueError, match="not searched; plugins: it is no absolute path"):
        backends.get("anything")


# ------------------------------------------------------------------ more of PyTorch's traps


def test_options_that_pytorch_keeps_to_itself():
    """It takes them out of the user's dict before a backend sees it."""
    options = {"guard_filter_fn": lambda guards: [False] * len(guards), "threads": 1}
    assert_same(torch.compile(f, backend="toroid", options=options)(X), f(X))
    assert options == {"threads": 1}


def test_no_option_is_dropped(caplog):
    """PyTorch ignores options, with a warning, where the backend is an AotAutograd."""
    made = toroid.aot()
    with pytest.raises(BackendCompilerFailed, match="has no option 'thread'"):
        torch.compile(f, backend=made, options={"thread": 3})(X)
    assert_same(torch.compile(f, backend=made, options={"threads": 3})(X), f(X))
    assert "ignoring extra kwargs" not in caplog.text


@pytest.mark.parametrize(
    "backend", ["toroid", toroid.aot(), toroid.aot(lambda gm, _: gm.forward), "toroid_reference"]
)
def test_a_view_of_an_input_shares_its_memory(backend):
    x = torch.randn(3, 4)
    view, other = torch.compile(lambda x: (x.t()[1:], x + 1), backend=backend)(x)
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert view.stride() == x.t()[1:].stride() and view.storage_offset() == 1
    assert other.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_precompilation_is_refused():
    """Compiled graphs cannot be serialised; PyTorch says so."""
    model = torch.compile(torch.nn.Linear(2, 2), backend="toroid", fullgraph=True)
    with torch.no_grad(), pytest.raises(RuntimeError, match="SerializableCallable"):
        model.forward.aot_compile(((X,), {}))


def test_writes_of_inference_graphs_stay_inside():
    """With them as inputs of their own, AOTAutograd would copy once more outside the graph."""

    def g(x):
        x.mul_(2)
        return x + 1

    x, y = X.clone(), X.clone()
    with listen() as reports:
        assert_same(torch.compile(g, backend=toroid.aot())(x), g(y))
    assert_same(x, y)
    assert reports[0].executable.stats()["input_bytes"] == X.nbytes
