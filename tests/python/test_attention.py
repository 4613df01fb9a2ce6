"""Attention in its usual spellings becomes one step, with eager's answers for hidden rows too."""

import math

import pytest
import torch
import torch.nn.functional as F
from toroid.report import explain

B, H, M, N, D = 2, 4, 9, 13, 16


def additive(rows_hidden=()):
    mask = torch.zeros(B, 1, M, N)
    mask[:, :, :, N - 3 :] = -math.inf
    for row in rows_hidden:
        mask[:, :, row] = -math.inf
    return mask


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def divided(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D), -1) @ v


def scaled_query(q, k, v):
    return torch.softmax((q * D**-0.5) @ k.transpose(-1, -2), -1) @ v


def both_scaled(q, k, v):
    s = D**-0.25
    return torch.softmax((q * s) @ (k.transpose(-1, -2) * s), -1) @ v


def added(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25 + additive().to(q), -1) @ v


def added_with_hidden_row(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25 + additive([2]).to(q), -1) @ v


def chosen(q, k, v):
    keep = (additive() == 0).expand(B, H, M, N)
    scores = torch.where(keep, q @ k.transpose(-1, -2), -math.inf)
    return torch.softmax(scores, -1) @ v


def heads_in_the_batch(q, k, v):
    q, k, v = (x.reshape(B * H, -1, D) for x in (q, k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / 4, -1), v)


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def sdpa_without_batch(q, k, v):
    return F.scaled_dot_product_attention(q[0], k[0], v[0])


def sdpa_with_hidden_row(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=additive([0, 5]))


def sdpa_without_batch_with_hidden_row(q, k, v):
    return F.scaled_dot_product_attention(q[0], k[0], v[0], attn_mask=additive([1])[0])


SPELLINGS = [
    plain,
    divided,
    scaled_query,
    both_scaled,
    added,
    added_with_hidden_row,
    chosen,
    heads_in_the_batch,
    sdpa,
    sdpa_without_batch,
    sdpa_with_hidden_row,
    sdpa_without_batch_with_hidden_row,
]


@pytest.mark.parametrize("f", SPELLINGS, ids=lambda f: f.__name__)
def test_spelling(f):
    torch.manual_seed(0)
    q, k, v = torch.randn(B, H, M, D), torch.randn(B, H, N, D), torch.randn(B, H, N, D)
    with torch.no_grad():
        report = explain(f, q, k, v, options={"strict": True})
        want = f(q, k, v)
    torch.testing.assert_close(report.result, want, rtol=1e-4, atol=1e-5, equal_nan=True)
    (graph,) = report.graphs
    steps = graph.tables()["steps"]
    assert steps.count(" attention ") >= 1, steps
    assert " gemm " not in steps and " rows " not in steps, steps


def test_scores_that_are_used_twice_stay():
    def f(q, k, v):
        p = torch.softmax(q @ k.transpose(-1, -2), -1)
        return p @ v, p

    torch.manual_seed(0)
    q, k, v = torch.randn(B, H, M, D), torch.randn(B, H, N, D), torch.randn(B, H, N, D)
    with torch.no_grad():
        report = explain(f, q, k, v)
        want = f(q, k, v)
    for a, b in zip(report.result, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert " attention " not in report.graphs[0].tables()["steps"]


def test_layers_share_a_copy_of_a_mask():
    """T5's positions lie with the heads innermost: rows of them are read by every layer."""
    torch.manual_seed(0)
    q, k, v, table = *(torch.randn(2, 8, 37, 16) for _ in range(3)), torch.randn(37, 37, 8)

    def f(q, k, v, table):
        mask = table.permute(2, 0, 1)[None]
        first = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return F.scaled_dot_product_attention(first, k, v, attn_mask=mask)

    with torch.no_grad():
        report = explain(f, q, k, v, table, options={"strict": True})
        steps = [line.split()[1] for line in report.graphs[0].tables()["steps"].splitlines()]
        compiled = torch.compile(f, backend="toroid", options={"strict": True})
        torch.testing.assert_close(compiled(q, k, v, table), f(q, k, v, table))
    assert steps.count("copy") == 1 and steps.count("attention") == 2
