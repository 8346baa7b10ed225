"""Emits the header of the C++ side: the instances of the kernel, its steps and its tiling data.

    python -m ascend_kernels.emit            writes csrc/cast_instances.h
    python -m ascend_kernels.emit --check    fails if that file is not what would be written

The tiling data of a cast is a flat struct that the host fills from a TileProgram; its layout is
asserted in C++ and here, from one list of fields.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ascend_kernels.matrix import (
    MATRIX,
    CastRule,
    CastStep,
    LowByteStep,
    Operand,
    Resolution,
    ScalarStep,
    Step,
    resolve,
)
from ascend_kernels.program import TileProgram
from ascend_kernels.routing.chains import MOST_WORK, ROUTE_FORMATS
from ascend_kernels.routing.vector_rows import held
from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.isa import ScalarOp
from simulator.machine.scalar_work import SCALAR_FORMATS
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, TilePlan

_LISTED: Final = "pypto_cast::Route::LISTED"
HEADER: Final = Path(__file__).with_name("csrc") / "cast_instances.h"

CPP_TYPES: Final[dict[Format, str]] = {
    f.FP32: "float",
    f.FP16: "half",
    f.BF16: "bfloat16_t",
    f.INT4: "AscendC::int4b_t",
    f.INT8: "int8_t",
    f.UINT8: "uint8_t",
    f.INT16: "int16_t",
    f.INT32: "int32_t",
    f.INT64: "int64_t",
    f.UINT16: "uint16_t",
    f.UINT32: "uint32_t",
}
"""AscendC's name of each number format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance of the kernel.

    Attributes:
        rule: the row of the matrix.
        mode: round mode of the Cast instruction; None is AscendC's CAST_NONE.
    """

    rule: CastRule
    mode: RoundMode | None

    @property
    def name(self) -> str:
        """Its name in C++, such as fp32_fp16_rint."""
        return f"{self.rule.src}_{self.rule.dst}_{self.mode or 'none'}".lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteInstance:
    """An instance that takes the steps which the tiling data lists.

    Attributes:
        src: stands for all source formats of its width.
        dst: stands for all destination formats of its width.
    """

    src: Format
    dst: Format

    @property
    def name(self) -> str:
        """Its name in C++, such as route_b32_b8."""
        return f"route_b{self.src.bits}_b{self.dst.bits}"


INSTANCES: Final = tuple(
    Instance(rule=rule, mode=mode)
    for rule in MATRIX.values()
    for mode in CAST_TABLE[rule.src, rule.dst].modes or (None,)
)
"""The instances of one native cast, in the order of the table: a launcher counts from 0."""

_COPIED: Final = {fmt.bits: fmt for fmt in (f.INT4, f.UINT8, f.INT16, f.INT32, f.INT64)}
"""The format as which copies take the elements of each width."""

ROUTE_INSTANCES: Final = tuple(
    RouteInstance(src=_COPIED[src], dst=_COPIED[dst])
    for src, dst in dict.fromkeys(
        (held(src).bits, held(dst).bits)
        for src in ROUTE_FORMATS
        for dst in ROUTE_FORMATS
        if src is not dst
    )
)
"""The instances for routes; a launcher counts on from `INSTANCES`."""


def part_name(src: Format) -> str:
    """The macro that lists the instances of a source format; each is a translation unit."""
    return f"PYPTO_CAST_INSTANCES_{src}"


NATIVE_PARTS: Final = tuple(dict.fromkeys(part_name(rule.src) for rule in MATRIX.values()))
ROUTES_PART: Final = "PYPTO_CAST_INSTANCES_ROUTES"
PARTS: Final = (*NATIVE_PARTS, ROUTES_PART)
"""The macros of all translation units, in launch order."""

_NUMBERS: Final = {instance: number for number, instance in enumerate(INSTANCES)}
SCALARS: Final = tuple((op, fmt) for op, formats in SCALAR_FORMATS.items() for fmt in formats)
"""The instructions with a scalar that steps of a route may be; they count on from the casts."""
_OPERANDS: Final = tuple(Operand)


def instance_number(resolution: Resolution) -> int:
    """The place in the table of the instance that carries out a cast, of either saturation mode.

    Raises:
        ValueError: the steps are neither those of a row of the matrix nor a route that clamps.
    """
    rule = resolution.rule
    if _is_row(resolution):
        mode = resolution.mode if CAST_TABLE[rule.src, rule.dst].modes else None
        return _NUMBERS[Instance(rule=rule, mode=mode)]
    steps = resolution.steps
    has_low_bytes = any(isinstance(step, LowByteStep) for step in steps)
    if resolution.begins_truncating or has_low_bytes or len(steps) > MOST_WORK:
        words = " -> ".join(str(cast.dst) for cast in resolution.casts)
        raise ValueError(
            f"the kernel has no instance for {rule.src} -> {words}: it takes the rows of the "
            f"matrix and routes of at most {MOST_WORK} instructions that do not begin with low "
            "bits; the machine runs every program"
        )
    route = RouteInstance(src=_COPIED[rule.src.bits], dst=_COPIED[rule.dst.bits])
    return len(INSTANCES) + ROUTE_INSTANCES.index(route)


def _is_row(resolution: Resolution) -> bool:
    rule = resolution.rule
    return (rule.src, rule.dst) in MATRIX and resolution.steps in (
        resolve(rule.src, rule.dst, resolution.mode, saturate=saturate).steps
        for saturate in (True, False)
    )


# --- Tiling data -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the tiling data: a 32-bit word, or several.

    Attributes:
        name: in C++ and in Python.
        words: how many there are; 0: one that is no array.
        text: what it says.
    """

    name: str
    words: int
    text: str

    @property
    def size_bytes(self) -> int:
        return max(self.words, 1) * ctypes.sizeof(ctypes.c_uint32)


