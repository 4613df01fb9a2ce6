"""The door itself: options, calling convention, outputs, writes, dynamic shapes, external nodes."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
import toroid as package
from support import assert_no_more_graphs, assert_same, fake_strides, reports, toroid
from torch._dynamo.exc import BackendCompilerFailed
from toroid import _core
from toroid import backend as backend_module

# ------------------------------------------------------------------ finding it, options


def test_registered_by_entry_point():
    assert "toroid" in torch._dynamo.list_backends()
    found = torch._dynamo.lookup_backend("toroid")
    assert found is backend_module.toroid
    assert found is torch._dynamo.lookup_backend("toroid")


def test_init_hook_is_idempotent():
    backend_module.toroid._dynamo_backend_init()
    backend_module.toroid._dynamo_backend_init()


def compile_with(**kwargs):
    return toroid(lambda x: x + 1, **kwargs)(torch.ones(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strct": True}, "did you mean 'strict'"),
        ({"nonsense": 1}, "known are"),
        ({"strict": 1}, "expected True or False"),
        ({"threads": -1}, "at least 0"),
        ({"threads": True}, "at least 0"),
        ({"precision": "int3"}, "expected one of f32, bf16"),
        ({"release_weights": True, "freeze": False}, "needs 'freeze'"),
    ],
)
def test_wrong_options_say_what_was_expected(options, message):
    with pytest.raises(BackendCompilerFailed, match=message):
        compile_with(options=options)


def test_wrong_mode():
    with pytest.raises(BackendCompilerFailed, match="no mode 'reduce-overhead'"):
        compile_with(mode="reduce-overhead")


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 1},
        {"strict": True},
        {"freeze": False},
        {"precision": "f32"},
        {"reference": True},
    ],
)
def test_options_are_taken(options):
    assert_same(compile_with(options=options), torch.full((3,), 2.0))


def test_ambient_precision_needs_no_kernels(monkeypatch):
    monkeypatch.setenv("TOROID_FPMATH", "bf16")
    assert_same(compile_with(), torch.full((3,), 2.0))


# ------------------------------------------------------------------ calls


def test_inputs_are_freed_by_the_boxed_call():
    f = toroid(lambda x: x.sum())
    x = torch.ones(100)
    f(x)
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def small_executable():
    backend_module.initialise()
    graph = _core.Graph()
    x = graph.add_input("x", "float32", ["n", 4])
    n = graph.size("n")
    y = graph.call("aten.add.Tensor", (x, 1.5), {}, "y")
    graph.set_outputs([y, n * 2 + 1, None, 7], [("order", [0, 1]), None, None, None], [])
    return graph.compile([], ())


def test_executable_takes_one_list_and_empties_it():
    run = small_executable()
    inputs = [torch.zeros(3, 4)]
    y, twice, nothing, seven = run(inputs)
    assert inputs == [] and run._boxed_call
    assert_same(y, torch.full((3, 4), 1.5))
    assert (twice, nothing, seven) == (7, None, 7)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([], TypeError, "expected 1 inputs, got 0"),
        ([None], TypeError, "expected a tensor, got NoneType"),
        (
            [torch.zeros(3, 4, dtype=torch.float64)],
            ValueError,
            "expected float32 of rank 2, got float64",
        ),
        ([torch.zeros(4)], ValueError, "got float32 of rank 1"),
        ([torch.zeros(3, 5)], ValueError, "5"),
    ],
)
def test_executable_checks_its_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        small_executable()(list(inputs))


def test_fake_tensors_are_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3, 4)
    with pytest.raises(ValueError, match="without memory"):
        small_executable()([fake])


def test_graph_is_used_up_by_compile():
    graph = _core.Graph()
    x = graph.add_input("x", "float32", [2])
    graph.set_outputs([x], [None], [])
    backend_module.initialise()
    graph.compile([], ())
    with pytest.raises(ValueError, match="compiled already"):
        graph.add_input("y", "float32", [2])


def test_values_of_another_graph_are_refused():
    a, b = _core.Graph(), _core.Graph()
    x = a.add_input("x", "float32", [2])
    with pytest.raises(ValueError, match="another graph"):
        b.call("aten.relu.default", (x,), {}, "y")


def test_unknown_op_is_unsupported():
    graph = _core.Graph()
    x = graph.add_input("x", "float32", [2])
    assert not _core.knows("aten.no_such_op.default")
    with pytest.raises(package.Unsupported, match="no_such_op"):
        graph.call("aten.no_such_op.default", (x,), {}, "y")


# ------------------------------------------------------------------ outputs


def check(f, *args, **kwargs):
    want = f(
        *[
            a.clone(memory_format=torch.preserve_format) if isinstance(a, torch.Tensor) else a
            for a in args
        ]
    )
    assert_same(toroid(f, **kwargs)(*args), want, fake=fake_strides(f, *args))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(3, 5, 4, 6).permute(0, 2, 1, 3),
        lambda: torch.randn(2, 8, 5, 5).to(memory_format=torch.channels_last),
        lambda: torch.randn(4, 6).t(),
        lambda: torch.randn(4, 1, 6).transpose(0, 1),
        lambda: torch.randn(8, 6)[::2],
        lambda: torch.randn(1, 6).expand(4, 6),
        lambda: torch.randn(0, 4),
        lambda: torch.tensor(2.5),
    ],
)
def test_output_strides_are_eagers(make, dynamic):
    check(
        lambda x: (F.gelu(x) + 1, (x * 2).transpose(0, -1) if x.dim() else x * 2),
        make(),
        dynamic=dynamic,
    )


def test_views_of_inputs_and_of_intermediates():
    def f(x):
        y = x + 1
        return y[:, :2], x[:, 1:], y.t(), x

    x = torch.randn(4, 5)
    out = toroid(f)(x)
    assert_same(out, f(x))
    assert out[3] is x
    assert out[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_outputs_that_are_no_tensors_and_twice_the_same():
    def f(x):
        y = x * 2
        return y, None, x.shape[0] * 2 + 1, y, [x.shape[1]]

    compiled = toroid(f, dynamic=True)
    for n in (3, 7):
        x = torch.randn(n, 4)
        assert_same(compiled(x), f(x))


def test_outputs_are_ones_own():
    f = toroid(lambda x: x + 1)
    x = torch.randn(64)
    first = f(x)
    kept = first.clone()
    for _ in range(3):
        f(torch.randn(64))
    assert torch.equal(first, kept)


# ------------------------------------------------------------------ writes


def test_writes_into_inputs():
    def f(x, cache):
        cache[:, 1] = x.sum()
        x.mul_(2)
        return cache.sum() + x.sum()

    a = (torch.randn(3, 4), torch.zeros(3, 4))
    b = tuple(t.clone() for t in a)
    with torch.no_grad():
        assert_same(toroid(f)(*a), f(*b))
    assert_same(a, b)


def test_write_through_a_view_of_an_input():
    def f(x, y):
        x[1].add_(y)
        return x.sum(0), x.t()

    a = (torch.randn(4, 4), torch.randn(4))
    b = tuple(t.clone() for t in a)
    assert_same(toroid(f)(*a), f(*b))
    assert_same(a, b)


def test_inputs_that_overlap():
    def f(x, y):
        x.add_(1)
        return y * 2

    base_a = torch.randn(6)
    base_b = base_a.clone()
    assert_same(toroid(f)(base_a[:4], base_a[2:]), f(base_b[:4], base_b[2:]))
    assert_same(base_a, base_b)


def test_batch_norm_statistics_move():
    a = torch.nn.BatchNorm1d(5)
    b = torch.nn.BatchNorm1d(5)
    compiled = toroid(a)
    for _ in range(3):
        x = torch.randn(8, 5)
        assert_same(compiled(x), b(x), atol=1e-5)
    assert_same(dict(a.named_buffers()), dict(b.named_buffers()))


# ------------------------------------------------------------------ gradients


def test_training_step():
    def loss(model, x):
        return F.gelu(model(x)).pow(2).sum()

    a = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    x = torch.randn(5, 6)
    want = torch.autograd.grad(loss(a, x), a.parameters())
    got = torch.autograd.grad(toroid(loss)(a, x), a.parameters())
    assert_same(got, want, rtol=1e-4, atol=1e-5)


def test_gradients_with_a_dynamic_length():
    w = torch.randn(4, 4, requires_grad=True)

    def f(x):
        return torch.softmax(x @ w, -1).pow(2).sum()

    compiled = toroid(f, dynamic=True)
    for n in (3, 5, 9):
        x = torch.randn(n, 4)
        assert_same(
            torch.autograd.grad(compiled(x), w), torch.autograd.grad(f(x), w), rtol=1e-4, atol=1e-5
        )


# ------------------------------------------------------------------ shapes


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_no_more_graphs_than_backend_eager(dynamic):
    def f(x):
        return torch.softmax(x.view(x.shape[0], -1, 2), 1) * x.shape[1]

    with torch.no_grad():
        assert_no_more_graphs(f, [(torch.randn(n, 6),) for n in (2, 3, 4, 9, 1)], dynamic=dynamic)


def test_size_arithmetic():
    def f(x):
        n = x.shape[0]
        return x.new_zeros(n // 2 + n % 3, n * n).fill_(n), x[: n // 2], torch.arange(n) * 3

    compiled = toroid(f, dynamic=True)
    for n in (2, 3, 8, 11):
        x = torch.randn(n, 2)
        assert_same(compiled(x), f(x))


# ------------------------------------------------------------------ external nodes


@torch.library.custom_op("toroid_test::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@halve.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("toroid_test::fail", mutates_args=())
def fail(x: torch.Tensor) -> torch.Tensor:
    raise KeyError("from the op")


@fail.register_fake
def _(x):
    return torch.empty_like(x)


def test_external_node_between_native_ones():
    def f(x):
        return halve(x + 1) * 2 + halve(x)

    x = torch.randn(4, 6).t()
    found, got = reports(toroid(f), x)
    assert_same(got, f(x))
    (report,) = found
    assert [e.target for e in report.externals] == ["toroid_test.halve.default"] * 2
    assert report.native > 0
    assert "does not know" in report.externals[0].reason


def test_external_output_is_not_arena_memory():
    kept = []

    @torch.library.custom_op("toroid_test::spy", mutates_args=())
    def spy(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x.clone()

    @spy.register_fake
    def _(x):
        return torch.empty_like(x)

    compiled = toroid(lambda x: spy(x + 1) * 2)
    x = torch.randn(256)
    compiled(x)
    seen = kept[0].clone()
    for _ in range(3):
        compiled(torch.randn(256))
    assert torch.equal(kept[0], seen)
    assert torch.equal(kept[0], x + 1)


def test_exception_of_an_external_node_passes_through():
    with pytest.raises(KeyError, match="from the op"):
        toroid(lambda x: fail(x + 1) * 2)(torch.ones(3))


def test_external_nodes_with_what_the_ir_cannot_hold():
    def f(x):
        spectrum = torch.fft.fft(x + 1)
        return torch.view_as_real(spectrum * 2).sum(-1) * 3

    x = torch.randn(4, 8)
    assert_same(toroid(f, fullgraph=True)(x), f(x), atol=1e-4)


def test_higher_order_op():
    def f(x):
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)) * 2

    for x in (torch.ones(3), -torch.ones(3)):
        assert_same(toroid(f, fullgraph=True)(x), f(x))


def test_sizes_that_depend_on_data():
    def f(x):
        return (x + 1).nonzero().sum() + x.sum().long()

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        x = torch.tensor([-1.0, 2.0, -1.0, 3.0])
        assert_same(toroid(f, fullgraph=True)(x), f(x))


def test_random_ops_keep_their_order_and_numbers():
    def f(x):
        a = torch.rand(3) + x
        b = F.dropout(x * 2, 0.5)
        c = torch.randn(3) * a
        return a, b, c, torch.randint(10, (2,))

    x = torch.randn(3)
    compiled = toroid(f)
    for _ in range(2):
        torch.manual_seed(5)
        want = f(x)
        state = torch.get_rng_state()
        torch.manual_seed(5)
        assert_same(compiled(x), want)
        assert torch.equal(torch.get_rng_state(), state)


def test_strict_lists_every_reason():
    def f(x):
        return halve(x) + torch.linalg.svdvals(x).sum()

    with pytest.raises(BackendCompilerFailed) as error:
        toroid(f, options={"strict": True})(torch.randn(3, 3))
    assert isinstance(error.value.inner_exception, package.Unsupported)
    assert "toroid_test.halve" in str(error.value) and "svd" in str(error.value)


def test_strict_passes_what_is_native_and_compiles_it():
    found, _ = reports(
        toroid(lambda x: torch.relu(x) * 2, options={"strict": True}), torch.randn(3)
    )
    assert len(found) == 1 and not found[0].externals and found[0].native > 0


def test_complex_graphs_stay_with_pytorch():
    f = toroid(lambda x: x * 2)
    x = torch.randn(3, dtype=torch.complex64)
    found, got = reports(f, x)
    assert torch.equal(got, x * 2)
    assert "complex64" in found[0].fallback


def test_index_out_of_range_is_an_error():
    table = torch.randn(4, 2)
    compiled = toroid(lambda i: F.embedding(i, table))
    compiled(torch.tensor([0, 3]))
    with pytest.raises((IndexError, RuntimeError), match="range"):
        compiled(torch.tensor([0, 4]))


# ------------------------------------------------------------------ explain


def test_explain():
    def f(x):
        y = torch.relu(x) * 2
        torch._dynamo.graph_break()
        return halve(y + 1)

    x = torch.randn(3)
    found = package.explain(f, x)
    assert_same(found.result, f(x))
    assert len(found.graphs) == 2 and len(found.breaks) == 1
    assert [e.target for e in found.externals] == ["toroid_test.halve.default"]
    text = str(found)
    assert text.startswith("2 graphs, 1 graph break, ")
    assert f"graph break at {__file__}:" in text and "toroid_test.halve.default" in text
    assert "graph_break()" in found.breaks[0] and "\n" not in found.breaks[0]
    assert "relu" in found.passes()
    assert found.steps()


def test_explain_counts_in_words():
    text = str(package.explain(lambda x: torch.relu(x), torch.randn(3)))
    head, first = text.split("\n")
    assert head == "1 graph, 0 graph breaks, 1 native node, 0 external nodes"
    assert first.startswith("[0] inference graph: 1 native node, 0 external nodes, 1 step, weights")


def test_explain_says_why_a_graph_stays_with_pytorch():
    text = str(package.explain(lambda x: x * 2, torch.randn(3, dtype=torch.complex64)))
    assert "1 graph run by PyTorch" in text.split("\n")[0]
    assert "complex64" in text.split("\n")[1]


# ------------------------------------------------------------------ effect tokens


def inverse(x):
    # AOTAutograd orders the error check of inv() by a token, which is None at run time.
    return torch.linalg.inv(x) @ x


def test_side_effects_are_external_nodes():
    x = torch.randn(3, 3)
    found, got = reports(toroid(inverse), x)
    assert_same(got, inverse(x))
    assert found[0].fallback is None and found[0].native == 1
    names = ["aten.linalg_inv_ex.default", "aten._linalg_check_errors.default"]
    assert [e.target for e in found[0].externals] == names
    with pytest.raises(torch.linalg.LinAlgError):
        toroid(inverse)(torch.zeros(3, 3))


def test_side_effects_are_unsupported_with_strict():
    with pytest.raises(BackendCompilerFailed, match="_linalg_check_errors") as error:
        toroid(inverse, options={"strict": True})(torch.randn(3, 3))
    assert isinstance(error.value.inner_exception, package.Unsupported)


# ------------------------------------------------------------------ what PyTorch runs


@torch.library.custom_op("toroid_tests::strides", mutates_args=())
def strides_of(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x.stride())


@strides_of.register_fake
def _(x):
    return torch.empty(x.dim(), dtype=torch.int64)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.permute(3, 1, 0, 2),
        lambda x: (x * 2)[:, ::2, :, 1:],
        lambda x: x.sum(1, keepdim=True).expand(4, 6, 5, 3),
        lambda x: (x + 1).to(memory_format=torch.channels_last),
        lambda x: (x + 1).transpose(1, 2),
    ],
)
def test_ops_of_pytorch_see_eagers_strides(view):
    """Custom ops may show them, or go by them in raw memory."""
    x = torch.randn(4, 6, 5, 3)
    torch.testing.assert_close(toroid(lambda x: strides_of(view(x)))(x), strides_of(view(x)))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("draw", [lambda x: F.dropout(x, 0.5), torch.rand_like])
def test_random_numbers_for_views_are_eagers(draw, dynamic):
    """They are drawn in the order in which the operand lies in memory."""
    x = torch.ones(4, 6)
    torch.manual_seed(0)
    want = draw(x.t())
    torch.manual_seed(0)
    assert torch.equal(toroid(lambda x: draw(x.t()), dynamic=dynamic)(x), want)


def test_checkpoint_with_random_numbers():
    """Its nodes do not say what they give: PyTorch runs the graph."""
    from torch.utils.checkpoint import checkpoint

    def f(x):
        return checkpoint(lambda x: F.dropout(x * 2, 0.5), x, use_reentrant=False)

    def gradient(f):
        torch.manual_seed(0)
        x = torch.ones(7, 9, requires_grad=True)
        f(x).sum().backward()
        return x.grad

    assert torch.equal(gradient(toroid(f)), gradient(f))
