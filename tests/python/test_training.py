"""Models train as in eager: losses, gradients, weights, packed weights that follow every step."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
import toroid
from small_models import GPT, ResNet, ViT, batches
from support import assert_error_rule
from toroid.report import listen

STEPS = 30


@pytest.fixture(autouse=True)
def one_thread():
    """Small models gain nothing from more, and a busy machine makes them wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def adamw(model, **which):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, **which)


OPTIMISERS = {
    "sgd": sgd,
    "adamw_foreach": functools.partial(adamw, foreach=True),
    "adamw_fused": functools.partial(adamw, fused=True),
}


def refuse_forward(gm, example_inputs):
    """The first member of the composition: takes backward graphs alone, and runs them as eager."""
    if not any(node.name.startswith("tangents") for node in gm.graph.nodes):
        raise NotImplementedError("a forward graph")
    return gm.forward


BACKENDS = {
    "toroid": lambda: "toroid",
    "composition": lambda: toroid.compose(refuse_forward, "toroid"),
    "aot": toroid.aot,
}


def train(model, loss, optimiser):
    """Losses of all steps; packs of each."""
    losses, packs = [], []
    for batch in batches(model, STEPS):
        before = toroid.stats()["frozen_packs"]
        optimiser.zero_grad()
        value = loss(*batch)
        value.backward()
        optimiser.step()
        losses.append(value.item())
        packs.append(toroid.stats()["frozen_packs"] - before)
    return torch.tensor(losses), packs


@pytest.mark.parametrize("backend", ["toroid", "composition"])
@pytest.mark.parametrize("family", [GPT, ViT, ResNet])
def test_thirty_steps(family, backend):
    """Three optimisers, from the same start, through one compiled model."""
    ours, start = family(), family().state_dict()
    theirs = family()
    compiled = torch.compile(ours.loss, backend=BACKENDS[backend]())
    for name, make in OPTIMISERS.items():
        for model in (ours, theirs):
            model.load_state_dict(start)
        got, packs = train(ours, compiled, make(ours))
        want, _ = train(theirs, theirs.loss, make(theirs))
        assert want[-3:].sum() < want[:3].sum(), name
        torch.testing.assert_close(got, want, rtol=1e-4, atol=0, msg=lambda m, n=name: f"{n}: {m}")
        # What is made of weights is made once in the first step, and once again in each.
        assert packs[0] > 0 and set(packs) == {packs[0]}, name


def gradients(model, loss, batch):
    loss(*batch).backward()
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", [GPT, ViT, ResNet])
def test_gradients(family, backend):
    """Beside float64, within twice eager's own error."""
    ours = family()
    theirs, exact = copy.deepcopy(ours), copy.deepcopy(ours).double()
    (batch,) = batches(ours, 1)
    wide = [t.double() if t.is_floating_point() else t for t in batch]
    with listen() as reports:
        got = gradients(ours, torch.compile(ours.loss, backend=BACKENDS[backend]()), batch)
    assert {r.kind for r in reports} == {"forward", "backward"}
    assert all(r.fallback is None for r in reports)
    want = gradients(theirs, theirs.loss, batch)
    true = gradients(exact, exact.loss, wide)
    assert_error_rule(got, want, true)


def test_dropout_draws_eagers_numbers():
    ours = GPT(dropout=0.1)
    theirs = copy.deepcopy(ours)
    pair = [(ours, torch.compile(ours.loss, backend="toroid")), (theirs, theirs.loss)]
    losses = []
    for model, loss in pair:
        torch.manual_seed(5)
        losses.append(train(model, loss, sgd(model))[0])
    torch.testing.assert_close(*losses, rtol=1e-4, atol=0)


#: What PyTorch's kernels do in training graphs, each with the reason that is reported.
LEFT = {
    GPT: {"_scaled_dot_product_flash_attention_for_cpu"},
    ViT: {"_scaled_dot_product_flash_attention_for_cpu", "convolution"},
    ResNet: {"convolution"},
}


@pytest.mark.parametrize("family", LEFT)
def test_what_is_left_to_pytorch(family):
    """Few nodes, and none but attention's sums of rows and the gradients of contractions."""
    model = family()
    (batch,) = batches(model, 1)
    with listen() as reports:
        torch.compile(model.loss, backend="toroid")(*batch).backward()
    forward, backward = reports
    attention = [e for e in forward.externals if e.target.endswith("attention_for_cpu.default")]
    assert forward.externals == attention
    names = {e.target.split(".")[1].removesuffix("_backward") for e in backward.externals}
    assert names == LEFT[family]
    assert backward.native > 10 * len(backward.externals)
