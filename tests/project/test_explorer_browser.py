"""The explorer in a real browser: headless Chromium, driven by Playwright, opened as a file."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from support.environment import upstream_wheel
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
HEADER = "{'descr': '<f2', 'fortran_order': False, 'shape': (%s), }"
HOSTILE = [
    b"",
    b"\x93NUMPY\x01\x00\x10\x00{}",
    b"PK\x03\x04" * 20,
    b"?NUMPY\x01\x00\x40\x00" + (HEADER % "0,").ljust(64).encode(),
    *(
        b"\x93NUMPY\x01\x00\x50\x00" + (HEADER % shape).ljust(80).encode() + bytes(64)
        for shape in ("3L,", "-1,", "nan", "None,")
    ),
    b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr': '<f2'",
]
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
    """Follow a link to a state, from the page that is open."""
    page.evaluate(
        """(hash) => {
            const before = location.hash;
            delete document.getElementById("explorer").dataset.ready;
            location.hash = hash;
            if (location.hash === before) dispatchEvent(new HashChangeEvent("hashchange"));
        }""",
        urlencode(state),
    )
    page.wait_for_selector("#explorer[data-ready]")


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


@pytest.mark.parametrize("language", WORDS)
def test_words_around_rules_and_commands(browser: Any, tmp_path: Path, language: str) -> None:
    """Code is an element, not backticks; a number that the script has is in its words."""
    file = tmp_path / "page.html"
    file.write_text(explorer(language), encoding="utf-8")
    page = OpenedPage(browser.new_page(), file).page
    go(page, family=A2_A3, **{"from": "FP32"}, value="0.1", casts="FP16")
    page.locator("#explorer details summary").click()
    commands = texts(page, "#explorer details td code")
    assert commands
    assert set(commands) == {"pypto-cast compare"}
    shown = page.locator("#explorer").inner_text()
    assert not set("`{}") & set(shown.replace(texts(page, ".shown .python")[0], ""))
    rules = [f"{each['text']} ({each['source']})" for each in tables()["dialects"]["FP32-FP16"]]
    assert texts(page, "#explorer details td:last-child") == rules
    mark = {"en": "(standing: documented)", "zh": "（依据：有文档依据）"}[language]
    assert texts(page, ".shown section.cast dd")[-1].endswith(mark)
    assert texts(page, ".many label")[0] == WORDS[language]["paste"].format(most="1,000")


def printed(tmp_path: Path, text: str) -> str:
    """Run a copied program; it may not warn."""
    script = tmp_path / "copied.py"
    script.write_text(text, encoding="utf-8")
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("error")
        runpy.run_path(str(script))
    return out.getvalue()


@pytest.mark.parametrize("family", MATRIX)
def test_the_copied_python_gives_the_result(english: Any, family: str, tmp_path: Path) -> None:
    """Of each pair; its number is held by every format, and rounds to no other."""
    for src, dst in MATRIX[family]:
        go(english, family=family, **{"from": src.name}, value="1", casts=dst.name)
        assert "data=[1" in printed(tmp_path, texts(english, ".shown .code")[0]), (src, dst)


@pytest.mark.parametrize(
    ("src", "value", "result"),
    [
        ("FP32", "code:0x40200000", "2.5"),
        ("FP32", "code:0xff800000", "-inf"),
        ("FP32", "nan", "nan"),
        ("FP32", "-0", "-0.0"),
        ("FP32", "007", "7.0"),
        ("FP32", "+.1", "0.0999755859375"),
        ("FP32", "0x1.8p3", "12.0"),
        ("FP32", "1e3", "1000.0"),
        ("INT32", "2.5", "2.0"),
    ],
)
def test_each_spelling_of_a_number_is_python(
    english: Any, src: str, value: str, result: str, tmp_path: Path
) -> None:
    casts = "FP16:RINT" if src == "FP32" else "FP32:RINT"
    go(english, family=A2_A3, **{"from": src}, value=value, casts=casts)
    text = texts(english, ".shown .code")[0].replace("print(y)", "print(repr(float(y.numpy()[0])))")
    assert printed(tmp_path, text).strip() == result


def test_several_casts_in_a_row_and_their_python(english: Any, tmp_path: Path) -> None:
    go(english, family=A2_A3, **{"from": "FP32"}, value="0.1", casts="FP16:RINT,INT8:CEIL:OFF")
    assert texts(english, ".shown section.cast h3") == ["FP32 → FP16", "FP16 → INT8"]
    assert texts(english, ".shown section.cast dd strong") == ["0.0999755859375", "1"]
    copied = texts(english, ".shown .code")[0]
    assert "data=[1]" in printed(tmp_path, copied)
    for satmode, result in (("ON", "127"), ("OFF", "-126")):  # upstream has another default
        casts = f"FP16:RINT,INT8:RINT:{satmode}"
        go(english, family=A2_A3, **{"from": "FP32"}, value="130", casts=casts)
        copied = texts(english, ".shown .code")[0]
        assert f"satmode=pypto.SaturationMode.{satmode}" in copied
        assert f"data=[{result}]" in printed(tmp_path, copied)


@pytest.mark.upstream
def test_upstream_compiles_the_copied_kernel(english: Any, tmp_path: Path) -> None:
    python = upstream_wheel.python_with_wheel(tmp_path)
    for casts in ("FP16:RINT,INT8:CEIL:OFF", "BF16", "INT32,FP32,FP16,INT8"):
        go(english, family=A2_A3, **{"from": "FP32"}, value="0.1", casts=casts)
        copied = texts(english, ".shown .code")[0]
        (kernel,) = upstream_wheel.kernels_in("the explorer", copied)
        compiled, said = upstream_wheel.compiled(python, kernel)
        assert compiled, said


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


@pytest.mark.parametrize(
    "x",
    [
        np.array(2.5, np.float16),
        np.zeros((0, 4), np.float16),
        np.asfortranarray(np.arange(12, dtype=np.float16).reshape(3, 4) / 4),
        np.arange(24, dtype=np.float16).reshape(2, 3, 4) / 8,
    ],
    ids=["no-dimension", "empty", "fortran", "three-dimensions"],
)
def test_results_have_the_shape_of_the_file(english: Any, tmp_path: Path, x: Any) -> None:
    go(english, family=A2_A3, **{"from": "FP16"}, value="2.5", casts="INT8:RINT")
    np.save(tmp_path / "x.npy", x)
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    english.wait_for_selector(f"text={x.size} numbers through")
    with english.expect_download() as download:
        english.click(".many .button")
    download.value.save_as(tmp_path / "y.npy")
    found = np.load(tmp_path / "y.npy")
    np.testing.assert_array_equal(found, np.rint(x).astype(np.int8), strict=True)


@pytest.mark.parametrize("dtype", [">f2", "O", [("a", "<f2"), ("b", "<i4")], "<U3", "?"])
def test_a_file_of_no_numbers_of_the_source_names_what_it_has(
    english: Any, tmp_path: Path, dtype: Any
) -> None:
    go(english, family=A2_A3, **{"from": "FP16"}, value="2.5", casts="INT8:RINT")
    x = np.zeros(4, dtype)
    np.save(tmp_path / "x.npy", x, allow_pickle=True)
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    found = np.lib.format.dtype_to_descr(x.dtype)
    told = f"x.npy holds {found}; the source FP16 takes <f2"
    english.wait_for_function(
        "(told) => document.querySelector('.many .wrong')?.textContent === told", arg=told
    )


@pytest.mark.parametrize("content", HOSTILE)
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


# --- Links ----------------------------------------------------------------------------------------

FP16_STATE = {"family": A2_A3, "from": "FP16", "value": "2.5", "casts": "INT8:RINT"}
SPECIAL = np.array([0x7E01, 0xFC00, 0x8000, 0x0001, 0x4100, 0x7BFF], np.uint16).view(np.float16)


def shared_link(page: Any) -> str:
    """The link that the page shows, which is its own address."""
    link = texts(page, ".shown .code")[-1]
    assert page.url == link
    return link


def link_note(page: Any) -> str:
    return texts(page, ".shown .note")[-1]


def results_of(opened: Any, path: Path) -> Any:
    with opened.expect_download() as download:
        opened.click(".many a.button")
    download.value.save_as(path)
    return np.load(path)


@pytest.fixture
def stranger(browser: Any) -> Iterator[Any]:
    """A browser that never saw the page; it may complain of nothing."""
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []
    context.close()


def test_a_link_opens_the_numbers_that_were_pasted(
    english: Any, stranger: Any, tmp_path: Path
) -> None:
    go(english, **FP16_STATE)
    assert "up to 8,192 bytes" in link_note(english)
    english.fill("textarea", "code:0x7e01 -inf -0.0, code:1\n2.50 65504")
    assert link_note(english) == WORDS["en"]["carries"].format(count=6, bytes=12, most="8,192")
    link = shared_link(english)
    stranger.goto(link)
    stranger.wait_for_selector("#explorer[data-ready]")
    assert shared_link(stranger) == link
    typed = "code:0x7e01 -inf -0 5.960464477539063e-8 2.5 65504"
    assert stranger.input_value("textarea") == typed
    assert texts(stranger, ".many td") == texts(english, ".many td")
    found = [results_of(page, tmp_path / "y.npy") for page in (english, stranger)]
    wanted = pypto.cast(pypto.from_numpy(SPECIAL), pypto.DT_INT8, mode=pypto.CAST_RINT).numpy()
    for each in found:
        np.testing.assert_array_equal(each, wanted, strict=True)


@pytest.mark.parametrize(
    "x",
    [
        np.asfortranarray(np.arange(12, dtype=np.float16).reshape(3, 4) / 4),
        np.zeros((0, 4), np.float16),
        np.array(2.5, np.float16),
        np.arange(4096, dtype=np.float16).reshape(64, 64) / 64,
        SPECIAL,
    ],
    ids=["fortran", "empty", "no-dimension", "at-the-limit", "special"],
)
def test_a_link_carries_a_small_file(english: Any, stranger: Any, tmp_path: Path, x: Any) -> None:
    go(english, **FP16_STATE | {"casts": "FP32"})
    np.save(tmp_path / "x.npy", x)
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    english.wait_for_selector(f"text={x.size} numbers through")
    stranger.goto(shared_link(english))
    stranger.wait_for_selector(f"text={x.size} numbers through")
    assert shared_link(stranger) == shared_link(english)
    found = results_of(stranger, tmp_path / "y.npy")
    np.testing.assert_array_equal(found, x.astype(np.float32), strict=True)
    assert np.isfortran(found) == np.isfortran(x)
    if x.ndim != 1:
        shape = repr(x.shape)
        assert texts(stranger, ".many p")[0].startswith(f"The link: FP16, shape {shape}")
        stranger.click(".many p button")
        assert texts(stranger, ".many table") == []
        assert "numbers=" not in stranger.url


def test_a_link_says_that_it_leaves_a_large_file_out(
    english: Any, stranger: Any, tmp_path: Path
) -> None:
    go(english, **FP16_STATE)
    np.save(tmp_path / "x.npy", np.zeros(4097, np.float16))
    english.set_input_files("input[type=file]", tmp_path / "x.npy")
    english.wait_for_selector("text=4097 numbers through")
    said = {"count": "4,097", "bytes": "8,194", "most": "8,192"}
    assert link_note(english) == WORDS["en"]["carries_not"].format(**said)
    assert "numbers=" not in shared_link(english)
    english.fill("textarea", "1 two")
    assert link_note(english) == WORDS["en"]["carries_refused"]
    assert "numbers=" not in shared_link(english)


def test_a_changed_source_takes_the_numbers_or_refuses_them(english: Any) -> None:
    go(english, **FP16_STATE, numbers="FP16.2.C.QABBAA")
    assert english.input_value("textarea") == "2 2.5"
    english.locator("select").nth(1).select_option("FP32")
    assert "numbers=FP32.2.C.QAAAAEAgAAA" in shared_link(english)
    go(english, **FP16_STATE, numbers="FP16.2x1.C.QABBAA")
    english.locator("select").nth(1).select_option("FP32")
    assert texts(english, ".many .wrong") == ["The link holds FP16; the source FP32 takes FP32"]
    english.locator("select").nth(1).select_option("FP16")
    assert texts(english, ".many .wrong") == []


@pytest.mark.parametrize(
    ("numbers", "key"),
    [
        ("FP16.2.C.QQBB", "cut_short"),
        ("FP32.1.C.QQBBAA", "no_dtype"),
        (f"FP16.9999.C.{'A' * 200_000}", "link_big"),
        ("<img src=x onerror=alert(1)>", "link_broken"),
    ],
)
def test_hostile_numbers_are_one_line_and_the_page_works(
    stranger: Any, tmp_path: Path, numbers: str, key: str
) -> None:
    path = tmp_path / "page.html"
    path.write_text(explorer("zh"), encoding="utf-8")
    stranger.goto(f"{path.as_uri()}#{urlencode({**FP16_STATE, 'numbers': numbers})}")
    stranger.wait_for_selector("#explorer[data-ready]")
    (told,) = texts(stranger, ".many .wrong")
    assert told.endswith(WORDS["zh"][key].split("}")[-1])
    assert link_note(stranger) == WORDS["zh"]["carries_refused"]
    assert "numbers=" not in shared_link(stranger)
    stranger.fill("textarea", "2.5")
    assert texts(stranger, ".many .wrong") == []
    assert "numbers=FP16.1.C.QQA" in shared_link(stranger)


def test_hostile_states_are_told_and_the_page_works(stranger: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(explorer("en"), encoding="utf-8")
    state = {"family": "A9", "value": "9" * 10**5, "casts": "INT8,FP16," * 10**4, "__proto__": "1"}
    stranger.goto(f"{path.as_uri()}#{urlencode(state)}")
    stranger.wait_for_selector("#explorer[data-ready]")
    assert "A9" in texts(stranger, ".shown .note")[0]
    assert texts(stranger, ".shown .wrong") == [
        WORDS["en"]["too_long"].format(count="100,000", most="2,000")
    ]
    assert stranger.locator("form fieldset").count() == 17
    assert not stranger.get_by_text(WORDS["en"]["add"]).count()
    stranger.get_by_label("Number", exact=True).fill("1")
    assert texts(stranger, ".shown .wrong") == []
    assert len(texts(stranger, ".shown .note")) == 1


def test_an_address_of_a_heading_leaves_the_state(english: Any) -> None:
    go(english, **FP16_STATE | {"value": "7.5"})
    english.evaluate("() => { location.hash = '#explorer-many'; }")
    english.wait_for_function("() => location.hash === '#explorer-many'")
    assert english.get_by_label("Number", exact=True).input_value() == "7.5"


@pytest.mark.parametrize("language", WORDS)
def test_a_copied_link_is_the_whole_link(browser: Any, tmp_path: Path, language: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(explorer(language), encoding="utf-8")
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    numbers = f"FP16.4096.C.{'A' * 10_923}"
    page.goto(f"{path.as_uri()}#{urlencode({**FP16_STATE, 'numbers': numbers})}")
    page.wait_for_selector("#explorer[data-ready]")
    page.get_by_role("button", name=WORDS[language]["copy"]).last.click()
    page.get_by_role("button", name=WORDS[language]["copied"]).wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert numbers in copied
    assert copied == page.url
    context.close()


def test_the_data_is_json_whatever_the_words_are() -> None:
    told = explorer("zh").split('id="explorer-data">')[1].split("</script>")[0]
    assert json.loads(told)["words"] == WORDS["zh"]
