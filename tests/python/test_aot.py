"""`toroid.aot` and Python compilers in `toroid.compose`: who gets which graph, and how."""

from __future__ import annotations

import pytest
import torch
import toroid
from plugins import FAIL, REFUSE, environment
from support import assert_same
from torch._dynamo.exc import BackendCompilerFailed
from toroid import backends
from toroid.report import listen

X = torch.tensor([[-1.0, 2.0], [3.0, -4.0]])


def f(x):
    return torch.relu(x) * 2 + 1


class Compiler:
    """Runs graphs as PyTorch does, and notes what it was given."""

    def __init__(self, error=None, boxed=False):
        self.error, self.boxed = error, boxed
        self.graphs, self.hooks, self.resets = [], 0, 0

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        if self.error is not None:
            raise self.error
        if not self.boxed:
            return gm.forward

        def run(inputs):
            result = gm(*inputs)
            inputs.clear()
            return result

        run._boxed_call = True
        return run

    def _dynamo_backend_init(self):
        self.hooks += 1

    def reset(self):
        self.resets += 1


def train(backend, function=f, **options):
    """Compile and differentiate; who took which graph. Checks the answer."""
    torch._dynamo.reset()
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    with listen() as reports:
        got = torch.compile(function, backend=backend, options=options or None)(x)
        got.sum().backward()
    want = function(y)
    want.sum().backward()
    assert_same((got.detach(), x.grad), (want.detach(), y.grad))
    return {r.kind: r.backend for r in reports}


def infer(backend, **options):
    torch._dynamo.reset()
    with listen() as reports:
        assert_same(torch.compile(f, backend=backend, options=options or None)(X), f(X))
    (report,) = reports
    return report


# ------------------------------------------------------------------ who gets which graph


def test_toroid_is_the_default():
    assert train(toroid.aot()) == {"forward": "toroid", "backward": "toroid"}
    assert infer(toroid.aot()).backend == "toroid"


def test_backward_and_inference_default_to_forward():
    compiler = Compiler()
    made = toroid.aot(compiler)
    assert train(made) == {"forward": "Compiler", "backward": "Compiler"}
    assert infer(made).backend == "Compiler"
    assert len(compiler.graphs) == 3


def test_one_compiler_for_each_kind(plugin):
    fw, inference = Compiler(), plugin("only_inference")
    made = toroid.aot(fw=fw, bw="toroid_reference", inference=inference)
    assert train(made) == {"forward": "Compiler", "backward": "toroid_reference"}
    assert infer(made).backend == "only_inference"
    assert len(fw.graphs) == 1
    made = toroid.aot("toroid", fw)
    assert train(made) == {"forward": "toroid", "backward": "Compiler"}
    assert infer(made).backend == "toroid"


def test_compilers_may_be_backends():
    made = toroid.aot(backends.get("toroid"), toroid.compose("toroid_reference"))
    assert train(made) == {"forward": "toroid", "backward": "toroid_reference"}
    again = toroid.compose(toroid.aot(Compiler(NotImplementedError("no")), "toroid"), "toroid")
    assert train(again) == {"forward": "toroid", "backward": "toroid"}


def test_wrong_compilers():
    with pytest.raises(ValueError, match='no backend "toriod"; did you mean "toroid"'):
        toroid.aot("toroid", "toriod")
    with pytest.raises(TypeError, match="expected the name of a backend or a callable, got 3"):
        toroid.aot(3)
    with pytest.raises(TypeError, match="expected the name of a backend or a callable, got None"):
        toroid.compose("toroid", None)
    with pytest.raises(BackendCompilerFailed, match="nothing returned None, expected a callable"):

        def nothing(gm, example_inputs):
            return None

        infer(toroid.aot(nothing))


# ------------------------------------------------------------------ the boxed convention


def test_boxed_callables_take_one_list():
    assert train(toroid.aot(Compiler(boxed=True))).keys() == {"forward", "backward"}


