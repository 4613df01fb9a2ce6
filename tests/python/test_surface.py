"""Every public name, and what users do to compiled models: nesting, copies, pickles, interrupts."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
import toroid as package
from support import assert_same, listen, reports, toroid
from torch._dynamo.exc import BackendCompilerFailed
from toroid import _core
from toroid import backend as backend_module
from toroid.options import Options, parse


class Model(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


@pytest.fixture
def model():
    return Model().eval()


@pytest.fixture
def x():
    return torch.randn(4, 8)


# ------------------------------------------------------------------ names


def test_public_names():
    names = ["Unsupported", "__version__", "aot", "backends", "compose", "explain", "info"]
    assert sorted(package.__all__) == [*names, "profile", "refresh", "stats", "trim", "tunable"]
    assert all(hasattr(package, name) for name in package.__all__)
    assert package.__version__.count(".") == 2
    assert issubclass(package.Unsupported, RuntimeError)
    assert package.Unsupported.__name__ == "Unsupported"


def test_importing_the_package_does_not_import_pytorch():
    code = "import sys, toroid; assert 'torch' not in sys.modules; toroid.stats()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_stats(model, x):
    before = package.stats()
    assert set(before) == {
        "frozen_entries",
        "frozen_bytes",
        "mapped_bytes",
        "frozen_packs",
        "released_bytes",
    }
    with torch.no_grad():
        toroid(model)(x)
    after = package.stats()
    assert after.pop("mapped_bytes") == before["mapped_bytes"]  # no TOROID_CACHE_DIR
    assert after.pop("released_bytes") == before["released_bytes"]  # no release_weights
    assert all(after[name] > before[name] for name in after)


def test_refresh_makes_everything_again(model, x):
    compiled = toroid(model)
    with torch.no_grad():
        compiled(x)
        packs = package.stats()["frozen_packs"]
        assert package.refresh(model) is None
        assert package.stats()["frozen_packs"] == packs  # at the next use, not before
        # A write that no version counter sees.
        model.up.weight.detach().numpy()[:] = 0.5
        package.refresh()
        assert_same(compiled(x), model(x), atol=1e-5)
        assert package.stats()["frozen_packs"] > packs
        packs = package.stats()["frozen_packs"]
        compiled(x)
        assert package.stats()["frozen_packs"] == packs


def test_explain_gives_numbers_and_tables(model, x):
    with torch.no_grad():
        found = package.explain(model, x, options={"threads": 1})
    assert_same(found.result, model(x).detach(), atol=1e-5)
    (graph,) = found.graphs
    assert graph.kind == "inference" and graph.fallback is None
    assert found.native == graph.native > 0 and found.externals == [] and found.breaks == []
    assert graph.stats["steps"] > 0 and graph.stats["weight_bytes"] > 0
    assert set(graph.tables()) == {"before", "after", "steps"}
    assert "tor_gemm" in found.steps() and "graph 0 before" in found.passes()


def test_explain_takes_keywords_and_checks_options(model, x):
    assert package.explain(lambda *, a: a * 2, a=x).native == 1
    with pytest.raises(BackendCompilerFailed, match="did you mean 'threads'"):
        package.explain(model, x, options={"thread": 1})


@pytest.mark.parametrize("wrong", [None, 3, "model"])
def test_explain_of_what_cannot_be_called(wrong, x):
    with pytest.raises(TypeError, match=f"expected a module or a function, got {wrong!r}"):
        package.explain(wrong, x)


def test_explain_of_training_has_both_graphs(model, x):
    found = package.explain(lambda v: model(v).sum(), x)
    assert [g.kind for g in found.graphs] == ["forward", "backward"]
    assert "backward graph: " in str(found)
    assert all(p.grad is None for p in model.parameters())
    with listen() as later:
        found.result.backward()
    assert not later and all(p.grad is not None for p in model.parameters())
    with torch.no_grad():
        assert [g.kind for g in package.explain(model, x).graphs] == ["inference"]


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Strict": True}, "did you mean 'strict'"),
        ({"num_threads": 2}, "did you mean 'threads'"),
        ({"freezing": True}, "did you mean 'freeze'"),
        ({"max_autotune": True}, "did you mean 'tune'"),
        ({"workers": True}, "known are strict, threads, freeze"),
        ({3: True}, "no option 3"),
        ({"threads": "2"}, "an integer of at least 0, got '2'"),
        ({"threads": 1.0}, "an integer of at least 0, got 1.0"),
        ({"threads": None}, "an integer of at least 0, got None"),
        ({"threads": -1}, "an integer of at least 0, got -1"),
        ({"threads": 2**31}, "expected at most 2147483647, got 2147483648"),
        ({"verbose": -1}, "an integer of at least 0, got -1"),
        ({"strict": "yes"}, "expected True or False, got 'yes'"),
        ({"freeze": None}, "expected True or False, got None"),
        ({"precision": torch.bfloat16}, "expected one of f32, bf16"),
        (["strict"], r"expected options as a mapping, got \['strict'\]"),
    ],
)
def test_wrong_options(given, message):
    with pytest.raises(ValueError, match=message):
        parse(None, given)


def test_a_mode_of_inductors():
    with pytest.raises(ValueError, match="no mode 'reduce-overhead'; expected None, 'default' or"):
        parse("reduce-overhead", None)


def test_right_options():
    assert parse(None, None) == parse("default", {}) == Options()
    assert parse(None, {"threads": 0, "verbose": True}) == Options(threads=0, verbose=True)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_threads(threads, model, x):
    with torch.no_grad():
        assert_same(toroid(model, options={"threads": threads})(x), model(x), atol=1e-5)


def test_errors_are_not_swallowed_by_a_second_call(model, x):
    compiled = toroid(model, options={"threads": -1})
    for _ in range(2):
        with pytest.raises(BackendCompilerFailed, match="got -1"):
            compiled(x)


# ------------------------------------------------------------------ devices


def test_other_devices_stay_with_pytorch():
    far = torch.ones(3, device="meta")
    found, got = reports(toroid(lambda t: t + 1), far)
    assert got.device.type == "meta"
    assert "device 'meta', and Toroid runs on the CPU" in found[0].fallback


def test_other_devices_are_unsupported_with_strict():
    with pytest.raises(BackendCompilerFailed, match="runs on the CPU"):
        toroid(lambda t: t + 1, options={"strict": True})(torch.ones(3, device="meta"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_pytorchs_own_error_without_a_gpu(x):
    def f(t):
        return t.to("cuda") + 1

    without = "CUDA|cuda|NVIDIA driver"  # as a build without CUDA says it, and one with it
    with pytest.raises((AssertionError, RuntimeError), match=without):
        f(x)
    with pytest.raises(RuntimeError, match=without):  # TorchRuntimeError where tracing fails
        toroid(f)(x)


# ------------------------------------------------------------------ ways to compile and call


def test_compile_twice(model, x):
    once = toroid(model)
    twice = toroid(once)
    again = toroid(model, options={"threads": 1})
    with torch.no_grad():
        for compiled in (once, twice, again, once):
            assert_same(compiled(x), model(x), atol=1e-5)


def test_module_compile_in_place_twice(model, x):
    twin = copy.deepcopy(model)
    model.compile(backend="toroid")
    model.compile(backend="toroid")
    with torch.no_grad():
        assert_same(model(x), twin(x), atol=1e-5)


def test_inside_another_compiled_function(model, x):
    inner = toroid(model)
    outer = toroid(lambda v: inner(v) * 2)
    with torch.no_grad():
        assert_same(outer(x), model(x) * 2, atol=1e-5)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_one_model_in_every_grad_mode(order, model, x):
    compiled = toroid(model)
    modes = [torch.no_grad, torch.inference_mode, torch.enable_grad]
    for i in [*order, *order]:
        with modes[i]():
            got, want = compiled(x), model(x)
        assert_same(got.detach(), want.detach(), atol=1e-5)
        assert (got.requires_grad, got.is_inference()) == (want.requires_grad, want.is_inference())


def test_inference_tensors_go_in_outside_of_inference_mode(model):
    compiled = toroid(model)
    with torch.inference_mode():
        x = torch.randn(4, 8)
    with torch.no_grad():
        assert_same(compiled(x), model(x), atol=1e-5)


def test_a_module_and_a_function_and_a_method(model, x):
    with torch.no_grad():
        for compiled in (toroid(model), toroid(model.forward), toroid(lambda v: model(v))):
            assert_same(compiled(x), model(x), atol=1e-5)


# ------------------------------------------------------------------ copies and pickles


def test_deepcopy_of_a_compiled_module(model, x):
    compiled = toroid(model)
    with torch.no_grad():
        compiled(x)
        other = copy.deepcopy(compiled)
        for p in other.parameters():
            p.add_(1)
        assert_same(compiled(x), model(x), atol=1e-5)
        assert_same(other(x), other._orig_mod(x), rtol=1e-4, atol=1e-4)


def test_state_of_a_compiled_module_loads_into_another(model, x, tmp_path):
    compiled = toroid(model)
    with torch.no_grad():
        compiled(x)
        torch.save(compiled.state_dict(), tmp_path / "state.pt")
        other = toroid(Model().eval())
        other(x)
        other.load_state_dict(torch.load(tmp_path / "state.pt"))
        assert_same(other(x), model(x), atol=1e-5)


def test_a_model_compiled_in_place_pickles(model, x):
    model.compile(backend="toroid")
    with torch.no_grad():
        want = model(x)
        other = pickle.loads(pickle.dumps(model))
        assert_same(other(x), want, atol=1e-5)


def small():
    backend_module.initialise()
    graph = _core.Graph()
    value = graph.add_input("x", "float32", [2])
    graph.set_outputs([value], [None], [])
    return graph, value


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_handles_of_c_refuse_to_be_copied(how):
    graph, value = small()
    for handle in (graph, value, graph.compile([], ())):
        with pytest.raises(TypeError):
            how(handle)


@pytest.mark.parametrize("name", ["Value", "Int", "Executable"])
def test_handles_of_c_are_not_made_by_hand(name):
    kind = getattr(_core, name)
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        kind.__new__(kind)
    with pytest.raises(TypeError):
        object.__new__(kind)


# ------------------------------------------------------------------ exceptions


hooks = []


@torch.library.custom_op("toroid_surface::hook", mutates_args=())
def hook(x: torch.Tensor) -> torch.Tensor:
    for f in list(hooks):
        f()
    return x.clone()


@hook.register_fake
def _(x):
    return torch.empty_like(x)


@pytest.fixture
def hooked():
    yield hooks
    hooks.clear()


def throw(error):
    def f():
        raise error

    return f


@pytest.mark.parametrize(
    "error", [KeyError("k"), MemoryError("m"), SystemExit(3), KeyboardInterrupt(), StopIteration(1)]
)
def test_exceptions_of_external_nodes_pass_through(error, hooked):
    compiled = toroid(lambda v: hook(v * 2) + 1)
    x = torch.ones(3)
    assert_same(compiled(x), torch.full((3,), 3.0))
    hooked.append(throw(error))
    for _ in range(3):
        with pytest.raises(type(error)) as caught:
            compiled(x)
        assert caught.value.args == error.args
    hooked.clear()
    assert_same(compiled(x), torch.full((3,), 3.0))


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where whoever started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_in_an_external_node(hooked, interruptible):
    compiled = toroid(lambda v: hook(v * 2) + 1)
    x = torch.ones(3)
    compiled(x)
    hooked.append(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    hooked.clear()
    assert_same(compiled(x), torch.full((3,), 3.0))


def test_a_signal_at_any_time(interruptible):
    # The executable itself: under Dynamo's guards some signals get lost with any backend.
    backend_module.initialise()
    graph = _core.Graph()
    value = graph.add_input("x", "float32", [256, 256])
    graph.set_outputs([graph.call("aten.cumsum.default", (value, 1), {}, "y")], [None], [])
    run = graph.compile([], ())
    x = torch.randn(256, 256)
    for i in range(5):
        timer = threading.Timer(0.01 + 0.003 * i, os.kill, (os.getpid(), signal.SIGINT))
        end = time.monotonic() + 20
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while time.monotonic() < end:
                run([x])
        timer.join()
    assert_same(run([x])[0], x.cumsum(1), rtol=1e-4, atol=1e-4)


def test_an_external_node_may_call_a_compiled_model(model, x, hooked):
    """The same executable, re-entered."""
    compiled = toroid(lambda v: hook(model(v)) + 1)
    with torch.no_grad():
        compiled(x)
        seen = []

        def again():
            if not seen:
                seen.append(None)
                seen.append(compiled(x + 1))

        hooked.append(again)
        assert_same(compiled(x), model(x) + 1, atol=1e-5)
        assert_same(seen[1], model(x + 1) + 1, atol=1e-5)
