"""The kernels of a device check, and a launch of one of them.

    python -m ascend_kernels.checks.check_program            writes csrc/checks/check_instances.h
    python -m ascend_kernels.checks.check_program --check    fails if that file is not what would be

csrc/checks/check_kernel.h has the kernels; this table has their instances and their tiling data.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ascend_kernels.emit import CPP_TYPES, macro, round_mode
from ascend_kernels.instances import TARGETS
from ascend_kernels.matrix import MATRIX, CastRule
from simulator.machine.memory import Bytes
from simulator.numbers.formats import FP16, FP32, FloatFormat
from simulator.numbers.native.format_tables import write_or_check
from tiling.chips import A2_A3, ASCEND_950

CHECK_SOURCES: Final = Path(__file__).parents[1] / "csrc" / "checks"
CHECK_HEADER: Final = CHECK_SOURCES / "check_instances.h"
BINARY: Final = ("vadd", "vsub", "vmul", "vdiv")
UNARY: Final = ("vsqrt", "vexp", "vln", "vrsqrt")
SUM: Final = "vcadd"
INT_SUM: Final = "int_sum_{}_{}"
"""The instance for sums whose low bits are kept, or that are clamped, and a format: of the 950."""
WIDENED: Final = {f"autocast_{name}": name for name in ("vadd", "vmul", "vexp", "vrsqrt")}
"""Instructions of FP32 on widened FP16, and their names without it."""
SORTS: Final[Mapping[str, tuple[str, tuple[int, ...]]]] = {
    "sort": ("NoMerge", (32, 32, 32, 32)),
    "merge": ("EqualLists", (32, 32, 32, 32)),
    "merge_unequal": ("UnequalLists", (32, 8, 24, 16)),
}
"""Of a kernel that sorts four lists of 32 scores: the name of the merge in C++, and the lengths of
the lists in its results."""
EXTREMES: Final[Mapping[str, str]] = {"argmax": "true", "argmin": "false"}
"""Instances that give the extreme of each 256 B, and its place; whether it is the greatest."""
RESULT_BYTES: Final = 32
"""Bytes that each core writes of a number."""
REPEAT_BYTES: Final = 256

_FIELDS: Final = (
    ("passes", "parts of the operands; copies that a sweep makes"),
    ("pass_elems", "elements of one operand, or of a Cast"),
    ("result_elems", "results of a pass"),
    ("times", "how often the action between two looks at the clock is done"),
    ("blocks", "of a copy"),
    ("block_bytes", "of a copy"),
    ("ub_bytes", "UB of the action"),
    ("half_bytes", "where the results of a Cast begin there"),
    ("ctrl_mask", "the bits of the upper half of CTRL that are written"),
    ("ctrl_bits", "those of them that are left 1"),
)


class CheckTilingData(ctypes.Structure):
    """The struct of this name in C++."""

    _fields_ = [(name, ctypes.c_uint32) for name, _ in _FIELDS]


def arithmetic_name(instruction: str, fmt: FloatFormat) -> str:
    """The instance that carries out one instruction."""
    return f"{instruction}_{fmt}".lower()


def cast_clock_name(rule: CastRule, *, apart: bool) -> str:
    """The instance that times a Cast of a pair; `apart`: with a barrier before each."""
    return f"clock_{rule.src}_{rule.dst}{'_apart' if apart else ''}".lower()


def _shared() -> dict[str, str]:
    """The kernels that all families have: of each instance, as C++ names it."""
    found = {
        arithmetic_name(name, fmt): f"Arithmetic<{name[:2].upper()}{name[2:]}, {CPP_TYPES[fmt]}>"
        for name in (*BINARY, *UNARY, SUM)
        for fmt in (FP32, FP16)
    }
    found |= {
        arithmetic_name(name, fmt): f"Sorting<{CPP_TYPES[fmt]}, {lists}>"
        for name, (lists, _) in SORTS.items()
        for fmt in (FP32, FP16)
    }
    found |= {
        arithmetic_name(name, fmt): f"Arithmetic<Extreme<{is_max}>, {CPP_TYPES[fmt]}>"
        for name, is_max in EXTREMES.items()
        for fmt in (FP32, FP16)
    }
    found |= {"ctrl_read": "Control<false>", "ctrl_set": "Control<true>"}
    found |= {
        arithmetic_name(name, FP16): f"Arithmetic<Widened<{wide[:2].upper()}{wide[2:]}>, half>"
        for name, wide in WIDENED.items()
    }
    found["copy_tail"] = "CopyTail"
    return found


def _integer_sums() -> dict[str, str]:
    """The kernels of sums of integers."""
    return {
        INT_SUM.format(word, fmt): f"Arithmetic<IntegerAdd<{clamps}>, {fmt}_t>"
        for word, clamps in (("kept", "false"), ("clamped", "true"))
        for fmt in ("int16", "int32")
    }


def _clocks(family: str) -> dict[str, str]:
    """The kernels that time."""
    found = {f"clock_{name.lower()}": f"Clock<{name}>" for name in ("Nothing", "Barrier", "Flag")}
    found |= {"clock_read": "Clock<Copy<true>>", "clock_write": "Clock<Copy<false>, true>"}
    found |= {"clock_read_gm": "Clock<Sweep<true>>", "clock_write_gm": "Clock<Sweep<false>, true>"}
    found |= {"clock_pass": "Clock<Pass, true>", "clock_task": "Clock<Task, true>"}
    found["clock_slots"] = "Clock<Slots, true>"
    for rule in MATRIX[family].values():
        mode = rule.default if rule.instruction_modes != (None,) else None
        for apart in (False, True):
            words = f"{CPP_TYPES[rule.src]}, {CPP_TYPES[rule.dst]}, {round_mode(mode)}"
            cast = f"CastOf<{words}, {str(apart).lower()}>"
            found[cast_clock_name(rule, apart=apart)] = f"Clock<{cast}>"
    return found


_SHARED: Final = _shared()
_OWN: Final[Mapping[str, Mapping[str, str]]] = {A2_A3: _clocks(A2_A3), ASCEND_950: _integer_sums()}
"""The kernels that one family alone has. No cost set has figures of the 950: it has no clock."""
CHECK_KERNELS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {family: MappingProxyType(_SHARED | dict(_OWN[family])) for family in TARGETS}
)
"""By family, in launch order; those that all families have are first."""
_NUMBERS: Final = {
    name: number for names in CHECK_KERNELS.values() for number, name in enumerate(names)
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckProgram:
    """A launch of a check's kernel.

    Attributes:
        kernel: a name of CHECK_KERNELS, of a family that has it.
        x: what it reads, as bytes.
        result_bytes: what it writes.
        cores: vector cores that run it.
        tiling: fields of the tiling data; those that are not named are 0.
    """

    kernel: str
    x: Bytes
    result_bytes: int
    cores: int
    tiling: dict[str, int]

    @property
    def instance(self) -> int:
        """The place in the table."""
        return _NUMBERS[self.kernel]

    @property
    def data(self) -> CheckTilingData:
        """The tiling data."""
        return CheckTilingData(**self.tiling)

    @property
    def words(self) -> list[int]:
        """The tiling data as its words."""
        return [self.tiling.get(name, 0) for name, _ in _FIELDS]


def check_header() -> str:
    """The text of the generated header."""
    fields = [f"    uint32_t {name};  // {text}" for name, text in _FIELDS]
    own: list[str] = []
    for family, kernels in _OWN.items():
        own += [
            f"{'#elif' if own else '#if'} PYPTO_CAST_ARCH == {TARGETS[family].architecture}",
            *macro("PYPTO_CHECK_INSTANCES", ["PYPTO_CHECK_SHARED(X)", *_entries(kernels)]),
        ]
    lines = [
        "// Generated by `python -m ascend_kernels.checks.check_program`; do not edit.",
        "// clang-format off",
        "#ifndef PYPTO_CHECK_INSTANCES_H",
        "#define PYPTO_CHECK_INSTANCES_H",
        "",
        "#include <cstdint>",
        "",
        '#include "../cast_instances.h"',
        "",
        "struct CheckTilingData {",
        *fields,
        "};",
        f"static_assert(sizeof(CheckTilingData) == {ctypes.sizeof(CheckTilingData)});",
        "",
        "// Every kernel, in launch order: X(name, type...).",
        *macro("PYPTO_CHECK_SHARED", _entries(_SHARED)),
        *own,
        "#endif",
        "",
        "#endif  // PYPTO_CHECK_INSTANCES_H",
    ]
    return "\n".join(lines) + "\n"


def _entries(kernels: Mapping[str, str]) -> list[str]:
    return [f"X({name}, {kernel})" for name, kernel in kernels.items()]


def main() -> int:
    prog = "python -m ascend_kernels.checks.check_program"
    return write_or_check(prog, CHECK_HEADER, check_header())


if __name__ == "__main__":
    sys.exit(main())
