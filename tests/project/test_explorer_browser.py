"""The explorer in a real browser: headless Chromium, driven by Playwright, opened as a file."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from support.environment.browser import (
    OpenedPage,
    browser,
    not_reached,
    opened,
    reached_by_tab,
    scheme,
    size,
)
from support.numbers.codes import SEED

import pypto_cast as pypto
from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import conversions
from docs.generators.explorer_page import page as explorer
from docs.generators.explorer_page import tables
from docs.generators.explorer_words import WORDS
from pypto_cast.cast.explanation import explain
from pypto_cast.dtypes.data_types import DTYPE_OF
from simulator.numbers import elementwise
from tiling.chips import A2_A3

__all__ = ["browser", "opened", "scheme", "size"]  # fixtures

VALUES = (
    *("2.5", "-2.5", "0.1", "130.0", "-0.0", "1e6", "-65520", "0x1.8p-25", "inf", "-inf", "nan"),
    *("3.0e-5", "code:1", "448.0", "1.75", "7.0", "-8"),
)
CONVERT = """
async ([steps, text]) => {
  const { module } = JSON.parse(document.getElementById("explorer-data").textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const engine = (await WebAssembly.instantiate(bytes(module))).instance.exports;
  const given = new BigUint64Array(bytes(text).buffer);
  const buffer = new BigUint64Array(engine.memory.buffer, engine.codes_at(), engine.capacity());
  buffer.set(given);
  new Uint32Array(engine.memory.buffer, engine.steps_at(), 4 * steps.length).set(steps.flat());
  engine.convert(steps.length, given.length);
  const found = new Uint8Array(buffer.slice(0, given.length).buffer);
  let out = "";
  for (let at = 0; at < found.length; at += 8192)
    out += String.fromCharCode(...found.subarray(at, at + 8192));
  return btoa(out);
}
"""


@pytest.fixture(scope="module", params=WORDS)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / f"{request.param}.html"
    path.write_text(explorer(request.param), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def english(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(explorer("en"), encoding="utf-8")
    context = browser.new_context(accept_downloads=True)
    return OpenedPage(context.new_page(), path).page


def go(page: Any, **state: str) -> None:
    page.evaluate("(hash) => { location.hash = hash; }", urlencode(state))
    page.wait_for_function(
        """(value) => document.querySelector("#explorer[data-ready] input").value === value""",
        arg=state.get("value", "2.5"),
    )


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return [text.strip() for text in found]


def test_the_page_fits_and_the_keyboard_reaches_all(opened: OpenedPage) -> None:
    page = opened.page
    page.wait_for_selector("#explorer[data-ready]")
    width = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0
    reached = reached_by_tab(page)
    assert not_reached(page) == []
    assert all(each["outlineStyle"] != "none" for each in reached)
    labelled = """() => [...document.querySelectorAll("input, select, textarea")]
        .filter((each) => !each.labels.length).length"""
    assert page.evaluate(labelled) == 0


@pytest.mark.parametrize("family", MATRIX)
def test_what_is_shown_is_what_explain_says(english: Any, family: str) -> None:
    """Every pair with a drawn value: the codes and bits of all modes, and the cut."""
    draw = random.Random(SEED)
    chip = tables()["chips"][family]
    for src, dst in MATRIX[family]:
        named = DTYPE_OF[src], DTYPE_OF[dst]
        for literal in draw.sample(VALUES, 3):
            with pypto.options(chip=chip):
                try:
                    wanted = explain(literal, *named)
                except ValueError:
                    wanted = None
            go(english, family=family, **{"from": src.name}, value=literal, casts=dst.name)
            where = f"{family} {src}-{dst} {literal}"
            if wanted is None:
                assert texts(english, ".shown .wrong") != [], where
                continue
            rows = english.locator(".shown section.cast > .wide tbody tr").all()
            cells = [[x.strip() for x in row.locator("td").all_inner_texts()] for row in rows]
            shown = [(cell[2], cell[3].replace(" ", "")) for cell in cells]
            digits = -(-dst.bits // 4)
            made = [(f"0x{x.code:0{digits}x}", x.bits.replace("|", "")) for x in wanted.results]
            assert shown == made, where
            if wanted.cut is not None:
                facts = english.locator(".shown section.cast dl").inner_text()
                cut = wanted.cut.dropped
                assert (cut if cut else WORDS["en"]["nothing"]) in facts, where
                if cut:
                    told = f"guard {wanted.cut.guard:d}, sticky {wanted.cut.sticky:d}"
                    assert told in facts, where


@pytest.mark.parametrize("family", MATRIX)
def test_every_code_of_16_bits_in_chromium(english: Any, family: str) -> None:
    for (src, dst), rule in MATRIX[family].items():
        if src.bits > 16:
            continue
        codes = np.arange(1 << src.bits, dtype=src.code_dtype)
        told = base64.b64encode(codes.astype(np.uint64).tobytes()).decode()
        resolution = resolve(family, src, dst)
        steps = tables()["rules"][family][f"{src}-{dst}"]["on"][
            "" if rule.default is None else rule.default.name
        ]
        found = base64.b64decode(english.evaluate(CONVERT, [steps, told]))
        wanted = np.empty(codes.size, dst.code_dtype)
        elementwise.run(conversions(resolution), codes, wanted)
        np.testing.assert_array_equal(np.frombuffer(found, np.uint64), wanted.astype(np.uint64))


def test_modes_of_the_readers_question(english: Any) -> None:
    """2.5 in INT8 under each mode, which is how the page begins."""
    english.evaluate("() => { location.hash = ''; }")
    go(english, family=A2_A3, **{"from": "FP16"}, value="2.5", casts="INT8")
    cells = texts(english, ".shown section.cast > .wide td")
    found = dict(zip(cells[::5], cells[1::5], strict=True))
    assert found == {"RINT": "2", "ROUND": "3", "FLOOR": "2", "CEIL": "3", "TRUNC": "2"}
    assert english.locator(".shown tr.chosen td").first.inner_text() == "TRUNC"


def test_several_casts_in_a_row_and_their_python(english: Any, tmp_path: Path) -> None:
    go(english, family=A2_A3, **{"from": "FP32"}, value="0.1", casts="FP16:RINT,INT8:CEIL:OFF")
    assert texts(english, ".shown section.cast h3") == ["FP32 → FP16", "FP16 → INT8"]
    assert texts(english, ".shown section.cast dd strong") == ["0.0999755859375", "1"]
    script = tmp_path / "copied.py"
    script.write_text(texts(english, ".shown .code")[0], encoding="utf-8")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "data=[1]" in ran.stdout


def test_a_bad_number_is_one_line_and_an_unknown_state_the_first_one(english: Any) -> None:
    go(english, family=A2_A3, **{"from": "FP16"}, value="abc", casts="INT8")
    assert texts(english, ".shown") == [WORDS["en"]["no_number"].replace("{text}", "abc")]
    go(english, family="A5", **{"from": "FP7"}, value="1", casts="FP9:NO:MAYBE")
    assert texts(english, ".shown .wrong") == []
    assert english.locator("select").first.input_value() == A2_A3


def test_many_numbers_and_a_file(english: Any, tmp_path: Path) -> None:
    go(english, family=A2_A3, **{"from": "FP16"}, value="2.5", casts="INT8:RINT")
    english.fill("textarea", "1 2.5, 130\nnan inf -0.0")
    counts = dict(
        zip(*[iter(texts(english, ".many .wide td"))] * 2, strict=True),
    )
    words = WORDS["en"]
    assert counts == {
        words["exact"]: "2",
        words["rounded"]: "1",
        words["to_limit"]: "3",
        words["to_inf"]: "0",
        words["to_nan"]: "0",
    }
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.save(tmp_path / "x.npy", x)
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    english.wait_for_selector("text=65536 numbers")
    with english.expect_download() as download:
        english.click(".many .button")
    download.value.save_as(tmp_path / "y.npy")
    wanted = pypto.cast(pypto.from_numpy(x.copy()), pypto.DT_INT8, mode=pypto.CAST_RINT).numpy()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00\x10\x00{}", b"PK\x03\x04" * 20])
def test_a_hostile_file_is_one_line(english: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    english.wait_for_function("() => document.querySelector('.many .wrong') !== null")
    assert texts(english, ".many .wrong") == [WORDS["en"]["no_npy"].replace("{name}", "x.npy")]


def test_a_file_of_another_dtype_or_cut_short_is_one_line(english: Any, tmp_path: Path) -> None:
    go(english, family=A2_A3, **{"from": "FP16"}, value="2.5", casts="INT8:RINT")
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    english.wait_for_selector("text=x.npy holds <f4; the source FP16 takes <f2")
    np.save(tmp_path / "z.npy", np.zeros(4, np.float16))
    whole = (tmp_path / "z.npy").read_bytes()
    (tmp_path / "z.npy").write_bytes(whole[:-3])
    english.set_input_files("input[type=file]", tmp_path / "z.npy")
    english.wait_for_selector("text=z.npy ends after 5 of 8 bytes")


def test_the_data_is_json_whatever_the_words_are() -> None:
    told = explorer("zh").split('id="explorer-data">')[1].split("</script>")[0]
    assert json.loads(told)["words"] == WORDS["zh"]