def test_boxed_callables_reach_the_caller_as_they_are(plugin):
    """The list that a boxed callable empties is all that keeps its inputs alive."""
    kept = []

    def compiler(gm, example_inputs):
        def run(inputs):
            kept.append(inputs)
            result = gm(*inputs)
            inputs.clear()
            return result

        run._boxed_call = True
        return run

    refuses = plugin("refuses_boxed", REFUSE)
    for made in (toroid.aot(compiler), toroid.compose(refuses, compiler)):
        assert infer(made).backend.endswith("compiler")
        assert kept.pop() == []


# ------------------------------------------------------------------ refusals and errors


@pytest.mark.parametrize("error", [NotImplementedError("no relu"), toroid.Unsupported("no relu")])
def test_a_refusal_leaves_the_graph_to_pytorch(error):
    report = infer(toroid.aot(Compiler(error)))
    assert report.backend is None and "no relu" in report.fallback


def test_an_error_is_an_error():
    with pytest.raises(BackendCompilerFailed, match="it broke"):
        infer(toroid.aot(Compiler(ValueError("it broke"))))


def test_pytorchs_own_errors_pass():
    """IndexError is the caller's; SkipFrame has the frame run as it is."""
    with pytest.raises(IndexError, match="beyond"):
        infer(toroid.aot(Compiler(IndexError("beyond"))))
    skip = torch._dynamo.exc.SkipFrame("not this one")
    for made in (toroid.aot(Compiler(skip)), toroid.compose(Compiler(skip), "toroid")):
        with listen() as reports:
            assert_same(torch.compile(f, backend=made)(X), f(X))
        assert not reports


# ------------------------------------------------------------------ options


def test_options_reach_the_compilers(plugin):
    seen = []

    def compiler(gm, example_inputs, options=None):
        seen.append(options)
        raise NotImplementedError("not mine")

    plain = Compiler(NotImplementedError("nor mine"))
    made = toroid.compose(compiler, plain, plugin("optioned_third"))
    given = {"threads": 3}
    assert infer(made, **given).backend == "optioned_third"
    assert seen == [{"threads": 3}] and environment("optioned_third_THREADS") == "3"
    assert given == {"threads": 3} and len(plain.graphs) == 1
    infer(made)
    assert seen[1] is None


def test_options_are_checked_where_toroid_takes_part():
    def compiler(gm, example_inputs, **more):
        seen.append(more)
        return gm.forward

    seen = []
    infer(toroid.aot(compiler), level=3)
    assert seen == [{"options": {"level": 3}}]
    with pytest.raises(BackendCompilerFailed, match="has no option 'level'"):
        infer(toroid.aot(compiler, "toroid"), level=3)
    with pytest.raises(BackendCompilerFailed, match="has no mode 'reduce-overhead'"):
        torch.compile(f, backend=toroid.aot(compiler), mode="reduce-overhead")(X)


# ------------------------------------------------------------------ hooks


def test_only_the_forward_compilers_hook_counts(plugin, monkeypatch):
    fw, bw, inference = Compiler(), Compiler(), Compiler()
    made = toroid.aot(fw, bw, inference)
    made._dynamo_backend_init()
    assert (fw.hooks, bw.hooks, inference.hooks) == (1, 0, 0)
    # It has run, so the first call of the backend does not call it again.
    train(made)
    assert fw.hooks == 1

    names = plugin("hook_of_forward"), plugin("hook_of_backward")
    monkeypatch.setenv("hook_of_backward_FAILS", "1")
    made = toroid.aot(*names)
    made._dynamo_backend_init()
    assert train(made) == dict(zip(("forward", "backward"), names, strict=True))
    assert environment("hook_of_forward_HOOKS") == "2"
    assert environment("hook_of_backward_HOOKS") is None
    monkeypatch.setenv("hook_of_forward_FAILS", "1")
    for call in (made._dynamo_backend_init, lambda: toroid.aot(*names)):
        with pytest.raises(RuntimeError, match="hook_of_forward has no device"):
            call()


def test_the_hook_runs_at_the_first_call_without_a_pytorch_that_calls_it():
    compiler = Compiler()
    made = toroid.aot(compiler)
    assert compiler.hooks == 0
    infer(made)
    infer(made)
    assert compiler.hooks == 1


