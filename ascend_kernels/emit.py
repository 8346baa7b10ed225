"""Emits the parts of the tables that the C++ side and AscendC's Python repeat.

python -m ascend_kernels.emit            writes the files below
python -m ascend_kernels.emit --check    fails if a file is not what would be written

csrc/cast_instances.h has the tiling data of the AscendC kernel; csrc/cast_instances_2201.h and
cast_instances_3510.h its instances and their steps, by the architecture that they are compiled for;
csrc/twin/trace_numbers.h round modes with their thresholds, and formats and instructions by their
numbers in a trace of the twin; csrc/twin/cast_rows.h the pairs of the Cast instruction;
simulator/ascendc/round_modes.py the modes by AscendC's names.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Final

import numpy as np

from ascend_kernels.instances import (
    ROUTES_PART,
    SCALARS,
    TARGETS,
    KernelTarget,
    part_name,
)
from ascend_kernels.matrix import (
    MATRIX,
    CastRule,
    CastStep,
    Operand,
    ScalarStep,
    Step,
)
from ascend_kernels.tiling_data import TILING_FIELDS
from simulator.machine.cast_table import CAST_TABLE, CTRL_BITS, CTRL_GLOBAL, CTRL_INT, CastRow
from simulator.machine.isa import HardEvent, ScalarOp, SourceRounding
from simulator.machine.vector_types import VECTOR_TYPES
from simulator.numbers.convert import INF_NAN, SATURATE, SATURATE_KEEP_NAN, WRAP
from simulator.numbers.formats import FloatFormat, Format
from simulator.numbers.native.format_tables import write_or_check
from simulator.numbers.rounding import RoundMode, rounds_away
from tiling.chips import CHIPS

_LISTED: Final = "pypto_cast::Route::LISTED"
HEADER: Final = Path(__file__).with_name("csrc") / "cast_instances.h"
TRACE_HEADER: Final = HEADER.parent / "twin" / "trace_numbers.h"
ROWS_HEADER: Final = TRACE_HEADER.with_name("cast_rows.h")
ROUND_MODES: Final = HEADER.parents[2] / "simulator" / "ascendc" / "round_modes.py"

CPP_TYPES: Final = {fmt: known.cpp for fmt, known in VECTOR_TYPES.items() if known.cpp}
"""AscendC's name of each number format, in the order of their numbers in a trace."""

POLICIES: Final = (INF_NAN, SATURATE, SATURATE_KEEP_NAN, WRAP)
"""The rules of special values and overflow that Cast has."""

TRACED_OPS: Final = (
    "DATA_COPY_PAD",
    "CAST",
    "CAST_REPEAT",
    "DUPLICATE",
    "AND_REPEAT",
    "SET_CTRL",
    "RESTORE_CTRL",
    "SET_DEQ_SCALE",
    "SET_FLAG",
    "WAIT_FLAG",
    "PIPE_BARRIER",
    "SCALAR",
    "UB_WORK",
    "BARRIER_ALL",
)
"""The instructions of a trace by their numbers; the last two are of a device check's kernels.

UB_WORK writes bytes of UB and reads some of up to two operands: an offset and a size of each.
"""
TRACED_OPERANDS: Final = 13
"""Operands of an instruction in a trace, at most."""


def header() -> str:
    """The text of the generated header of the tiling data."""
    cases = [
        line
        for word, target in zip(["#if", *["#elif"] * len(TARGETS)], TARGETS.values(), strict=False)
        for line in (
            f"{word} PYPTO_CAST_ARCH == {target.architecture}",
            f'#include "{target_path(target).name}"',
        )
    ]
    parts = [
        *_opening("PYPTO_CAST_INSTANCES_H"),
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        "// The architecture that the kernel is compiled for, as in --npu-arch=dav-2201.",
        "#ifndef PYPTO_CAST_ARCH",
        f"#define PYPTO_CAST_ARCH {next(iter(TARGETS.values())).architecture}",
        "#endif",
        *cases,
        "#else",
        '#error "PYPTO_CAST_ARCH is none that the kernel has instances for"',
        "#endif",
        "",
        *_struct(),
        "",
        "#endif  // PYPTO_CAST_INSTANCES_H",
    ]
    return "\n".join(parts) + "\n"


def target_path(target: KernelTarget) -> Path:
    """The generated header of the instances of an architecture."""
    return HEADER.with_name(f"{HEADER.stem}_{target.architecture}.h")


