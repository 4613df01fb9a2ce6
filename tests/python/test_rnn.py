"""Recurrent layers, which Toroid takes whole: values, strides, sizes, gradients, what is left."""

import pytest
import torch
from support import assert_same, reports, toroid
from torch import nn

MODES = ["LSTM", "GRU", "RNN"]


@pytest.fixture(autouse=True)
def allow_rnn():
    with torch._dynamo.config.patch(allow_rnn=True):
        torch._dynamo.reset()
        yield


def layer(mode, *args, **kwargs):
    torch.manual_seed(0)
    return getattr(nn, mode)(*args, **kwargs).eval()


def check(module, *args, native=True):
    with torch.no_grad():
        found, got = reports(toroid(module), *args)
        want = module(*args)
    assert_same(got, want, rtol=1e-4, atol=1e-5)
    assert [bool(r.externals or r.fallback) for r in found] == [not native], str(found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (1, True), (3, True)])
def test_layers(mode, bias, batch_first, layers, bidirectional):
    m = layer(mode, 5, 9, layers, bias=bias, batch_first=batch_first, bidirectional=bidirectional)
    check(m, torch.randn(4, 6, 5))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 1, 5), (7, 1, 5), (1, 7, 5), (3, 33, 5), (6, 5)])
def test_sizes_and_unbatched(mode, shape):
    check(layer(mode, 5, 17), torch.randn(shape))


@pytest.mark.parametrize("mode", MODES)
def test_states_given(mode):
    m = layer(mode, 5, 7, 2)
    # states that are slices and transposes
    h = torch.randn(3, 2, 14).transpose(0, 1)[:, :, ::2]
    c = torch.randn(2, 3, 7)
    check(m, torch.randn(4, 3, 10)[..., ::2], (h, c) if mode == "LSTM" else h)


def test_relu():
    check(layer("RNN", 5, 7, nonlinearity="relu"), torch.randn(4, 3, 5))


@pytest.mark.parametrize("mode", MODES)
def test_projected_output_and_other_layers(mode):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 5)
            self.layer = layer(mode, 5, 6, bidirectional=True, batch_first=True)
            self.out = nn.Linear(12, 3)

        def forward(self, x):
            return self.out(torch.relu(self.layer(self.embed(x))[0])).log_softmax(-1)

    check(Tagger().eval(), torch.randint(0, 20, (2, 8)))


@pytest.mark.parametrize("mode", MODES)
def test_last_state_is_no_view_of_the_output(mode):
    m = layer(mode, 5, 7)
    with torch.no_grad():
        out, state = toroid(m)(torch.randn(3, 2, 5))
    state = state[0] if mode == "LSTM" else state
    assert state.untyped_storage().data_ptr() != out.untyped_storage().data_ptr()


@pytest.mark.parametrize("mode", MODES)
def test_weights_that_change(mode):
    m = layer(mode, 5, 7)
    compiled, x = toroid(m), torch.randn(3, 2, 5)
    with torch.no_grad():
        for _ in range(2):
            assert_same(compiled(x), m(x), rtol=1e-4, atol=1e-5)
            m.weight_hh_l0.mul_(0.5)


@pytest.mark.parametrize("mode", MODES)
def test_dynamic_steps_and_batch(mode):
    m = layer(mode, 5, 7, 2, bidirectional=True)
    compiled = toroid(m, dynamic=True)
    with torch.no_grad():
        for steps, batch in ((4, 3), (9, 2), (2, 21)):
            x = torch.randn(steps, batch, 5)
            assert_same(compiled(x), m(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_come_from_the_parts(mode):
    m = layer(mode, 5, 7, batch_first=True).train()
    results = []
    for f in (m, toroid(m)):
        x = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1), requires_grad=True)
        m.zero_grad()
        f(x)[0].square().sum().backward()
        results.append([x.grad, *(p.grad.clone() for p in m.parameters())])
    assert_same(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make", [lambda: layer("LSTM", 5, 7, proj_size=3), lambda: layer("GRU", 5, 7).double()]
)
def test_what_pytorch_keeps(make):
    m = make()
    check(m, torch.randn(4, 2, 5, dtype=m.weight_ih_l0.dtype), native=False)


@pytest.mark.parametrize("mode", MODES)
def test_cells(mode):
    m = layer(f"{mode}Cell", 5, 7)
    check(m, torch.randn(3, 5))


def test_dropout_draws_what_eager_draws():
    m = layer("LSTM", 5, 7, 2, dropout=0.5).train()
    x = torch.randn(3, 2, 5)
    with torch.no_grad():
        torch.manual_seed(3)
        want = m(x)
        torch.manual_seed(3)
        assert_same(toroid(m)(x), want, rtol=1e-4, atol=1e-5)
