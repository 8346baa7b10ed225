"""The tutorial that is a notebook holds the outputs that its cells give."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest

from docs.generators.notebook_page import NOTEBOOK, executed, page


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def needs(*names: str) -> None:
    for name in names:
        pytest.importorskip(name, reason=f"{name} is not installed")


def test_the_cells_give_what_is_stored() -> None:
    needs("nbclient", "nbformat", "ipykernel")
    made = executed()
    for cell, before in zip(made.cells, stored()["cells"], strict=True):
        assert cell.cell_type == before["cell_type"]
        if cell.cell_type == "code":
            assert cell.execution_count == before["execution_count"]
            text = importlib.import_module("nbformat").v4.writes(
                importlib.import_module("nbformat").v4.new_notebook(cells=[cell])
            )
            assert json.loads(text)["cells"][0]["outputs"] == before["outputs"], cell.source


def test_nothing_of_a_machine_is_stored() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not re.search(r'/tmp|/home|/root|\\\\Users|"version"|timestamp', text)
    assert set(stored()["metadata"]) == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in stored()["cells"])


def test_every_kind_of_table_is_shown() -> None:
    shown = [
        "".join(output["data"]["text/html"])
        for cell in stored()["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    captions = [re.findall("<caption>(.*?)</caption>", text)[0] for text in shown]
    assert (
        captions
        == ["x: DT_FP32 [16, 64]", "2.5: FP32 -&gt; INT32", "y: DT_INT8 [16, 64]"] + ["Outputs"] * 2
    )


def test_the_page_of_the_site_shows_cells_and_outputs() -> None:
    needs("nbconvert")
    text = page()
    assert text.startswith("# A quantising kernel in a notebook")
    assert text.count("```python\n") == sum(c["cell_type"] == "code" for c in stored()["cells"])
    assert "<td>90.52% certain</td><td>927</td><td>0</td><td>97</td>" in text
    assert "100% certain" in text
