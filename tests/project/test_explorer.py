"""The explorer's module and tables: of these sources, and the engine's casts, bit for bit."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.numbers.codes import SEED

from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import conversions
from docs.generators import explorer_module
from docs.generators.explorer_page import page, script, tables
from docs.generators.explorer_words import WORDS
from pypto_cast.dialects.systems import DIALECTS
from pypto_cast.dtypes.data_types import CastMode
from simulator.numbers import elementwise
from simulator.numbers.formats import FORMATS, Codes, Format

NODE = shutil.which("node")
FP32_CODES = 20_000
ALL_FP32_CODES = 1_000_000
SCRIPT = """
const fs = require("fs");
const [binary, asked] = process.argv.slice(2);
const engine = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(binary))).exports;
const buffer = new BigUint64Array(engine.memory.buffer, engine.codes_at(), engine.capacity());
for (const { codes, steps, results } of JSON.parse(fs.readFileSync(asked))) {
  const bytes = fs.readFileSync(codes);
  const given = new BigUint64Array(Uint8Array.from(bytes).buffer);
  const found = new BigUint64Array(given.length);
  new Uint32Array(engine.memory.buffer, engine.steps_at(), 4 * steps.length).set(steps.flat());
  for (let start = 0; start < given.length; start += buffer.length) {
    const part = given.subarray(start, start + buffer.length);
    buffer.set(part);
    engine.convert(steps.length, part.length);
    found.set(buffer.subarray(0, part.length), start);
  }
  fs.writeFileSync(results, Buffer.from(found.buffer));
}
"""


def source_codes(src: Format, random_codes: int) -> Codes:
    if src.bits <= 16:
        return np.arange(1 << src.bits, dtype=src.code_dtype)
    rng = np.random.default_rng([SEED, *src.name.encode()])
    high = np.iinfo(src.code_dtype).max
    return rng.integers(0, high, random_codes, dtype=src.code_dtype, endpoint=True)


def casts() -> Iterator[tuple[str, Format, Format, list[list[int]], Any]]:
    """Name, formats, the page's steps and the engine's of every pair, mode and satmode."""
    for family, rules in MATRIX.items():
        for (src, dst), rule in rules.items():
            told = tables()["rules"][family][f"{src}-{dst}"]
            for mode in rule.modes or (None,):
                for saturate in (True, False) if rule.off else (True,):
                    chains = told["on" if saturate else "off"]
                    found = resolve(family, src, dst, mode, saturate=saturate)
                    name = f"{family} {src}-{dst} {mode} {saturate}"
                    yield name, src, dst, chains["" if mode is None else mode.name], found


def in_node(tmp_path: Path, asked: dict[str, tuple[Codes, list[list[int]]]]) -> dict[str, Codes]:
    """The results of the module, by name."""
    calls = []
    for place, (codes, steps) in enumerate(asked.values()):
        codes.astype(np.uint64).tofile(tmp_path / f"{place}.in")
        named = {"codes": str(tmp_path / f"{place}.in"), "results": str(tmp_path / f"{place}.out")}
        calls.append({**named, "steps": steps})
    (tmp_path / "asked.json").write_text(json.dumps(calls))
    (tmp_path / "run.cjs").write_text(SCRIPT)
    command = [NODE, tmp_path / "run.cjs", explorer_module.MODULE, tmp_path / "asked.json"]
    subprocess.run(command, check=True)
    return {
        name: np.fromfile(tmp_path / f"{place}.out", np.uint64) for place, name in enumerate(asked)
    }


def test_the_module_is_of_these_sources() -> None:
    assert explorer_module.is_current(), "python -m docs.generators.explorer_module --build"


def test_a_module_of_other_sources_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer_module, "COMMAND", (*explorer_module.COMMAND, "-O1"))
    assert not explorer_module.is_current()


@pytest.mark.slow
def test_a_build_gives_the_committed_module(tmp_path: Path) -> None:
    clang = shutil.which("clang++")
    if clang is None or not Path("/usr/include/wasm32-wasi/c++").exists():
        pytest.skip("there is no clang++ with the headers for WebAssembly")
    version = subprocess.run([clang, "--version"], capture_output=True, text=True, check=True)
    if "version 14." not in version.stdout:
        pytest.skip("the module was built by clang 14; another release writes other instructions")
    explorer_module.build(tmp_path / "explorer.wasm")
    assert (tmp_path / "explorer.wasm").read_bytes() == explorer_module.MODULE.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="there is no node")
@pytest.mark.parametrize(
    "random_codes",
    [FP32_CODES, pytest.param(ALL_FP32_CODES, marks=pytest.mark.exhaustive)],
)
def test_every_cast_in_node_gives_the_engines_codes(tmp_path: Path, random_codes: int) -> None:
    """All codes of sources of at most 16 bits, drawn ones of the others."""
    asked, wanted = {}, {}
    for name, src, dst, steps, resolution in casts():
        codes = source_codes(src, random_codes)
        results = np.empty(codes.size, dst.code_dtype)
        elementwise.run(conversions(resolution), codes, results)
        asked[name], wanted[name] = (codes, steps), results
        if sum(codes.size for codes, _ in asked.values()) > 10**7:
            assert_equal(in_node(tmp_path, asked), wanted)
            asked, wanted = {}, {}
    assert_equal(in_node(tmp_path, asked), wanted)


def assert_equal(found: dict[str, Codes], wanted: dict[str, Codes]) -> None:
    for name, codes in wanted.items():
        np.testing.assert_array_equal(found[name], codes.astype(np.uint64), name)


@pytest.mark.skipif(NODE is None, reason="there is no node")
def test_the_steps_of_dialects_give_their_codes(tmp_path: Path) -> None:
    asked, wanted = {}, {}
    for pair, others in tables()["dialects"].items():
        src, dst = (FORMATS[name] for name in pair.split("-"))
        codes = source_codes(src, 2_000)
        for each in others:
            if each["steps"] is not None:
                rule = DIALECTS[each["name"]].rule(src, dst, CastMode.CAST_NONE)
                assert rule.convert is not None
                wanted[f"{each['name']} {pair}"] = rule.convert(codes)
                asked[f"{each['name']} {pair}"] = codes, each["steps"]
    assert len(asked) > 100
    found = in_node(tmp_path, asked)
    for name, codes in wanted.items():
        np.testing.assert_array_equal(found[name], codes.astype(np.uint64), name)


def test_words_are_the_same_in_both_languages() -> None:
    english, chinese = WORDS["en"], WORDS["zh"]
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        braces = {part.split("}")[0] for part in text.split("{")[1:]}
        assert braces == {part.split("}")[0] for part in chinese[key].split("{")[1:]}, key
        standing = key in ("documented", "inferred", "chosen", "measured")
        counted = key in ("exact", "rounded", "to_limit", "to_inf", "to_nan")
        assert standing or counted or key == "title" or f'"{key}"' in script(), key


def test_a_page_holds_all_it_needs() -> None:
    text = page("en")
    assert 'src="' not in text
    assert text.count("</script>") == 2