def target_header(target: KernelTarget) -> str:
    """The text of the generated header of the instances of an architecture."""
    guard = f"PYPTO_CAST_INSTANCES_{target.architecture}_H"
    rules = MATRIX[target.family].values()
    formats = [*dict.fromkeys(fmt for rule in rules for fmt in (rule.src, rule.dst))]
    nibbles = [f"X({CPP_TYPES[fmt]})" for fmt in formats if fmt.bits == 4]
    narrow = [
        f"X({CPP_TYPES[fmt]})" for fmt in formats if isinstance(fmt, FloatFormat) and fmt.bits == 8
    ]
    bits = sorted(CTRL_BITS[target.family] - {CTRL_INT})
    parts = [
        *_opening(guard),
        "",
        "// Every native cast, in launch order: X(name, source, destination, round mode).",
        *itertools.chain.from_iterable(
            macro(
                part,
                [
                    _instance(x.name, x.rule.src, x.rule.dst, round_mode(x.mode))
                    for x in target.instances
                    if part_name(x.rule.src) == part
                ],
            )
            for part in target.native_parts
        ),
        *macro("PYPTO_CAST_INSTANCES", [f"{part}(X)" for part in target.native_parts]),
        "",
        "// Steps of routes besides casts, which follow them: X(name, instruction, type).",
        *macro(
            "PYPTO_CAST_SCALARS",
            [
                f"X({op.name.lower()}_{fmt.name.lower()}, {op.value}, {CPP_TYPES[fmt]})"
                for op, fmt in SCALARS
                if target.route_instances
            ],
        ),
        "",
        "// The instances for routes, which follow: by the widths of source and destination.",
        f"#define PYPTO_CAST_HAS_ROUTES {int(bool(target.route_instances))}",
        *macro(
            ROUTES_PART,
            [_instance(x.name, x.src, x.dst, _LISTED) for x in target.route_instances],
        ),
        "",
        "// The pairs on which SaturationMode.OFF acts: X(source, destination, steps...).",
        "// `mode` is the instance's round mode.",
        *macro("PYPTO_CAST_LOW_BITS", [_low_bits(rule) for rule in rules if rule.off]),
        "",
        "// Types of which two elements share a byte, and floats of a byte: copies move bytes.",
        *macro("PYPTO_CAST_NIBBLES", nibbles),
        *macro("PYPTO_CAST_BYTES", narrow),
        "",
        "// The bits of CTRL that Cast depends on.",
        *macro("PYPTO_CAST_CTRL_BITS", [f"X({bit})" for bit in bits]),
        "",
        f"#endif  // {guard}",
    ]
    return "\n".join(parts) + "\n"


def rows_header() -> str:
    """The text of the generated header of the pairs that the twin's Cast has."""
    parts = [
        *_opening("PYPTO_TWIN_CAST_ROWS_H"),
        "",
        "#include <cstdint>",
        "",
        "namespace pypto_twin {",
        "// The rules of special values and overflow.",
        f"enum class Policy {{ {', '.join(map(str, POLICIES))} }};",
        "}  // namespace pypto_twin",
        "",
        "// The pairs of Cast: X(destination, source, bit of CTRL or -1, rule where it is 0, rule",
        "// where it is 1, whether bit 50 keeps NaN where it is 0).",
    ]
    for target in TARGETS.values():
        rows = [
            _cast_row(row)
            for row in CAST_TABLE[target.family].values()
            if {row.src, row.dst} <= CPP_TYPES.keys()
        ]
        has_own = str(CTRL_GLOBAL in CTRL_BITS.get(target.family, ())).lower()
        ub_bytes = max(chip.ub_bytes for chip in CHIPS.values() if chip.isa == target.family)
        parts += [
            f"#if PYPTO_CAST_ARCH == {target.architecture}",
            *macro("PYPTO_TWIN_CAST_ROWS", rows),
            "namespace pypto_twin {",
            f"constexpr uint32_t ub_bytes = {ub_bytes};",
            f"constexpr bool has_own_saturation = {has_own};  // CTRL[{CTRL_GLOBAL}] is there",
            "}  // namespace pypto_twin",
            "#endif",
        ]
    return "\n".join([*parts, "", "#endif  // PYPTO_TWIN_CAST_ROWS_H"]) + "\n"


def _cast_row(row: CastRow) -> str:
    bit = -1 if row.ctrl is None else row.ctrl
    keeps_nan = "true" if row.keeps_nan else "false"
    rules = f"{row.when_clear}, {row.when_set}"
    return f"X({CPP_TYPES[row.dst]}, {CPP_TYPES[row.src]}, {bit}, {rules}, {keeps_nan})"


def _opening(guard: str) -> list[str]:
    return [
        "// Generated by `python -m ascend_kernels.emit`; do not edit.",
        "// clang-format off",
        f"#ifndef {guard}",
        f"#define {guard}",
    ]


