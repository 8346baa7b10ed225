"""The instances of the kernel: one for each native cast, and those whose steps are listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ascend_kernels.matrix import (
    MATRIX,
    CastRule,
    LowByteStep,
    Resolution,
    resolve,
)
from ascend_kernels.routing.chains import MOST_WORK, ROUTE_FORMATS
from ascend_kernels.routing.vector_rows import storage_format
from simulator.machine.core import SCALAR_FORMATS
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3


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
    for rule in MATRIX[A2_A3].values()
    for mode in rule.instruction_modes
)
"""The instances of one native cast, in the order of the table: a launcher counts from 0."""

FAMILIES: Final = tuple(dict.fromkeys(instance.rule.family for instance in INSTANCES))
"""The families that the AscendC kernel is compiled for."""

_COPIED: Final = {fmt.bits: fmt for fmt in (f.INT4, f.UINT8, f.INT16, f.INT32, f.INT64)}
"""The format as which copies take the elements of each width."""

ROUTE_INSTANCES: Final = tuple(
    RouteInstance(src=_COPIED[src], dst=_COPIED[dst])
    for src, dst in dict.fromkeys(
        (storage_format(src).bits, storage_format(dst).bits)
        for src in ROUTE_FORMATS
        for dst in ROUTE_FORMATS
        if src is not dst
    )
)
"""The instances for routes; a launcher counts on from `INSTANCES`."""


def part_name(src: Format) -> str:
    """The macro that lists the instances of a source format; each is a translation unit."""
    return f"PYPTO_CAST_INSTANCES_{src}"


NATIVE_PARTS: Final = tuple(dict.fromkeys(part_name(rule.src) for rule in MATRIX[A2_A3].values()))
ROUTES_PART: Final = "PYPTO_CAST_INSTANCES_ROUTES"
PARTS: Final = (*NATIVE_PARTS, ROUTES_PART)
"""The macros of all translation units, in launch order."""

NUMBERS: Final = {instance: number for number, instance in enumerate(INSTANCES)}
SCALARS: Final = tuple((op, fmt) for op, formats in SCALAR_FORMATS.items() for fmt in formats)
"""The instructions with a scalar that steps of a route may be; they count on from the casts."""


def instance_number(resolution: Resolution) -> int:
    """The place in the table of the instance that carries out a cast, of either saturation mode.

    Raises:
        ValueError: the steps are neither those of a row of the matrix nor a route that clamps; or
            the kernel has no instances for the family.
    """
    rule = resolution.rule
    if rule.family not in FAMILIES:
        raise ValueError(
            f"the AscendC kernel has instances for {', '.join(FAMILIES)}, none for {rule.family}: "
            f"{rule} runs with another engine"
        )
    if is_row(resolution):
        mode = resolution.mode if rule.instruction_modes != (None,) else None
        return NUMBERS[Instance(rule=rule, mode=mode)]
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


def is_row(resolution: Resolution) -> bool:
    rule = resolution.rule
    return (rule.src, rule.dst) in MATRIX.get(rule.family, {}) and resolution.steps in (
        resolve(rule.family, rule.src, rule.dst, resolution.mode, saturate=saturate).steps
        for saturate in (True, False)
    )
