"""Objects of this package as a notebook shows them: small tables that fetch nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.cast.api import cast
from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.cast.explanation import explain
from pypto_cast.report.notebook import fragment
from pypto_cast.report.report import Table, headed


class Tables(HTMLParser):
    """Captions, and the cells of the bodies by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.captions: list[str] = []
        self.rows: list[list[str]] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "caption":
            self.captions.append("")
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if "caption" in self._inside:
            self.captions[-1] += data
        elif self._inside and self._inside[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def shown(thing: object) -> Tables:
    text = thing._repr_html_()
    assert len(text) < 20_000
    assert not re.search(r"https?:|src=|@import|url\(|<script", text)
    return Tables(text)


def test_a_tensor_shows_its_corners() -> None:
    values = np.arange(2 * 10 * 12, dtype=np.float32).reshape(2, 10, 12)
    found = shown(pypto.from_numpy(values, name="<x>"))
    assert found.captions == ["<x>: DT_FP32 [2, 10, 12], at [0]"]
    heading, *rows = found.rows
    assert heading == ["", "0", "1", "2", "…", "9", "10", "11"]
    assert [row[0] for row in rows] == ["0", "1", "2", "…", "7", "8", "9"]
    assert rows[0] == ["0", "0.0", "1.0", "2.0", "…", "9.0", "10.0", "11.0"]
    assert rows[3][1:] == ["…"] * 7
    assert rows[-1][-1] == "119.0"


@pytest.mark.parametrize("shape", [(3,), (1, 6), (6, 1), (1, 1, 2, 2)])
def test_a_small_tensor_shows_all(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    _, *rows = shown(pypto.from_numpy(values)).rows
    assert [cell for row in rows for cell in row[1:]] == [str(v) for v in values.flat]


def test_a_tensor_without_values_says_so() -> None:
    found = shown(pypto.tensor([4, 8], pypto.DT_FP16, "y"))
    assert found.captions == ["y: DT_FP16 [4, 8], no values"]
    assert found.rows == [[]]


def test_what_is_no_number_and_int4() -> None:
    x = pypto.from_numpy(np.float16([np.nan, -np.inf, -0.0, 7]))
    assert shown(x).rows[1] == ["0", "nan", "-inf", "-0.0", "7.0"]
    pypto.set_vec_tile_shapes(64)
    assert shown(cast(x, pypto.DT_INT4)).rows[1] == ["0", "0", "-8", "0", "7"]


def test_an_explanation_shows_the_cut_and_each_mode() -> None:
    found = shown(explain("0.1", pypto.DT_FP32, pypto.DT_FP16))
    assert found.captions == ["0.1: FP32 -> FP16", "By mode"]
    assert ["kept", "11001100110 x 2^-14"] in found.rows
    modes = {row[0]: row[1] for row in found.rows}
    assert (modes["CAST_RINT"], modes["CAST_CEIL"]) == ("0x2e66", "0x2e67")


def test_plans_and_tuning_results_show_tiles() -> None:
    pypto.set_vec_tile_shapes(3, 32)
    plan = plan_cast(
        (10, 64), pypto.DT_FP32, pypto.DT_FP16, pypto.CAST_RINT, pypto.SaturationMode.ON
    )
    found = shown(plan)
    assert ["tiles", "8 of [3, 32]"] in found.rows
    assert ["tails", "1 along axis 0"] in found.rows
    tuned = pypto.tune([1024, 512], pypto.DT_FP32, pypto.DT_FP16)
    found = shown(tuned)
    assert found.rows[1][:2] == ["1", str(list(tuned.best))]
    assert found.captions[1:] == [tuned.report.title, "Tiles of [1024, 512]"]
    told = dict(row for row in found.rows if len(row) == 2)
    assert told["best"].startswith(f"pypto.set_vec_tile_shapes{tuned.best}: ")
    assert told["cost set"].endswith(tuned.parameters.standing)


def test_routes_show_their_verdicts() -> None:
    made = pypto.routes(pypto.DT_INT32, pypto.DT_BF16)
    found = shown(made)
    assert len(found.rows) == 1 + len(made)
    assert found.rows[1][:2] == [str(made.best.chain), str(made.best.verdict)]


def test_text_stays_text() -> None:
    sly = "</td></style><script>alert(1)</script>"
    text = fragment(Table(caption=sly, columns=headed(sly, sly), rows=((sly, sly),)))
    assert "<script" not in text
    assert text.count("</style>") == 1
    assert Tables(text).rows == [[sly, sly], [sly, sly]]


def test_a_report_shows_its_facts_and_tables() -> None:
    found = explain("0.1", src=pypto.DT_FP32, dst=pypto.DT_FP16).report
    facts, *tables = shown(found).captions
    assert facts == found.title
    assert tables == [table.caption for table in found.tables if table.rows]
    assert found._repr_html_() == explain("0.1", src=pypto.DT_FP32, dst=pypto.DT_FP16)._repr_html_()
