"""PyTorch's own inspector and depyf work beside a compiled model."""

from __future__ import annotations

import depyf
import pytest
import torch
from support import toroid


def branch(x):
    y = torch.relu(x) * 2
    torch._dynamo.graph_break()
    return torch.softmax(y + 1, -1)


def whole(x):
    return torch.softmax(torch.relu(x) * 2 + 1, -1)


@pytest.mark.parametrize(("f", "graphs"), [(whole, 1), (branch, 2)])
def test_dynamo_explain(f, graphs):
    x = torch.randn(3, 5)
    compiled = toroid(f)
    want = f(x)
    assert torch.allclose(compiled(x), want)
    assert torch._dynamo.explain(f)(x).graph_count == graphs
    # What is explained may itself be compiled.
    assert torch._dynamo.explain(compiled)(x).graph_count == graphs
    assert torch.allclose(compiled(x), want)


@pytest.mark.filterwarnings("ignore:.*You are trying to debug")
def test_depyf(tmp_path):
    compiled = toroid(whole, options={"strict": True})
    with depyf.prepare_debug(str(tmp_path)):
        for rows in (3, 4):
            x = torch.randn(rows, 5)
            assert torch.allclose(compiled(x), whole(x))
    texts = {path.name: path.read_text() for path in tmp_path.glob("*.py")}
    assert "full_code_for_whole_0.py" in texts
    graphs = [text for name, text in texts.items() if "Forward_graph" in name]
    assert graphs and all("softmax" in text for text in graphs)
    assert torch.allclose(compiled(x), whole(x))


@pytest.mark.filterwarnings("ignore")
def test_depyf_where_the_graph_breaks(tmp_path):
    """depyf 0.20 cannot decompile what Dynamo makes of such a frame, and says so; answers stay."""
    compiled = toroid(branch)
    x = torch.randn(3, 5)
    with depyf.prepare_debug(str(tmp_path)):
        assert torch.allclose(compiled(x), branch(x))
    assert torch.allclose(compiled(x), branch(x))
