"""The kernels as C++ under the functions of each CANN: AscendC of 8.5, and with what 9.1 added."""

from __future__ import annotations

import re
import subprocess

import pytest
from support.programs.twin_programs import needs_twin

from ascend_kernels.emit import target_path
from ascend_kernels.instances import A2_A3_TARGET, TARGETS
from ascend_kernels.twin import SOURCES, compiler

SHORT = "PYPTO_CAST_INSTANCES_INT4"
EVERY = [
    pytest.param(part, marks=() if part == SHORT else pytest.mark.exhaustive)
    for part in A2_A3_TARGET.parts
]
LAUNCH = "-DPYPTO_CAST_LAUNCH(kernel, cores, stream, x, y, tiling)=kernel(x, y, tiling)"


def compiled(part: str, cann: int, *flags: str) -> str:
    """Returns what a plain C++ compiler says about a translation unit of the kernels."""
    needs_twin()
    command = (
        *compiler(),
        *("-std=c++17", "-fsyntax-only", "-D__vector__=", LAUNCH, f"-DPYPTO_CAST_PART={part}"),
        *(f"-DPYPTO_TWIN_CANN={cann}", f"-I{SOURCES}", f"-I{SOURCES / 'twin'}", *flags),
        *("-x", "c++", str(SOURCES / "cast_kernels.asc")),
    )
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.sampled(24)
@pytest.mark.parametrize("cann", [80500, 90100])
@pytest.mark.parametrize("part", EVERY)
def test_a_translation_unit_compiles(part: str, cann: int) -> None:
    assert compiled(part, cann) == ""


@pytest.mark.slow
def test_the_older_profile_lacks_what_came_with_9_1() -> None:
    for function in ("SetCtrlSpr<48, 48>(1)", "SetSaturationFlag<SaturationMode::CAST>(true)"):
        uses = f"-DPYPTO_CAST_PART(X)=void f() {{ AscendC::{function}; }}"
        uses = uses.replace("<SaturationMode", "<AscendC::SaturationMode")
        said = {cann: compiled(SHORT, cann, uses, "-w") for cann in (80500, 90100)}
        assert "error" in said[80500]
        assert said[90100] == ""


def test_every_part_has_its_instances() -> None:
    for target in TARGETS.values():
        text = target_path(target).read_text(encoding="utf-8")
        for part in target.parts:
            assert len(re.findall(rf"^#define {part}\(X\)", text, re.MULTILINE)) == 1
