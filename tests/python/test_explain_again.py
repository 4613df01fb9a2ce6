"""Explaining leaves no trace, and does not see what others compile meanwhile."""

import threading

import pytest
import torch
import toroid
from toroid.report import listen


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


@torch.no_grad()
def test_as_often_as_one_likes():
    """Dynamo gives a function's code eight compilations; explaining takes none of them."""
    model, x = Small(), torch.randn(2, 4)
    for _ in range(12):
        assert len(toroid.explain(model, x).graphs) == 1
    with listen() as found:
        torch.compile(Small(), backend="toroid", options={"strict": True})(x)
    assert len(found) == 1


@torch.no_grad()
def test_nothing_captured_is_told():
    assert "PyTorch captured nothing" in str(toroid.explain(lambda x: x, torch.ones(2)))


def test_threads_see_their_own():
    start = threading.Barrier(4)
    graphs = {}

    def work(width):
        layers = [torch.nn.Linear(width, width) for _ in range(width)]

        def model(x):
            for layer in layers:
                x = layer(x)
            return x

        start.wait()
        with torch.no_grad():
            graphs[width] = toroid.explain(model, torch.ones(1, width)).graphs

    threads = [threading.Thread(target=work, args=(width,)) for width in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {width: [g.native for g in found] for width, found in graphs.items()} == {
        width: [width] for width in (1, 2, 3, 4)
    }


@torch.no_grad()
def test_a_name_that_is_none():
    model = Small()
    model.__dict__["__qualname__"] = None
    assert toroid.explain(model, torch.ones(1, 4)).name == "Small"


@torch.no_grad()
def test_files_are_whole_or_not_there(tmp_path):
    found = toroid.explain(Small(), torch.ones(1, 4))
    with pytest.raises(OSError, match="missing/page.html'"):
        found.save(tmp_path / "missing" / "page.html")
    with pytest.raises(OSError, match=str(tmp_path)):
        found.save(tmp_path)
    found.save(tmp_path / "page.html")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_report_module_is_there_at_once():
    assert toroid.report.listen is listen
    with pytest.raises(AttributeError, match="no attribute 'rapport'"):
        toroid.rapport  # noqa: B018