def trace_header() -> str:
    """The text of the generated header of the twin."""
    parts = [
        *_opening("PYPTO_TWIN_TRACE_NUMBERS_H"),
        "",
        "#include <cstdint>",
        "",
        "// The round modes, in the order of their numbers behind CAST_NONE: X(name).",
        *macro("PYPTO_TWIN_MODES", [f"X({mode})" for mode in RoundMode]),
        "",
        "// Their thresholds by last kept bit and sign: X(name, even +, even -, odd +, odd -).",
        *macro("PYPTO_TWIN_THRESHOLDS", [_thresholds(mode) for mode in RoundMode]),
        "",
        "// AscendC's types by the numbers of their formats: X(type, number).",
        *macro("PYPTO_TWIN_FORMATS", [f"X({t}, {n})" for n, t in enumerate(CPP_TYPES.values())]),
        "",
        "namespace pypto_twin {",
        f"enum class Op : int64_t {{ {', '.join(TRACED_OPS)} }};",
        f"enum class ScalarOp : int64_t {{ {', '.join(op.value for op in ScalarOp)} }};",
        "// Addresses are a space and a byte offset in it.",
        "enum class Space : int64_t { UB, X, Y };",
        f"constexpr int OPERANDS = {TRACED_OPERANDS};",
        "}  // namespace pypto_twin",
        "",
        "namespace AscendC {",
        f"enum class HardEvent : uint8_t {{ {', '.join(event.name for event in HardEvent)} }};",
        "}  // namespace AscendC",
        "",
        "#endif  // PYPTO_TWIN_TRACE_NUMBERS_H",
    ]
    return "\n".join(parts) + "\n"


def round_modes() -> str:
    """The text of the generated module of AscendC's round modes."""
    lines = [
        '"""The round modes of AscendC, generated by `python -m ascend_kernels.emit`."""',
        "",
        "import enum",
        "",
        "from simulator.machine.isa import SourceRounding",
        "from simulator.numbers import rounding",
        "",
        "",
        "class RoundMode(enum.Enum):",
        '    """The round modes of Cast; CAST_NONE rounds to nearest even where bits are lost."""',
        "",
        "    CAST_NONE = None",
        *(f"    CAST_{mode} = rounding.RoundMode.{mode}" for mode in RoundMode),
        *(f"    CAST_{each.name} = SourceRounding.{each.name}" for each in SourceRounding),
    ]
    return "\n".join(lines) + "\n"


def _thresholds(mode: RoundMode) -> str:
    """The greatest fraction that a mode rounds toward zero, by the definition."""
    guard, sticky = np.array([(False, True), (True, False), (True, True)]).T
    names = []
    for odd, negative in itertools.product([False, True], repeat=2):
        facts = {"odd": np.full(3, odd), "negative": np.full(3, negative)}
        away = rounds_away(mode, guard=guard, sticky=sticky, **facts).tolist()
        if away != sorted(away):
            raise ValueError(f"{mode} has no threshold: it rounds the greater fraction toward zero")
        names.append(("ALL", "HALF", "BELOW_HALF", "NOTHING")[sum(away)])
    return f"X({mode}, {', '.join(names)})"


def _struct() -> list[str]:
    lines = ["// What the host tells the kernel about a cast.", "struct CastTilingData {"]
    checks = []
    offset = 0
    for field in TILING_FIELDS:
        array = f"[{field.words}]" if field.words else ""
        lines.append(f"    uint32_t {field.name}{array};  // {field.text}")
        checks.append(f"static_assert(offsetof(CastTilingData, {field.name}) == {offset});")
        offset += field.size_bytes
    size = f"static_assert(sizeof(CastTilingData) == {offset});"
    return [*lines, "};", *checks, size]


def macro(name: str, entries: list[str]) -> list[str]:
    lines = [f"#define {name}(X)", *(f"    {entry}" for entry in entries)]
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _instance(name: str, src: Format, dst: Format, mode: str) -> str:
    return f"X({name}, {CPP_TYPES[src]}, {CPP_TYPES[dst]}, {mode})"


def round_mode(mode: RoundMode | None) -> str:
    return f"AscendC::RoundMode::CAST_{mode or 'NONE'}"


def _low_bits(rule: CastRule) -> str:
    return f"X({CPP_TYPES[rule.src]}, {CPP_TYPES[rule.dst]}, {', '.join(map(_step, rule.off))})"


def _step(step: Step) -> str:
    if isinstance(step, ScalarStep):
        raise ValueError("rows of the matrix take no scalar")
    if not isinstance(step, CastStep):
        return f"LowByteStep<{_operand(step.operand)}, {_operand(step.scratch)}>"
    mode = "mode" if step.takes_mode else round_mode(step.mode)
    return (
        f"CastStep<{CPP_TYPES[step.src]}, {CPP_TYPES[step.dst]}, {mode}, "
        f"{'true' if step.truncates else 'false'}, "
        f"{_operand(step.source)}, {_operand(step.target)}>"
    )


def _operand(operand: Operand) -> str:
    return f"Operand::{operand.name}"


def main() -> int:
    prog = "python -m ascend_kernels.emit"
    return max(
        write_or_check(prog, path, text)
        for path, text in (
            (HEADER, header()),
            *((target_path(target), target_header(target)) for target in TARGETS.values()),
            (TRACE_HEADER, trace_header()),
            (ROWS_HEADER, rows_header()),
            (ROUND_MODES, round_modes()),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
