"""The demo and the benchmark run to their ends."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers as T
from toroid import tunable

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_demo(capsys):
    load(ROOT / "examples" / "demo.py").main(["--sentences", "20", "--batch", "8"])
    text = capsys.readouterr().out
    assert "with 1 compiled graph(s) for all lengths" in text
    assert float(text.split("between embeddings is ")[1].split()[0].rstrip(".")) < 1e-5
    assert "railway travel at night?" in text and "The night train" in text
    assert "1 graph, 0 graph breaks" in text and "0 external nodes" in text


@pytest.fixture
def tiny(monkeypatch):
    """A model of the bench by this name, and the bench's modules to import."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))  # as `python bench/run.py` has it
    import models

    config = T.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )

    def tiny():
        model = models.OneTensor(T.BertModel(config), ["input_ids"], "last_hidden_state")
        return model, (models.tokens(1, 8),)

    monkeypatch.setitem(models.MODELS, "tiny", tiny)


def test_bench(capsys, tmp_path, monkeypatch, threads, tiny):
    run = load(ROOT / "bench" / "run.py")

    def broken(model, inputs, threads):
        raise RuntimeError("this engine does not work")

    monkeypatch.setitem(run.ENGINES, "broken", broken)
    file = tmp_path / "out.json"
    arguments = ["--models", "tiny", "--seconds", "0.1", "--threads", "1", "--json", str(file)]
    assert run.main([*arguments, "--engines", "eager,toroid"]) == 0
    rows = json.loads(file.read_text())["results"]["tiny"]
    assert rows["eager"]["ratio"] == rows["eager"]["error_ratio"] == 1
    assert rows["toroid"]["ms"] > 0 and 0 < rows["toroid"]["error_ratio"] < 3
    draw = load(ROOT / "bench" / "draw.py")
    page = tmp_path / "page.md"
    page.write_text("\n".join(["before", *draw.MARKS, "between", *draw.STEP_MARKS, "after", ""]))
    draw.draw(file, tmp_path / "bench.svg", page)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "| tiny | " in text
    assert "\nbetween\n" in text and text.count("| tiny | ") == 2
    assert ">tiny</text>" in (tmp_path / "bench.svg").read_text()
    assert "tiny: linear" in (tmp_path / "roofline.svg").read_text()
    record = json.loads(file.read_text())
    record["engines"] += ["onnxruntime", "openvino"]
    record["results"]["tiny"] |= {"onnxruntime": {"ratio": 0.75}, "openvino": {"missing": "no"}}
    file.write_text(json.dumps(record))
    draw.draw(file, tmp_path / "bench.svg", page)
    drawn = (tmp_path / "bench.svg").read_text()
    assert ">0.75</text>" in drawn and ">onnxruntime</text>" in drawn and "openvino" not in drawn
    assert "| onnxruntime |" in page.read_text() and "openvino" not in page.read_text()
    assert run.main([*arguments, "--engines", "eager,broken"]) == 1
    assert "this engine does not work" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run.main(["--models", "no_such_model"])
    assert "is none of bert, minilm, gpt2, llama" in capsys.readouterr().err


def test_the_documents_show_a_record(tmp_path):
    """The picture and the table are what bench/draw.py makes of a file in bench/results."""
    draw = load(ROOT / "bench" / "draw.py")
    page, picture = ROOT / "docs/reference/measurements.md", ROOT / "docs/images/bench.svg"
    copies = tmp_path / page.name, tmp_path / picture.name
    shutil.copy(page, copies[0])
    for record in (ROOT / "bench" / "results").glob("*.json"):
        draw.draw(record, copies[1], copies[0])
        if copies[0].read_text() == page.read_text():
            measured = json.loads(record.read_text())
            titles = draw.ratios(measured, draw.others(measured)[0])
            assert all(f">{title}</text>" in picture.read_text() for title in titles)
            return
    pytest.fail("no file in bench/results gives this page: run bench/draw.py")


def test_tuned(capsys, tmp_path, monkeypatch, threads, tiny):
    monkeypatch.setenv("TOROID_TUNABLEOP_UNTUNED_FILENAME", "")  # the script sets it
    results = tmp_path / "results.csv"
    tuned = load(ROOT / "bench" / "tuned.py")
    arguments = ["--models", "tiny", "--seconds", "0.1", "--results", str(results)]
    before = tunable.get_filename()
    try:
        tuned.main(arguments)
        first = capsys.readouterr().out
        tuned.main(arguments)
    finally:
        tunable.set_filename(before)
        tunable.tuning_enable()
    rows = [line for line in results.read_text().splitlines() if not line.startswith("Validator")]
    assert f"{len(rows)} operators tuned: gain " in first and len(rows) > 3
    assert "times as fast" in first and "geometric mean" in first
    assert "0 operators tuned\n" in capsys.readouterr().out  # rows are not measured again