def test_a_composition_forwards_all_hooks(plugin):
    first, second = Compiler(), Compiler()
    made = toroid.compose(first, plugin("composed_hook"), second)
    made._dynamo_backend_init()
    assert (first.hooks, second.hooks) == (1, 1)
    assert environment("composed_hook_HOOKS") == "2"  # once when it was resolved
    whole = toroid.aot(made, "toroid")
    whole._dynamo_backend_init()
    assert (first.hooks, second.hooks) == (2, 2)


def test_reset_is_forwarded():
    compiler = Compiler()
    made = toroid.compose(toroid.aot(compiler), "toroid")
    infer(made)
    before = compiler.resets
    torch._dynamo.reset()
    assert compiler.resets == before + 1


# ------------------------------------------------------------------ partition, decompositions


def saved(**arguments):
    """How many tensors the forward graph keeps for the backward one."""
    counts = []

    def compiler(gm, example_inputs):
        counts.append(len(list(gm.graph.output_node().args[0])))
        return gm.forward

    def chain(x):
        for _ in range(4):
            x = torch.sigmoid(torch.sin(x) * 2).cos()
        return x

    made = toroid.aot(compiler, "toroid", decompositions={}, **arguments)
    train(made, chain)
    return counts[0] - 1


def test_partitions():
    assert saved() == saved(partition="min_cut") < saved(partition="default")
    with pytest.raises(ValueError, match="'min_cut', 'default' or a callable, got 'max_cut'"):
        toroid.aot(partition="max_cut")


def test_a_partition_of_ones_own():
    from torch._functorch.partitioners import default_partition

    calls = []

    def split(joint, inputs, **more):
        calls.append(joint)
        return default_partition(joint, inputs, **more)

    assert train(toroid.aot(partition=split)).keys() == {"forward", "backward"}
    assert len(calls) == 1


def ops(compiler):
    return {str(n.target) for gm in compiler.graphs for n in gm.graph.nodes}


def test_decompositions_are_made_when_needed_and_once():
    calls = []

    def table():
        calls.append(1)
        return {torch.ops.aten.relu.default: lambda x: torch.clamp_min(x, 0)}

    compiler = Compiler()
    made = toroid.aot(compiler, decompositions=table)
    assert not calls
    for _ in range(2):
        infer(made)
    assert len(calls) == 1
    assert "aten.relu.default" not in ops(compiler) and "aten.clamp_min.default" in ops(compiler)


def test_decompositions_may_be_a_table():
    compiler = Compiler()
    table = {torch.ops.aten.relu.default: lambda x: torch.clamp_min(x, 0)}
    infer(toroid.aot(compiler, decompositions=table))
    assert "aten.clamp_min.default" in ops(compiler)
    assert toroid.aot(compiler, decompositions=table) is toroid.aot(compiler, decompositions=table)


def test_without_a_table_known_ops_stay():
    compiler = Compiler()
    infer(toroid.aot(compiler))
    assert "aten.relu.default" in ops(compiler)


# ------------------------------------------------------------------ one object


def test_the_same_arguments_give_the_same_object():
    fw, bw = Compiler(), Compiler()
    made = toroid.aot(fw, bw, partition="default")
    assert made is toroid.aot(fw, bw, partition="default")
    assert made is not toroid.aot(fw, bw)
    assert toroid.compose(fw, "toroid") is toroid.compose(fw, "toroid")
    assert toroid.compose(fw, "toroid") is not toroid.compose("toroid", fw)
    made._tags = ()  # as PyTorch does with a backend that it registers
    with listen() as reports:
        for _ in range(3):
            torch.compile(f, backend=toroid.aot(fw, bw, partition="default"))(X)
    assert len(reports) == 1


def test_bound_methods_are_the_same_if_their_objects_are():
    class Owner:
        def compile(self, gm, example_inputs):
            return gm.forward

    owner = Owner()
    assert toroid.aot(owner.compile) is toroid.aot(owner.compile)


# ------------------------------------------------------------------ compositions


