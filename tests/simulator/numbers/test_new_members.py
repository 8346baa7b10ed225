"""A new round mode, overflow rule or kind of special codes: nothing that forgets it passes.

C++ does not compile, mypy refuses the Python, and the fast paths leave it to the definition.
"""

from __future__ import annotations

import enum
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_kernels import emit, twin
from simulator.compiled_library import CompiledLibraryError, find_compiler
from simulator.numbers import convert, fast, formats, rounding
from simulator.numbers.convert import INF_NAN, Conversion, Overflow, Policy
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.native import library
from simulator.numbers.rounding import RoundMode, boundary_codes

PAIRS = [
    (FORMATS[src], FORMATS[dst])
    for src, targets in {
        "FP64": ("FP32", "FP16", "BF16"),
        "FP32": ("BF16", "FP16", "FP32", "INT32", "INT4", "E4M3FN"),
        "BF16": ("FP32", "INT16"),
        "FP16": ("INT8",),
        "INT64": ("FP32", "FP16"),
        "INT32": ("BF16", "INT16"),
    }.items()
    for dst in targets
]


def new_member(kind: type[enum.Enum]) -> Any:
    member = object.__new__(kind)
    member._name_, member._value_ = "NEW", "made up"
    return member


@pytest.mark.slow
def test_the_build_refuses_a_switch_without_a_new_member(tmp_path: Path) -> None:
    try:
        compiler = find_compiler()
    except CompiledLibraryError as error:
        pytest.skip(str(error))
    copy = shutil.copytree(library.SOURCES, tmp_path / "csrc")
    project = (copy / "CMakeLists.txt").read_text()
    (options,) = re.findall(r"target_compile_options\(.* PRIVATE (.*)\)", project)
    flags = ["-std=c++17", "-fsyntax-only", '-DPYPTO_CAST_DIGEST=""', *options.split()]
    tables = (copy / "tables.h").read_text()

    def errors(text: str) -> list[str]:
        (copy / "tables.h").write_text(text)
        command = [*compiler, *flags, str(copy / "engine.cpp")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (text != tables), done.stderr
        return re.findall(r"error: .*not handled in switch", done.stderr)

    assert len(errors(tables)) == 0
    rounds_away_way_direction = errors(tables.replace("TRUNC, ODD }", "TRUNC, ODD, NEW }"))
    assert len(rounds_away_way_direction) == 3
    saturates_low_bits_loop = errors(tables.replace("OVERFLOW_WRAP }", "OVERFLOW_WRAP, NEW }"))
    assert len(saturates_low_bits_loop) == 3


def test_the_twin_is_not_built_without_a_new_mode(tmp_path: Path) -> None:
    try:
        compiler = find_compiler()
    except CompiledLibraryError as error:
        pytest.skip(str(error))
    copy = shutil.copytree(twin.MAIN_SOURCE.parent, tmp_path / "twin")
    (copy / "main.cpp").write_text(
        '#include "rounding.h"\n'
        "auto one = pypto_twin::rounded<pypto_twin::RoundMode::RINT, uint32_t>(1, 1, 0);\n"
    )
    flags = [flag for flag in twin.FLAGS if flag != "-shared"]
    command = [*compiler, *flags, "-fsyntax-only", str(copy / "main.cpp")]
    assert subprocess.run(command, check=False).returncode == 0
    numbers = copy / "trace_numbers.h"
    numbers.write_text(numbers.read_text().replace("X(RINT)", "X(NEW) X(RINT)"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert len(re.findall(r"error: .*NEW.*not handled in switch", done.stderr)) == 1


def test_a_new_mode_reaches_the_twin_and_ascendc(monkeypatch: pytest.MonkeyPatch) -> None:
    new, known = new_member(RoundMode), rounding.rounds_away
    rules = [lambda guard, sticky: guard & sticky, lambda guard, sticky: guard ^ sticky]

    def away(mode: RoundMode, *, guard: Any, sticky: Any, **bits: Any) -> Any:
        return (
            rules[0](guard, sticky)
            if mode is new
            else known(mode, guard=guard, sticky=sticky, **bits)
        )

    monkeypatch.setattr(emit, "RoundMode", [*RoundMode, new])
    monkeypatch.setattr(emit, "rounds_away", away)
    assert "X(NEW, HALF, HALF, HALF, HALF)" in emit.trace_header()
    assert "    CAST_NEW = rounding.RoundMode.NEW\n" in emit.round_modes()
    del rules[0]
    with pytest.raises(ValueError, match="NEW has no threshold"):
        emit.trace_header()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("module", "kind", "forgotten"),
    [
        (rounding, "RoundMode", {"rounding"}),
        (convert, "Overflow", {"convert"}),
        (formats, "Specials", {"formats"}),
    ],
)
def test_mypy_refuses_a_match_without_a_new_member(
    module: Any, kind: str, forgotten: set[str], tmp_path: Path
) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed (extra dev)")
    packages = Path(formats.__file__).parents[2]
    for package in ("tiling", "simulator"):
        shutil.copytree(packages / package, tmp_path / package)
    changed = tmp_path / Path(module.__file__).relative_to(packages)
    text = changed.read_text()
    changed.write_text(re.sub(rf"(class {kind}\(.*\n.*\n\n)", r'\1    NEW = "made up"\n', text))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "simulator/numbers"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = done.stdout.splitlines()[:-1]
    assert {Path(line.partition(":")[0]).stem for line in errors} == forgotten
    assert all('"assert_never" has incompatible type' in line for line in errors), done.stdout


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=str)
def test_the_fast_paths_leave_a_new_mode_to_the_definition(
    src: Format, dst: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, known = new_member(RoundMode), rounding.rounds_away

    def away(mode: RoundMode, **bits: Any) -> Any:
        return bits["guard"] | bits["sticky"] if mode is new else known(mode, **bits)

    monkeypatch.setattr(rounding, "rounds_away", away)
    monkeypatch.setattr(convert, "rounds_away", away)
    conversion = Conversion(src=src, dst=dst, mode=new, policy=INF_NAN)
    codes = boundary_codes(src)
    path = fast.loop.__wrapped__(conversion)
    if path is not None:
        out = np.empty(codes.size, dst.code_dtype)
        path(codes, out)
        np.testing.assert_array_equal(out, conversion.reference(codes))


def test_the_fast_paths_leave_a_new_overflow_rule_to_the_definition() -> None:
    policy = Policy(name="NEW", overflow=new_member(Overflow), keeps_inf=True, keeps_nan=True)
    for src, dst in PAIRS:
        if src.bits > fast.TABLE_BITS:
            conversion = Conversion(src=src, dst=dst, mode=RoundMode.RINT, policy=policy)
            assert fast.loop.__wrapped__(conversion) is None, str(conversion)


HALF_DOWN = {
    "simulator/numbers/rounding.py": [
        (
            "\n\n    __hash__ = object",
            '\n    DOWN = "to nearest, ties toward zero"\n\n    __hash__ = object',
        ),
        (
            "        case _:\n",
            "        case RoundMode.DOWN:\n            return guard & sticky\n        case _:\n",
        ),
    ],
    "simulator/numbers/native/csrc/rounding.h": [
        (
            f"return {known};\n    }}",
            f"return {known};\n        case DOWN:\n            return {new};\n    }}",
        )
        for known, new in {
            "!odd && (guard || sticky)": "guard && sticky",
            "Way::ODD": "Way::NONE",
            "to_integers ? DOWNWARD : ZEROWARD": "NEAREST",
        }.items()
    ],
    "pypto_cast/dtypes/data_types.py": [
        ("__all__ = [\n", '__all__ = [\n    "CAST_DOWN",\n'),
        ("    CAST_ODD = 6\n", "    CAST_ODD = 6\n    CAST_DOWN = 7\n"),
        ("CAST_ODD = CastMode", "CAST_ODD, CAST_DOWN = CastMode"),
    ],
    "simulator/machine/cast_table.py": [
        (
            "_row(f.FP32, f.FP16, (*_M5, RoundMode.ODD)",
            "_row(f.FP32, f.FP16, (*_M5, RoundMode.ODD, RoundMode.DOWN)",
        )
    ],
    "ascend_kernels/matrix.py": [
        (
            "_rule(f.FP32, f.FP16, (*_M5, RoundMode.ODD)",
            "_rule(f.FP32, f.FP16, (*_M5, RoundMode.ODD, RoundMode.DOWN)",
        )
    ],
}
"""All that is written by hand for a new mode of FP32 -> FP16."""
CASTS = """
import warnings
import numpy as np
import pypto_cast as pypto
from simulator import ascendc
warnings.simplefilter("error", pypto.EngineWarning)
assert ascendc.RoundMode.CAST_DOWN.value.name == "DOWN"
ulp = 2.0**-10
values = [1 + ulp / 2, -1 - ulp * 1.5, 1 + ulp * 0.75, 65520, 1e9]
x = pypto.from_numpy(np.array(values, np.float32))
for chosen in ({"engine": "twin"}, {"engine": "numpy"}, {"fidelity": "instructions"}):
    with pypto.options(vec_tile_shapes=[16], **chosen):
        found = pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_DOWN).numpy()
    assert found.tolist() == [1, -1 - ulp, 1 + ulp, 65504, np.inf], (chosen, found)
"""


@pytest.mark.exhaustive
def test_a_mode_is_added_in_the_files_that_the_page_names(tmp_path: Path) -> None:
    try:
        compiler = find_compiler()
    except CompiledLibraryError as error:
        pytest.skip(str(error))
    checkout = Path(formats.__file__).parents[2]
    page = (checkout / "docs" / "architecture.md").read_text()
    (row,) = re.findall(r"^\| a round mode \|(.*)\|(.*)\|$", page, re.M)
    files, commands = (re.findall(r"`(.*?)`", cell) for cell in row)
    assert set(files) == set(HALF_DOWN)
    for package in ("tiling", "simulator", "ascend_kernels", "pypto_cast"):
        shutil.copytree(checkout / package, tmp_path / package)
    for name, edits in HALF_DOWN.items():
        text = (tmp_path / name).read_text()
        for old, new in edits:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    for command in commands:
        run(sys.executable, *command.split()[1:])
    source = tmp_path / "simulator" / "numbers" / "native" / "csrc" / "engine.cpp"
    strict = ("-std=c++17", "-fsyntax-only", '-DPYPTO_CAST_DIGEST=""', "-Werror=switch")
    run(*compiler, *strict, str(source))
    run(sys.executable, "-c", CASTS)
