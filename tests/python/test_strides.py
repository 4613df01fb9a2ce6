"""Strides of results are eager's in dims of size 1 too, over random chains."""

import random

import pytest
import torch
import torch.nn.functional as F
from support import toroid

CHAINS = 60


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def same(f, *args):
    torch._dynamo.reset()
    got, want = toroid(f)(*args), f(*args)
    assert got.stride() == want.stride(), (tuple(want.shape), got.stride(), want.stride())
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def last(*shape):
    return torch.randn(shape).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", [(8, 1), (1, 8), (1, 1), (3, 5)])
def test_a_number_added_to_a_transposed_matrix(shape):
    same(lambda x: x.T + 1, torch.randn(shape))


ONE, BACK = torch.randn(1, 3, 3, 3), torch.randn(4, 1, 3, 3)
AFTER = {
    "relu": F.relu,
    "number": lambda x: x + 1,
    "sigmoid": torch.sigmoid,
    "sum": lambda x: x + x,
    "conv": lambda x: F.conv2d(x, BACK),
    "relu and conv": lambda x: F.conv2d(x.relu(), BACK),
    "number and conv": lambda x: F.conv2d(x * 2, BACK),
}


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
def test_one_channel_of_a_convolution(after):
    same(lambda x, w: after(F.conv2d(x, w)), last(2, 3, 8, 8), ONE)


@pytest.mark.parametrize("layout", ["heads inside", "heads outside"])
@pytest.mark.parametrize("batch", [1, 2])
def test_attention_of_one_query(layout, batch):
    def tensor(n):
        if layout == "heads inside":
            return torch.randn(batch, n, 4, 16).transpose(1, 2)
        return torch.randn(batch, 4, n, 16)

    same(lambda q, k: F.scaled_dot_product_attention(q, k, k), tensor(1), tensor(9))
    same(
        lambda q, k: F.scaled_dot_product_attention(q, k, k).transpose(1, 2).flatten(2),
        tensor(1),
        tensor(9),
    )


class Chain:
    """Views, elementwise ops and convolutions, drawn while they are run for the first time."""

    def __init__(self, seed):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        size = [rng.choice([1, 1, 1, 2, 5]) for _ in range(rng.choice([2, 3, 4, 4]))]
        x = torch.randn(size)
        if rng.random() < 0.7:
            order = rng.sample(range(x.dim()), x.dim())
            x = x.permute(order).contiguous().permute([order.index(d) for d in range(x.dim())])
        self.steps, self.x = [], x
        for _ in range(rng.randint(1, 6)):
            name, step = self.draw(rng, x)
            x = step(x)
            self.steps.append((name, step))

    def draw(self, rng, x):
        order = rng.sample(range(x.dim()), x.dim())
        dim = rng.randrange(x.dim())
        ones = [d for d in range(x.dim()) if x.shape[d] == 1]
        choices = [
            ("relu", torch.relu),
            *[("+1", lambda x: x + 1)] * 2,
            ("x+x", lambda x: x + x),
            ("sigmoid", torch.sigmoid),
            *[(f"permute{order}", lambda x: x.permute(order))] * 3,
            ("contiguous", lambda x: x.contiguous()),
            (f"x*x[{dim}:1]", lambda x: x * x.narrow(dim, 0, 1)),
            ("where", lambda x: torch.where(x > 0, x, 2 * x)),
        ]
        if x.dim() < 5:
            choices.append((f"unsqueeze{dim}", lambda x: x.unsqueeze(dim)))
        if ones and x.dim() > 2:
            one = rng.choice(ones)
            choices.append((f"squeeze{one}", lambda x: x.squeeze(one)))
            wide = [3 if d == one else -1 for d in range(x.dim())]
            choices.append((f"expand{one}", lambda x: x.expand(wide)))
        if x.dim() == 4:
            weight = torch.randn(rng.choice([1, 2, 4]), x.shape[1], 1, 1)
            choices += [("conv", lambda x: F.conv2d(x, weight))] * 3
        return rng.choice(choices)

    def __call__(self, x):
        for _, step in self.steps:
            x = step(x)
        return x


@pytest.mark.parametrize("seed", range(CHAINS))
def test_chain(seed):
    chain = Chain(seed)
    same(chain, chain.x)