def test_a_composition_of_names_and_callables(plugin, caplog):
    compiler = Compiler(ValueError("it broke"))
    names = plugin("mixed_1", REFUSE), plugin("mixed_2")
    made = toroid.compose(names[0], compiler, names[1])
    with caplog.at_level("INFO", logger="toroid"):
        assert train(made) == {"forward": "mixed_2", "backward": "mixed_2"}
    assert "backward graph: compiled by mixed_2" in caplog.text
    assert len(compiler.graphs) == 2
    assert train(toroid.compose(names[0], Compiler(), names[1])) == {
        "forward": "Compiler",
        "backward": "Compiler",
    }


def test_members_get_graphs_of_their_own():
    def spoil(gm, example_inputs):
        for node in list(gm.graph.nodes)[::-1]:
            gm.graph.erase_node(node)
        raise NotImplementedError("spoilt")

    assert infer(toroid.compose(spoil, "toroid")).backend == "toroid"


def test_a_composition_that_all_refuse():
    first, second = Compiler(NotImplementedError("not 1")), Compiler(toroid.Unsupported("nor 2"))
    report = infer(toroid.compose(first, second))
    assert "not 1" in report.fallback and "nor 2" in report.fallback


def test_a_composition_that_all_refuse_with_strict(plugin):
    made = toroid.compose(Compiler(NotImplementedError("not 1")), plugin("strict_no", REFUSE))
    with pytest.raises(BackendCompilerFailed, match="not 1.*strict_no takes nothing"):
        infer(made, strict=True)


def test_strict_goes_on_to_the_next():
    """What Toroid would leave to PyTorch in parts is a refusal then."""
    compiler = Compiler()
    made = toroid.compose("toroid", compiler)

    def g(x):
        return torch.linalg.matrix_exp(x)

    torch._dynamo.reset()
    with listen() as reports:
        for strict in (False, True):
            torch._dynamo.reset()
            got = torch.compile(g, backend=made, options={"strict": strict})(X)
            assert_same(got, g(X))
    assert [r.backend for r in reports] == ["toroid", "Compiler"]
    assert [len(r.externals) for r in reports] == [1, 0]


def test_a_composition_that_fails(plugin):
    made = toroid.compose(Compiler(ValueError("it broke")), plugin("fails_too", FAIL))
    with pytest.raises(BackendCompilerFailed, match="ValueError: it broke; .*fails_too is broken"):
        infer(made)


def test_explain_names_the_compiler():
    found = toroid.explain(f, X, backend=toroid.aot(Compiler()))
    assert str(found.graphs[0]) == "inference graph by Compiler"
    assert "inference graph by Compiler" in str(found)
    assert '"compiler": "Compiler"' in found.html().replace('":"', '": "')


# ------------------------------------------------------------------ what autograd may ask for


@pytest.mark.parametrize("backend", ["toroid", toroid.aot(), toroid.aot("toroid", Compiler())])
def test_backward_may_run_again(backend):
    """PyTorch refuses `retain_graph` where saved tensors are noted as donated."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.GELU(), torch.nn.Linear(3, 1))
    x = X.clone().requires_grad_()
    loss = torch.compile(model, backend=backend)(x).sum()
    grads = [torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(3)]
    want = torch.autograd.grad(model(x).sum(), x)[0]
    for grad in grads:
        assert_same(grad, want)


def test_a_compiler_that_changes_its_graph_and_refuses():
    """PyTorch runs the graph as it was."""

    def compiler(gm, example_inputs):
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.relu.default:
                node.target = torch.ops.aten.tanh.default
        gm.recompile()
        raise NotImplementedError("not mine")

    def g(x):
        return torch.relu(x) + 1

    for made in (toroid.aot(compiler), toroid.compose(compiler, compiler)):
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(g, backend=made)(X), g(X))


def test_wrong_types():
    with pytest.raises(TypeError, match="expected partition .* got list"):
        toroid.aot(partition=["default"])
    with pytest.raises(TypeError, match="expected decompositions .* got int"):
        toroid.aot(decompositions=3)
