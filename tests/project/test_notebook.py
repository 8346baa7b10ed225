"""The notebooks of the gallery hold the outputs that their cells give."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest

from docs.generators.notebook_page import NOTEBOOKS, executed, page

every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    return found


def needs(*names: str) -> None:
    for name in names:
        pytest.importorskip(name, reason=f"{name} is not installed")


@every_notebook
def test_the_cells_give_what_is_stored(name: str) -> None:
    needs("nbclient", "nbformat", "ipykernel")
    made = executed(NOTEBOOKS[name])
    for cell, before in zip(made.cells, stored(name)["cells"], strict=True):
        assert cell.cell_type == before["cell_type"]
        if cell.cell_type == "code":
            assert cell.execution_count == before["execution_count"]
            text = importlib.import_module("nbformat").v4.writes(
                importlib.import_module("nbformat").v4.new_notebook(cells=[cell])
            )
            assert json.loads(text)["cells"][0]["outputs"] == before["outputs"], cell.source


@every_notebook
def test_nothing_of_a_machine_is_stored(name: str) -> None:
    text = NOTEBOOKS[name].read_text(encoding="utf-8")
    assert not re.search(r'/tmp|/home|/root|\\\\Users|"version"|timestamp', text)
    assert set(stored(name)["metadata"]) == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in stored(name)["cells"])


@pytest.mark.parametrize(
    ("name", "captions"),
    [
        (
            "quantising",
            "x: DT_FP32 [16, 64]|2.5: FP32 -&gt; INT32|y: DT_INT8 [16, 64]|Outputs|Outputs",
        ),
        (
            "fit",
            "rms_norm: does not fit in UB, at MUL (rms_norm.py:10)|rms_norm: 1 leaf, 16 tasks|"
            "kernel rms_norm, model tasks",
        ),
        ("checkpoint", "layer1.weight as INT8: DT_INT8 [64, 128]"),
    ],
)
def test_objects_are_shown_as_tables(name: str, captions: str) -> None:
    """Tensors, explanations, certainty, reasons of a fit, schedules and estimates."""
    shown = [
        "".join(output["data"]["text/html"])
        for cell in stored(name)["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    first = "|".join(re.findall("<caption>(.*?)</caption>", text)[0] for text in shown)
    assert first == captions


def test_the_page_of_the_site_shows_cells_and_outputs() -> None:
    needs("nbconvert")
    text = page("quantising")
    assert text.startswith("# A quantising kernel in a notebook")
    cells = stored("quantising")["cells"]
    assert text.count("```python\n") == sum(c["cell_type"] == "code" for c in cells)
    assert "<td>90.52% certain</td><td>927</td><td>0</td><td>97</td>" in text
    assert "100% certain" in text


@every_notebook
def test_the_chinese_page_has_the_same_cells_under_chinese_text(name: str) -> None:
    needs("nbconvert", "nbformat")
    code = re.compile(r"^```.*?^```$", re.M | re.S)
    english, chinese = page(name), page(name, "zh")
    assert code.findall(chinese) == code.findall(english) != []
    headings = re.findall(r"^#+ .*", code.sub("", chinese), re.M)
    assert len(headings) == len(re.findall(r"^#+ .*", code.sub("", english), re.M))
    assert not re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", " ".join(headings))
