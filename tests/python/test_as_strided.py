"""as_strided looks at memory: a graph input's may be more than its elements, and start before them.

All run under `strict`, so that an answer of PyTorch is a failure.
"""

import pytest
import torch
from support import assert_same, toroid

BASE = torch.arange(120.0)
DYNAMIC = pytest.mark.parametrize("dynamic", [False, True, None])


def compiled(f, dynamic):
    return toroid(f, dynamic=dynamic, fullgraph=True, options={"strict": True})


def check(f, calls, dynamic):
    ours = compiled(f, dynamic)
    for args in calls:
        assert_same(ours(*args), f(*args))


def windows(x):
    """Beside a known size a computed one, in the strides of the input itself."""
    (a, b), (c, d) = x.shape, x.stride()
    return x.as_strided((a // 2, 2, b), (2 * c, c, d)) * 2


WITHIN = {
    "row-major": [BASE[:12].view(4, 3), BASE[30:60].view(6, 5)],
    "transposed": [BASE[:12].view(3, 4).t(), BASE[1:31].view(5, 6).t()],
    "gaps": [BASE[:24].view(4, 6)[:, :3], BASE[3:63].view(6, 10)[:, 2:7]],
    "steps": [BASE[:48].view(8, 6)[::2, ::2], BASE.view(12, 10)[::2, ::2]],
}


@DYNAMIC
@pytest.mark.parametrize("name", WITHIN)
def test_windows_of_an_input(name, dynamic):
    check(windows, [(x,) for x in WITHIN[name]], dynamic)


@DYNAMIC
def test_the_offset_counts_from_the_start_of_memory(dynamic):
    def f(x):
        return x.as_strided((2, 3), (5, 1), 1) + 1

    check(f, [(x,) for x in (BASE[:20], BASE[20:40], BASE[41:73], BASE[7:1:2])], dynamic)


@DYNAMIC
def test_without_an_offset_it_begins_at_the_tensor(dynamic):
    """What is read may lie behind the tensor's last element."""

    def f(x):
        return x.as_strided((2, 3), (5, 1)) + 1

    check(f, [(x,) for x in (BASE[:20], BASE[20:40], BASE[40:42], BASE[50:70:3])], dynamic)


@DYNAMIC
def test_of_a_view_it_looks_at_the_memory_behind(dynamic):
    def f(x):
        rows = x[1:].t()
        first, second = rows.split([2, 3])
        return (
            rows.as_strided((2, 2), (1, 3)) + 1,
            second.as_strided((2,), (4,)) + 1,
            first.unsqueeze(0).as_strided((2,), (4,), 2) + 1,
            second[1].expand(2, x.shape[0] - 1).as_strided((3,), (1,)) + 1,
        )

    check(f, [(BASE[:20].view(4, 5),), (BASE[10:50].view(8, 5),)], dynamic)


@DYNAMIC
def test_of_a_view_of_a_computed_tensor(dynamic):
    def f(x):
        y = (x * 2).t()[1:]
        z = (x + 1).view(-1)[2:]
        return y.as_strided((2, 2), (3, 1)) + 1, z.as_strided((2, 3), (1, 2)) + 1, y + 1

    check(f, [(BASE[:20].view(4, 5),), (BASE[10:50].view(8, 5),)], dynamic)


@DYNAMIC
def test_a_returned_view_shares_the_memory_of_the_input(dynamic):
    memory = BASE.clone()
    x = memory[4:24].view(4, 5).t()
    y = compiled(lambda x: x.as_strided((x.shape[0], 2), (1, 5)), dynamic)(x)
    assert y.data_ptr() == x.data_ptr() and y.stride() == (1, 5)
    memory[4] = -1
    assert y[0, 0] == -1


@DYNAMIC
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool])
def test_types(dtype, dynamic):
    check(lambda x: x.as_strided((2, 2), (1, 2), 3).clone(), [(BASE[6:].to(dtype),)], dynamic)


@pytest.mark.parametrize("dynamic", [True, None])
def test_memory_that_is_too_small(dynamic):
    def of_input(x, n):
        return x.as_strided((n,), (2,)) + 1

    def of_computed(x, n):
        return (x + 1).as_strided((n,), (2,)) + 1

    for f in (of_input, of_computed):
        ours = compiled(f, dynamic)
        for x, n in ((BASE, 5), (BASE, 7), (BASE[:12].clone(), 6)):
            assert_same(ours(x, n), f(x, n))
        with pytest.raises(RuntimeError, match="out of bounds"):
            f(BASE[:12].clone(), 7)
        with pytest.raises(RuntimeError, match="out of bounds"):
            ours(BASE[:12].clone(), 7)


@DYNAMIC
def test_an_empty_view_may_begin_at_the_end(dynamic):
    check(lambda x: x.as_strided((0, 3), (3, 1), 12) + 1, [(BASE[:12].clone(),)], dynamic)


@DYNAMIC
def test_of_an_empty_tensor_in_a_memory(dynamic):
    check(lambda x: x.as_strided((2, 3), (3, 1)) + 1, [(BASE[6:6],)], dynamic)


@DYNAMIC
@pytest.mark.parametrize("x", [BASE[7], BASE[3:50:2], BASE[:60].view(3, 4, 5).permute(2, 0, 1)[1:]])
def test_a_stride_that_guards_have_fixed(x, dynamic):
    """The stride 1 is an input of the graph that a guard makes a number."""

    def f(x):
        return x.as_strided((2,), (1,), x.storage_offset())

    torch._dynamo.reset()
    ours = torch.compile(f, backend="toroid", dynamic=dynamic)(x)  # Dynamo may leave it to eager
    assert_same(ours, f(x))
    assert ours.data_ptr() == f(x).data_ptr()
