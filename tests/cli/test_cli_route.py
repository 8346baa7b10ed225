"""`pypto-cast route`: the table, JSON, the atlas, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.environment.command import Command, command

import pypto_cast as pypto
from ascend_kernels.routing.chain_ranking import STRETCHES, differing_shares
from ascend_kernels.routing.chains import chain_named
from simulator.numbers import formats as f
from simulator.numbers.rounding import RoundMode

__all__ = ["command"]  # a fixture


def test_routes_are_shown_with_verdicts_and_code(command: Command) -> None:
    ran = command("route", "--from", "fp32", "--to", "int8", "--mode", "rint")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "DT_FP32 -> DT_INT8 CAST_RINT"
    best = next(line for line in lines if line.startswith("FP32 -> FP16 CAST_ODD -> INT8"))
    assert "exact on all 4,294,967,296 codes, shown" in best
    kernel = pypto.routes(pypto.DT_FP32, pypto.DT_INT8).best.kernel()
    assert ran.out.endswith(f"\n{kernel}")


def test_differences_are_shown(command: Command) -> None:
    out = command("route", "--from", "int32", "--to", "bf16").out
    assert "differs on 2,944 of 4,294,967,296 codes" in out
    assert "[-2134900735, -2118123521]" in out
    assert (
        "INT32 -> FP32 CAST_TRUNC -> BF16 CAST_ROUND: 0x00000101 = 257 gives 258, not 256;" in out
    )


def test_values_narrow_the_question(command: Command) -> None:
    words = ("route", "--from", "int32", "--to", "bf16", "--values=-256:0x1p8", "--json")
    document = command(*words).json
    assert document["values"] == ["-256", "256"]
    assert document["routes"][0]["codes"] == 513
    assert document["routes"][0]["verdict"] == "PROVED"


def test_json_has_every_part(command: Command) -> None:
    document: Any = command("route", "--from", "int32", "--to", "bf16", "--json").json
    assert [document[name] for name in ("from", "to", "mode", "steps", "values")] == [
        "DT_INT32",
        "DT_BF16",
        "CAST_RINT",
        3,
        None,
    ]
    best = document["routes"][0]
    assert best["steps"] == [
        {"dtype": "DT_FP32", "mode": "CAST_TRUNC", "is_cast": True},
        {"dtype": "DT_BF16", "mode": "CAST_ROUND", "is_cast": True},
    ]
    assert best["instructions"] == [
        "Cast INT32 -> FP32 CAST_TRUNC",
        "Cast FP32 -> BF16 CAST_ROUND",
    ]
    assert (best["verdict"], best["differing"], best["is_least"]) == ("DIFFERS", 2944, False)
    assert best["exact_range"] == ["-2134900735", "-2118123521"]
    assert best["first"][0] == {
        "code": "0x00000101",
        "value": "257",
        "found": "258",
        "wanted": "256",
    }
    assert len(best["first"]) == 3
    assert best["kernel"].startswith("import pypto_cast as pypto")


def test_a_chain_of_ones_own_is_judged(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[0.50001, 2.5]], np.float32))
    words = ("route", "--from", "FP32", "--to", "INT8", "--through", "FP16:RINT,INT8:RINT")
    ran = command(*words, "--data", str(tmp_path / "x.npy"))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("FP32 -> FP16 CAST_RINT -> INT8 CAST_RINT beside one CAST_RINT\n")
    assert "differs on 1,044,480 of 4,294,967,296 codes" in ran.out
    assert "differs on 1 of 2 codes" in ran.out
    assert max(map(len, ran.out.splitlines()[:6])) <= 80
    verdicts: Any = command(*words, "--json").json["verdicts"]
    assert [(each["of"], each["differing"]) for each in verdicts] == [("all codes", 1_044_480)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--through", "FP16:RINT"), "--through ends with DT_FP16, and --to is DT_INT8"),
        (("--through", "FP16:RINT,"), "unknown dtype ''"),
        (("--through", "FP16:NEAREST,INT8"), "unknown mode"),
        (("--through", "FP16,INT8", "--steps", "2"), "--steps"),
        (("--data", "x.npy"), "--through names the chain"),
    ],
)
def test_a_chain_that_is_no_chain_is_refused(
    words: tuple[str, ...], found: str, command: Command
) -> None:
    ran = command("route", "--from", "FP32", "--to", "INT8", *words)
    assert ran.code == 2
    assert found in ran.err


@pytest.mark.exhaustive  # every pair is judged
def test_the_atlas_is_a_page_that_asks_nothing_of_a_network(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "atlas.html"
    path.write_text("another page", encoding="utf-8")
    assert "exists" in command("route", "--all", "--html", path).error
    assert path.read_text(encoding="utf-8") == "another page"
    assert command("route", "--all", "--html", path, "--force").code == 0
    text = path.read_text(encoding="utf-8")
    assert text.count("<button") == 13 * 12 + 1
    assert re.findall(r'data-pair="([^"]*)"[^>]* data-opened', text) == ["FP32 FP16"]
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert len(text) < 2_000_000


def test_a_route_that_pypto_has_no_operations_for_lists_its_instructions(command: Command) -> None:
    shown = command("route", "--from", "int8", "--to", "uint16").out
    assert (
        "Instructions of the best: Cast INT8 -> FP16, Cast FP16 -> INT16 CAST_RINT, Maxs" in shown
    )
    assert "pypto has no operations for it; Route.program has its instructions." in shown
    document: Any = command("route", "--from", "int8", "--to", "uint16", "--json").json
    assert document["routes"][0]["kernel"] is None


def test_a_picture_shows_where_a_route_differs() -> None:
    formats = (f.FP16, f.INT16, f.FP32)
    chain = chain_named(formats, ("CAST_RINT", ""))
    shares = differing_shares(chain, RoundMode.RINT)
    # Fractions are lost in the middle; whole numbers up to 32767 come through.
    assert len(shares) == STRETCHES
    assert shares[STRETCHES // 2 + 10] == 100
    assert shares[-8] == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("", "--from and --to name the dtypes"),
        ("--from fp32", "--from and --to name the dtypes"),
        ("--from fp32 --to nothing", "unknown dtype 'nothing'"),
        ("--from fp32 --to bf16 --mode up", "unknown mode 'up'"),
        ("--from fp32 --to int8 --values 1", "two numbers with a colon between"),
        ("--from fp32 --to int8 --values 2:1", "2 is above 1"),
        ("--from fp32 --to int8 --steps 7", "steps must be 1 to 4"),
        (
            "--from fp32 --to int8 --steps 1",
            "no chain of 1 step leads from DT_FP32 to DT_INT8; more steps may",
        ),
        ("--from fp32 --to fp8e4m3", "casts nothing from or to E4M3FN"),
        ("--from fp16 --to int8 --values=1e999:3", "1E+999 is above 3"),
        ("--from fp16 --to int8 --values=3:1e-999", "3 is above 1E-999"),
        ("--all", "--all and --html FILE go together"),
        ("--html x.html", "--all and --html FILE go together"),
        (
            "--all --html x.html --mode CAST_RINT --from fp32 --exhaustive",
            "--from and --mode and --exhaustive would change nothing of the page of every pair",
        ),
        ("--all --html x.html --steps 3", "--steps would change nothing of the page of every"),
        ("--all --html none/x.html", "is no directory"),
    ],
)
def test_bad_words_are_one_line(command: Command, words: str, text: str) -> None:
    assert text in command("route", *words.split()).error
