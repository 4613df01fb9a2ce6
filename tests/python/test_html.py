"""`Explanation.html`: the page's data, and the page as Chromium draws it."""

from __future__ import annotations

import contextlib
import dataclasses
import html.parser
import json
import shutil

import pytest
import torch
import toroid
from playwright.sync_api import sync_playwright
from torch import nn

# What would end a script element, open a tag, or end an attribute or a string.
NASTY = (
    """</script><script>throw 1</script><!-- <img src=x onerror="throw 2"> & ' " {{data}} \\u003c"""
)


@torch.library.custom_op("toroid_html::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.flip(0)


@turned.register_fake
def _(x):
    return torch.empty_like(x)


class Broken(nn.Module):
    """Two graphs with a break between them, an external node and a dynamic size."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 24), nn.Linear(24, 8)

    def forward(self, x):
        y = turned(x + self.down(torch.nn.functional.gelu(self.up(x))))
        torch._dynamo.graph_break()
        return torch.softmax(y @ x.mT, -1)


class Renamed:
    """An executable whose record calls inputs and external nodes by a nasty name."""

    def __init__(self, executable):
        self.executable = executable

    def stats(self):
        return self.executable.stats()

    def record(self):
        record = self.executable.record()
        for node in record["before"]["nodes"] + record["after"]["nodes"]:
            if node["op"] == "external":
                node["origin"], node["reason"] = NASTY, f"{NASTY}: because {NASTY}"
            if node["op"] == "input":
                node["name"] = NASTY
        return record


def explain(model, *inputs):
    with torch.no_grad():
        return toroid.explain(model, *inputs)


@pytest.fixture(scope="module")
def explained():
    x = torch.randn(5, 8)
    torch._dynamo.mark_dynamic(x, 0)
    return explain(Broken().eval(), x)


@pytest.fixture
def broken(explained):
    """A copy that a test may change."""
    graphs = [dataclasses.replace(graph) for graph in explained.graphs]
    return dataclasses.replace(explained, graphs=graphs)


class Scripts(html.parser.HTMLParser):
    """The scripts of a page by id, its title, and all that its elements refer to."""

    def __init__(self, page):
        super().__init__()
        self.scripts, self.references, self.tags, self.title = {}, [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = dict(attrs).get("id", tag)
        self.references += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        if self.tags[-1:] == ["title"]:
            self.title += data
        elif self.tags[-1:] == ["script"]:
            self.scripts[self.inside] = self.scripts.get(self.inside, "") + data

    def handle_endtag(self, tag):
        self.tags.append("")


def data_of(explanation):
    return json.loads(Scripts(explanation.html()).scripts["data"])


# ------------------------------------------------------------------ the data


def test_graphs_breaks_and_sizes(broken):
    data = data_of(broken)
    assert data["title"] == "Broken"
    assert data["breaks"] == broken.breaks and len(data["breaks"]) == 1
    first, second = data["graphs"]
    before = first["record"]["before"]
    assert len(before["symbols"]) == 1 and before["symbols"][0].startswith("s0 = ")
    (external,) = [node for node in before["nodes"] if node["op"] == "external"]
    assert external["origin"] == "toroid_html.turned.default"
    assert external["reason"].endswith("the importer does not know it")
    assert external["results"][0][1] == "float32[s0, 8]"
    assert [step["external"] for step in first["record"]["steps"]].count(True) == 1
    assert second["record"]["bound"] and second["record"]["after"]["nodes"][-1]["op"] == "output"


def test_where_nodes_went(broken):
    record = data_of(broken)["graphs"][0]["record"]
    before, after = record["before"]["nodes"], record["after"]["nodes"]

    def places(op):
        return [
            place for node, place in zip(before, record["places"], strict=True) if node["op"] == op
        ]

    steps = {step["work"]: step for step in record["steps"]}
    up, down = steps["linear {gelu_erf}"], steps["linear {add}"]
    assert places("linear") == [[up["node"]], [down["node"]]]
    assert places("gelu_erf") == [[up["node"]]]
    assert places("add") == [[down["node"]]]
    assert places("permute") == [[], []]  # an output of the tracing that nothing reads
    assert [after[place]["op"] for (place,) in places("external")] == ["external"]
    assert up["kernel"].startswith("tor_gemm_f32") and up["shape"] == "float32[5, 24]"
    assert up["flops"] == 2 * 5 * 8 * 24
    assert up["bytes"] == 4 * (5 * 8 + 8 * 24 + 24 + 5 * 24)


def test_a_graph_that_pytorch_runs():
    explanation = explain(nn.Linear(8, 8), torch.randn(4, 8))
    explanation.graphs[0].executable, explanation.graphs[0].fallback = None, NASTY
    (graph,) = data_of(explanation)["graphs"]
    assert graph == {
        "kind": "inference",
        "fallback": NASTY,
        "compiler": None,
        "stats": {},
        "record": None,
    }


def test_one_file_that_refers_to_nothing(broken, tmp_path):
    path = tmp_path / "report.html"
    broken.save(path)
    page = path.read_text(encoding="utf-8")
    assert page == broken.html()
    assert Scripts(page).references == ["data:,"]
    assert "default-src 'none'" in page and "sourceMappingURL" not in page
    assert "Permission is hereby granted" in page  # dagre's licence goes with dagre


def test_nasty_names_stay_data(broken):
    broken.name = NASTY
    broken.graphs[0].executable = Renamed(broken.graphs[0].executable)
    page = Scripts(broken.html())
    plain = Scripts(explain(nn.Linear(8, 8), torch.randn(4, 8)).html())
    assert page.tags == plain.tags
    assert page.title == f"{NASTY} · Toroid"
    data = json.loads(page.scripts["data"])
    assert data["title"] == NASTY
    assert NASTY in [node["name"] for node in data["graphs"][0]["record"]["before"]["nodes"]]


# ------------------------------------------------------------------ the page


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium")
    assert path, "missing: apt-get install --no-install-recommends chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()


@contextlib.contextmanager
def opened(browser, explanation, path, **options):
    """The page, drawn; afterwards nothing may have gone wrong or been asked of the network."""
    explanation.save(path)
    page = browser.new_page(viewport={"width": 1300, "height": 800}, **options)
    page.set_default_timeout(60_000)  # for a machine that does much else
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    ready(page, "after")
    yield page
    page.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("blob:")] == [path.as_uri()]


def ready(page, tab):
    page.wait_for_selector(f"body[data-ready={tab}]")


def show(page, tab):
    page.click(f"#tabs [data-tab={tab}]")
    if tab != "steps":
        ready(page, tab)


def middle(page, selector):
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def fill(page, selector):
    return page.eval_on_selector(selector, "element => getComputedStyle(element).fill")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_node_is_drawn(browser, broken, tmp_path, scheme):
    record = broken.graphs[0].executable.record()
    with opened(browser, broken, tmp_path / "a.html", color_scheme=scheme) as page:
        for tab in ("after", "before"):
            show(page, tab)
            nodes = record[tab]["nodes"]
            drawn = page.eval_on_selector_all(".node", "all => all.map(one => one.dataset.op)")
            assert drawn == [node["op"] for node in nodes]
            assert fill(page, ".node.external rect") != fill(page, ".node.contract rect")
            text = page.inner_html(".node.external")
            assert "toroid_html.turned.default" in text and "the importer does not know it" in text
        made = page.locator(".edge").count()
        makers = [
            {operand[0] for operand in node["operands"]} for node in record["before"]["nodes"]
        ]
        assert made == sum(len(values) for values in makers)
        assert page.inner_text("#summary .warns") == "1\ngraph breaks"
        assert "graph_break" in page.inner_text("#graphs .break")


def test_search_centres_a_node_and_tells_of_it(browser, broken, tmp_path):
    with opened(browser, broken, tmp_path / "a.html") as page:
        for query, op in [("tor_gemm_f32", "linear"), ("turned", "external"), ("LINEAR", "linear")]:
            page.fill("#search", query)
            page.press("#search", "Enter")
            assert page.locator(".node.current").count() == 1
            assert page.get_attribute(".node.current", "data-op") == op
            assert middle(page, ".node.current") == pytest.approx(middle(page, "#canvas"), abs=2)
        assert page.inner_text("#count") == "1/2"
        details = page.inner_text("#details")
        for text in (
            "Step 0",
            "linear {gelu_erf}",
            "tor_gemm_f32",
            "float32[s0, 24]",
            "1.92 kFLOP",
        ):
            assert text in details
        page.click("#details .links >> text=gelu_erf")  # what it was made from
        ready(page, "before")
        assert page.get_attribute(".node.current", "data-op") == "gelu_erf"
        assert "linear {gelu_erf}" in page.inner_text("#details")  # the step that it went to
        page.fill("#search", "no such thing")
        assert page.inner_text("#count") == "0"


def test_click_zoom_and_pan(browser, broken, tmp_path):
    with opened(browser, broken, tmp_path / "a.html") as page:
        page.click(".node.external")
        assert "the importer does not know it" in page.inner_text("#details .reason")
        before = page.locator(".node.external").bounding_box()
        x, y = middle(page, ".node.external")
        page.mouse.move(x, y)
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(50)
        after = page.locator(".node.external").bounding_box()
        assert after["width"] > 1.2 * before["width"]
        assert middle(page, ".node.external") == pytest.approx((x, y), abs=2)
        page.mouse.down()
        page.mouse.move(x + 40, y + 30, steps=4)
        page.mouse.up()
        assert middle(page, ".node.external") == pytest.approx((x + 40, y + 30), abs=2)
        assert page.locator(".node.current").count() == 1  # a drag is no click
        page.click("#zoom [data-zoom=fit]")
        page.keyboard.press("Escape")
        assert not page.is_visible("#details")


def test_other_graphs_steps_and_weights(browser, broken, tmp_path):
    records = [graph.executable.record() for graph in broken.graphs]
    with opened(browser, broken, tmp_path / "a.html") as page:
        show(page, "steps")
        assert page.locator("#table tbody tr").count() == len(records[0]["steps"])
        page.fill("#search", "gelu")
        assert page.locator("#table tbody tr").count() == 1
        page.click("#table tbody tr")
        ready(page, "after")
        assert page.get_attribute(".node.current", "data-op") == "linear"
        page.fill("#search", "")
        page.uncheck("#weights")
        ready(page, "after")
        assert page.locator(".node").count() == sum(
            not node["frozen"] for node in records[0]["after"]["nodes"]
        )
        page.check("#weights")
        page.click("#graphs .graph >> nth=1")
        count = len(records[1]["after"]["nodes"])
        page.wait_for_selector(f"#tabs [data-tab=after] small:text-is('{count}')")
        ready(page, "after")
        assert page.locator(".node").count() == count


def test_nasty_names_are_shown_as_they_are(browser, broken, tmp_path):
    broken.name = NASTY
    broken.graphs[0].executable = Renamed(broken.graphs[0].executable)
    with opened(browser, broken, tmp_path / "a.html") as page:
        assert page.inner_text("#title") == " ".join(NASTY.split())
        page.click(".node.external")
        assert page.text_content("#details .reason") == f"because {NASTY}"
        assert page.locator("#details img").count() == 0


class Deep:
    """An executable whose graph is as large as that of a big model: blocks with a residual."""

    def __init__(self, stats, blocks):
        self.stats = stats
        self.nodes = [self.node("input", "source", 0, [], name="x")]
        for _ in range(blocks):
            x = self.nodes[-1]["results"][0][0]
            weights = [x + 1 + i for i in range(3)]
            self.nodes += [
                self.node("input", "source", w, [], name=f"w{w}", frozen=True) for w in weights
            ]
            self.nodes += [
                self.node("linear", "contract", x + 4, [x, *weights[:2]]),
                self.node("gelu_erf", "map", x + 5, [x + 4]),
                self.node("linear", "contract", x + 6, [x + 5, weights[2]]),
                self.node("add", "map", x + 7, [x, x + 6]),
            ]

    def node(self, op, kind, number, operands, name=None, frozen=False):
        return {
            "op": op,
            "kind": kind,
            "name": name,
            "frozen": frozen,
            "origin": None,
            "reason": None,
            "results": [(number, "float32[8, 8]", None)],
            "operands": [(operand, None) for operand in operands],
            "attrs": [],
        }

    def record(self):
        table = {"symbols": [], "nodes": self.nodes}
        places = [[i] for i in range(len(self.nodes))]
        return {"before": table, "after": table, "places": places, "steps": [], "bound": False}


def test_a_large_graph(browser, broken, tmp_path):
    blocks = 215
    del broken.graphs[1:]
    broken.graphs[0].executable = Deep(broken.graphs[0].executable.stats, blocks)
    with opened(browser, broken, tmp_path / "a.html") as page:
        assert page.locator(".node").count() == 7 * blocks + 1 > 1500
        page.fill("#search", "gelu")
        page.press("#search", "ArrowUp")  # to the last
        assert page.inner_text("#count") == f"{blocks}/{blocks}"
        assert middle(page, ".node.current") == pytest.approx(middle(page, "#canvas"), abs=2)
