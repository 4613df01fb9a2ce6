"""Weights are prepared once, follow every kind of change, and die with their tensors."""

import copy
import gc

import pytest
import torch
import torch.nn.functional as F
import toroid as package
from support import assert_same, reports, toroid


def packs():
    return package.stats()["frozen_packs"]


def packs_of(f, *args):
    before = packs()
    f(*args)
    return packs() - before


class Block(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.up = torch.nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.up(x))


def test_weights_are_packed_once():
    model = Block()
    compiled = toroid(model)
    x = torch.randn(4, 16)
    with torch.no_grad():
        assert packs_of(compiled, x) >= 1
        assert packs_of(lambda: [compiled(x) for _ in range(100)]) == 0


def test_six_blocks_of_one_class_share_a_graph_and_keep_six_packs():
    blocks = torch.nn.Sequential(*[Block() for _ in range(6)])
    twin = copy.deepcopy(blocks)
    x = torch.randn(4, 16)
    with torch.no_grad():
        packs_for_one = packs_of(toroid(Block()), x)
        torch._dynamo.reset()
        for block in blocks:
            block.compile(backend="toroid")
        before = packs()
        found, _ = reports(blocks, x)
        for _ in range(1000):
            got = blocks(x)
        assert len(found) == 1
        assert packs() - before == 6 * packs_for_one
        assert_same(got, twin(x), atol=1e-5)


def test_a_freed_models_weights_are_not_mistaken_for_a_new_ones():
    @torch.compile(backend="toroid")
    def run(model, x):
        return model(x)

    x = torch.randn(2, 16)
    entries = package.stats()["frozen_entries"]
    with torch.no_grad():
        for _ in range(30):
            model = Block()
            for _ in range(3):
                assert_same(run(model, x), model(x), atol=1e-5)
            del model
            gc.collect()
    torch._dynamo.reset()
    gc.collect()
    assert package.stats()["frozen_entries"] <= entries + 4


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def adamw_foreach(model):
    return torch.optim.AdamW(model.parameters(), lr=0.1, foreach=True)


def adamw_fused(model):
    return torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)


@pytest.mark.parametrize("make", [sgd, adamw_foreach, adamw_fused])
def test_optimisers_move_the_weights(make):
    model = Block()
    compiled = toroid(model)
    optimiser = make(model)
    x = torch.randn(4, 16)
    for _ in range(6):
        with torch.no_grad():
            assert_same(compiled(x), model(x), atol=1e-5)
        optimiser.zero_grad()
        model(x).pow(2).sum().backward()
        optimiser.step()
    with torch.no_grad():
        assert_same(compiled(x), model(x), atol=1e-5)


def test_a_fused_step_that_hits_no_sampled_word():
    """It leaves the version counter alone, and rows and columns without gradients as they are."""
    model = torch.nn.Linear(16, 16, bias=False)
    compiled = toroid(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.0, fused=True)
    x = torch.randn(4, 16)
    sparse = x.clone()
    sparse[:, [0, 1, 14, 15]] = 0
    for _ in range(3):
        with torch.no_grad():
            assert_same(compiled(x), model(x), atol=1e-5)
        optimiser.zero_grad()
        model(sparse).pow(2).sum().backward()
        optimiser.step()
    with torch.no_grad():
        assert_same(compiled(x), model(x), atol=1e-5)


def test_a_compiled_fused_optimiser():
    model = torch.nn.Linear(16, 16)
    compiled = toroid(model)
    optimiser = adamw_fused(model)
    x = torch.randn(4, 16)
    with torch.no_grad():
        compiled(x)
    step = torch.compile(optimiser.step, backend="toroid")
    for _ in range(2):
        optimiser.zero_grad()
        model(x).pow(2).sum().backward()
        step()
        with torch.no_grad():
            assert_same(compiled(x), model(x), atol=1e-5)


def test_training_through_the_compiled_model():
    ours, theirs = Block(), None
    theirs = copy.deepcopy(ours)
    compiled = toroid(ours)
    pair = [(compiled, sgd(ours)), (theirs, sgd(theirs))]
    for _ in range(5):
        x = torch.randn(4, 16)
        for model, optimiser in pair:
            optimiser.zero_grad()
            model(x).pow(2).mean().backward()
            optimiser.step()
    assert_same(
        dict(ours.named_parameters()), dict(theirs.named_parameters()), rtol=1e-4, atol=1e-5
    )


def load_state_dict(model, other):
    model.load_state_dict(other.state_dict())


def copy_data(model, other):
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        p.data.copy_(q)


def copy_in_place(model, other):
    with torch.no_grad():
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            p.copy_(q)


def swap_data(model, other):
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        p.data = q.detach().clone()


@pytest.mark.parametrize("change", [load_state_dict, copy_data, copy_in_place, swap_data])
def test_changed_weights_are_packed_again(change):
    model, other = Block(), Block()
    compiled = toroid(model)
    x = torch.randn(4, 16)
    with torch.no_grad():
        compiled(x)
        compiled(x)
        change(model, other)
        assert_same(compiled(x), other(x), atol=1e-5)


def test_inference_mode():
    with torch.inference_mode():
        model, x = Block(), torch.randn(4, 16)
        compiled = toroid(model)
        for _ in range(3):
            assert_same(compiled(x), model(x), atol=1e-5)
        assert packs_of(lambda: [compiled(x) for _ in range(20)]) == 0
        model.up.weight.copy_(torch.randn(16, 16))
        assert_same(compiled(x), model(x), atol=1e-5)


def test_raw_writes_need_refresh():
    model = Block()
    compiled = toroid(model)
    x = torch.randn(4, 16)
    with torch.no_grad():
        compiled(x)
        model.up.weight.detach().numpy()[3, 5] += 1000
        package.refresh(model)
        assert_same(compiled(x), model(x), rtol=1e-4, atol=1e-4)


def test_a_weight_shared_by_two_modules():
    a, b = Block(), Block()
    b.up.weight = a.up.weight
    f = toroid(lambda x: a(x) + b(x))
    x = torch.randn(4, 16)
    with torch.no_grad():
        for _ in range(2):
            assert_same(f(x), a(x) + b(x), atol=1e-5)
            a.up.weight.mul_(2)


def test_a_buffer_that_the_graph_writes_is_not_frozen():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen.add_(x)
            return self.seen * 2

    model = Counter()
    compiled = toroid(model)
    x = torch.ones(3)
    with torch.no_grad():
        for n in range(1, 4):
            assert_same(compiled(x), torch.full((3,), 2.0 * n))


def test_conv_and_batch_norm_folded_then_trained_on():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    compiled = toroid(model)
    optimiser = sgd(model)
    x = torch.randn(2, 3, 8, 8)
    for _ in range(3):
        model.eval()
        with torch.no_grad():
            assert_same(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        model.train()
        optimiser.zero_grad()
        model(x).pow(2).mean().backward()
        optimiser.step()


def test_freeze_can_be_switched_off():
    model = Block()
    compiled = toroid(model, options={"freeze": False})
    x = torch.randn(4, 16)
    with torch.no_grad():
        assert packs_of(compiled, x) == 0
        assert_same(compiled(x), model(x), atol=1e-5)


def test_memory_does_not_grow_by_calls():
    model = Block(64)
    compiled = toroid(model)
    x = torch.randn(8, 64)
    with torch.no_grad():
        compiled(x)
        (report,) = reports(toroid(model, options={"threads": 1}), x)[0]
        before = report.stats
        for _ in range(200):
            compiled(x)
        after = report.stats
    assert after["arena_bytes"] == before["arena_bytes"]
    assert after["frozen_bytes"] == before["frozen_bytes"]