TILING_FIELDS: Final = (
    Field(name="shape", words=MAX_DIMS, text="of the tensor, axes merged; missing ones: 1"),
    Field(name="tile_shape", words=MAX_DIMS, text="of all tiles but the tails"),
    Field(
        name="pass_shapes",
        words=MAX_DIMS << MAX_DIMS,
        text="what a slot holds of a tile, by its tails: a bit an axis, the last one lowest",
    ),
    Field(name="tile_count", words=0, text="tiles of the tensor"),
    Field(name="in_bytes", words=0, text="UB of the input of one pass, in each of the two slots"),
    Field(name="out_bytes", words=0, text="UB of the output, likewise"),
    Field(name="tmp_bytes", words=0, text="UB of the scratch, which both slots share; 0: none"),
    Field(name="one_pitch", words=0, text="1: rows are as many elements apart in and out of UB"),
    Field(name="inf_nan", words=0, text="1: FP16 and BF16 results keep inf and NaN (CTRL[48])"),
    Field(name="saturate", words=0, text="1: integer results clamp; 0: they keep the low bits"),
    Field(name="step_count", words=0, text="of a route; 0: the steps are the instance's"),
    Field(name="steps", words=MOST_WORK, text="instruction, source, target, low bits: bytes"),
    Field(name="scalars", words=MOST_WORK, text="of each step: an integer, or the code of a float"),
)


class CastTilingData(ctypes.Structure):
    """The struct of this name in C++."""

    _fields_ = [
        (field.name, ctypes.c_uint32 * field.words if field.words else ctypes.c_uint32)
        for field in TILING_FIELDS
    ]


def tiling_data(program: TileProgram) -> CastTilingData:
    """Returns the fields of a program that the kernel reads."""
    plan = program.plan
    sizes = {buffer.role: buffer.size_bytes for buffer in plan.ub.buffers}
    steps = [] if _is_row(program.resolution) else [*map(_route_step, program.resolution.steps)]
    values = {
        "shape": _words(plan.merged.shape),
        "tile_shape": _words(plan.merged.tile_shape),
        "pass_shapes": (ctypes.c_uint32 * (MAX_DIMS << MAX_DIMS))(*_pass_shapes(plan)),
        "tile_count": len(plan.grid),
        "in_bytes": sizes["in"],
        "out_bytes": sizes["out"],
        "tmp_bytes": sizes.get("tmp", 0),
        "one_pitch": int(plan.ub.has_one_pitch),
        "inf_nan": int(program.inf_nan_mode),
        "saturate": int(not any(cast.truncates for cast in program.resolution.casts)),
        "step_count": len(steps),
        "steps": (ctypes.c_uint32 * MOST_WORK)(*(word for word, _ in steps)),
        "scalars": (ctypes.c_uint32 * MOST_WORK)(*(scalar for _, scalar in steps)),
    }
    return CastTilingData(**values)


