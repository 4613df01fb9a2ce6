"""33 architectures of Hugging Face in strict mode, with static and with dynamic shapes.

A graph is captured whole (``fullgraph``), so that one compilation is the least there can be and
backend="eager" needs as many; where a model breaks its graph the two counts are compared.
"""

import pytest
import torch
from hf_models import MODELS
from support import assert_error_rule, count_graphs, in_double, listen, toroid

# Complex numbers have no kernels: these calls are external, and no others.
EXTERNAL = {"fnet": {"aten.view_as_real.default"}}
BREAKS = {"longformer"}


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def exact(model, call):
    """The float64 answer, with tensors made inside in float64 as well."""
    torch.set_default_dtype(torch.float64)
    try:
        return in_double(model, (), call)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
def test_model(name, dynamic):
    make, inputs = MODELS[name]
    model = make().eval()
    calls = [inputs(2, n) for n in ((20, 33, 9) if dynamic else (20,))]
    options = {"dynamic": True} if dynamic else {}
    strict = {} if name in EXTERNAL else {"options": {"strict": True}}
    compiled = toroid(model, fullgraph=name not in BREAKS, **strict, **options)
    with listen() as found:
        results = [compiled(**calls[0])]
        first = len(found)
        results += [compiled(**call) for call in calls[1:]]
    least = 1
    if dynamic and name in BREAKS:
        least = first  # PyTorch takes half a minute to count
    elif len(found) > 1:
        least = count_graphs(lambda call: model(**call), [(c,) for c in calls], "eager", **options)
    assert len(found) == least
    assert all(report.native > 0 and report.fallback is None for report in found)
    assert {e.target for r in found for e in r.externals} == EXTERNAL.get(name, set())
    for call, got in zip(calls, results, strict=True):
        assert_error_rule(dict(got), dict(model(**call)), dict(exact(model, call)))