def tiling_words(program: TileProgram) -> tuple[int, ...]:
    """The tiling data as its 32-bit words, in order."""
    data = tiling_data(program)
    return tuple((ctypes.c_uint32 * (ctypes.sizeof(data) // 4)).from_buffer(data))


def _route_step(step: Step) -> tuple[int, int]:
    """A step of a route as the kernel reads it, from the low byte up, and its scalar."""
    if isinstance(step, LowByteStep):
        raise ValueError("a route keeps no low bytes")
    scalar, truncates = 0, False
    if isinstance(step, ScalarStep):
        number = len(INSTANCES) + SCALARS.index((step.op, step.format))
        scalar = scalar_word(step.format, step.scalar)
    else:
        number = _NUMBERS[Instance(rule=MATRIX[step.src, step.dst], mode=step.mode)]
        truncates = step.truncates
    places = (_OPERANDS.index(operand) for operand in (step.source, step.target))
    return int.from_bytes((number, *places, truncates), "little"), scalar


def scalar_word(fmt: Format, scalar: float) -> int:
    """A scalar as 32 bits: the code of an FP32 for floats, else the low bits of the integer."""
    if isinstance(fmt, f.FloatFormat):
        return int.from_bytes(struct.pack("<f", scalar), "little")
    return int(scalar) & 0xFFFFFFFF


def _pass_shapes(plan: TilePlan) -> Iterator[int]:
    """Yields the pass of a full tile, then of those that are tails along each choice of axes."""
    grid = plan.merged
    tails = (s % t or t for s, t in zip(grid.shape, grid.tile_shape, strict=True))
    along = [*itertools.repeat((1, 1), MAX_DIMS - len(grid.shape))]
    for extents in itertools.product(*along, *zip(grid.tile_shape, tails, strict=True)):
        yield from _full(plan.ub.pass_of(extents[-len(grid.shape) :]))


def _words(shape: Shape) -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * MAX_DIMS)(*_full(shape))


def _full(shape: Shape) -> Shape:
    return (1,) * (MAX_DIMS - len(shape)) + shape


# --- The header --------------------------------------------------------------------------------


def header() -> str:
    """The text of the generated header."""
    parts = [
        "// Generated by `python -m ascend_kernels.emit`; do not edit.",
        "// clang-format off",
        "#ifndef PYPTO_CAST_INSTANCES_H",
        "#define PYPTO_CAST_INSTANCES_H",
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        *_struct(),
        "",
        "// Every native cast, in launch order: X(name, source, destination, round mode).",
        *itertools.chain.from_iterable(
            macro(
                part,
                [
                    _instance(x.name, x.rule.src, x.rule.dst, round_mode(x.mode))
                    for x in INSTANCES
                    if part_name(x.rule.src) == part
                ],
            )
            for part in NATIVE_PARTS
        ),
        *macro("PYPTO_CAST_INSTANCES", [f"{part}(X)" for part in NATIVE_PARTS]),
        "",
        "// Steps of routes besides casts, which follow them: X(name, instruction, type).",
        *macro("PYPTO_CAST_SCALARS", [_scalar(op, fmt) for op, fmt in SCALARS]),
        "",
        "// The instances for routes, which follow: by the widths of source and destination.",
        *macro(ROUTES_PART, [_instance(x.name, x.src, x.dst, _LISTED) for x in ROUTE_INSTANCES]),
        "",
        "// The pairs on which SaturationMode.OFF acts: X(source, destination, steps...).",
        "// `mode` is the instance's round mode.",
        *macro("PYPTO_CAST_LOW_BITS", [_low_bits(rule) for rule in MATRIX.values() if rule.off]),
        "",
        "#endif  // PYPTO_CAST_INSTANCES_H",
    ]
    return "\n".join(parts) + "\n"


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


def _scalar(op: ScalarOp, fmt: Format) -> str:
    return f"X({op.name.lower()}_{fmt.name.lower()}, {op.value}, {CPP_TYPES[fmt]})"


def round_mode(mode: RoundMode | None) -> str:
    return f"AscendC::RoundMode::CAST_{mode or 'NONE'}"


def _low_bits(rule: CastRule) -> str:
    steps = ", ".join(_step(step) for step in rule.off)
    return f"X({CPP_TYPES[rule.src]}, {CPP_TYPES[rule.dst]}, {steps})"


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
    """Write the header, or with --check tell whether it is stale."""
    prog = "python -m ascend_kernels.emit"
    text = header()
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    if not parser.parse_args().check:
        HEADER.write_text(text, encoding="utf-8")
        return 0
    if HEADER.exists() and HEADER.read_text(encoding="utf-8") == text:
        return 0
    print(f"{HEADER.name} is stale: run {prog}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
