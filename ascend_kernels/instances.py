"""The instances of the kernel: one for each native cast, and those whose steps are listed."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ascend_kernels.matrix import (
    MATRIX,
    READ_OTHERWISE,
    CastRule,
    LowByteStep,
    Pair,
    Resolution,
    with_mode,
)
from ascend_kernels.routing.chains import MOST_WORK, ROUTE_FORMATS
from ascend_kernels.routing.vector_rows import storage_format
from simulator.machine.core import SCALAR_FORMATS
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950


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


_COPIED: Final = {fmt.bits: fmt for fmt in (f.INT4, f.UINT8, f.INT16, f.INT32, f.INT64)}
"""The format as which copies take the elements of each width."""


def part_name(src: Format) -> str:
    """The macro that lists the instances of a source format; each is a translation unit."""
    return f"PYPTO_CAST_INSTANCES_{src}"


ROUTES_PART: Final = "PYPTO_CAST_INSTANCES_ROUTES"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelTarget:
    """A chip family that the AscendC kernel is compiled for, in libraries of its own.

    Attributes:
        family: the instructions of a chip, `Chip.isa`.
        architecture: of the compiler: --npu-arch=dav-2201 has the number 2201.
        minimum_cann: the oldest CANN against whose headers the kernels were compiled or read.
        instances: of one native cast, in the order of the table: a launcher counts from 0.
        route_instances: of routes; a launcher counts on from `instances`.
    """

    family: str
    architecture: int
    minimum_cann: tuple[int, int]
    instances: tuple[Instance, ...]
    route_instances: tuple[RouteInstance, ...]

    @property
    def native_parts(self) -> tuple[str, ...]:
        """The macros that list the native casts, in launch order."""
        return tuple(dict.fromkeys(part_name(x.rule.src) for x in self.instances))

    @property
    def parts(self) -> tuple[str, ...]:
        """The macros of all translation units, in launch order."""
        return (*self.native_parts, *((ROUTES_PART,) if self.route_instances else ()))

    def number(self, src: Format, dst: Format, mode: RoundMode | None) -> int | None:
        """The place of a native cast among the instances; None: there is none."""
        return _numbers(self).get((src, dst, mode))


@functools.cache
def _numbers(target: KernelTarget) -> dict[tuple[Format, Format, RoundMode | None], int]:
    return {(x.rule.src, x.rule.dst, x.mode): n for n, x in enumerate(target.instances)}


_API_MODES: Final[Mapping[str, Mapping[Pair, tuple[RoundMode, ...]]]] = {
    ASCEND_950: {(f.FP32, dst): (RoundMode.RINT,) for dst in (f.E4M3FN, f.E5M2)}
}
"""The modes of pairs for which Cast of AscendC has fewer than the matrix.

Of 950 (CANN asc-devkit 82b89a15, Cast of dav_3510) every other mode ends in an assertion.
"""


def _modes(rule: CastRule) -> tuple[RoundMode | None, ...]:
    """The modes of a row under any reading that AscendC's Cast has, those of the row first."""
    pair = (rule.src, rule.dst)
    read = [fields.get(pair) for fields in READ_OTHERWISE.get(rule.family, {}).values()]
    rows = (rule, *(dataclasses.replace(rule, **fields) for fields in read if fields))
    modes = dict.fromkeys(mode for row in rows for mode in row.instruction_modes)
    return modes_of_api(rule, modes)


def modes_of_api(rule: CastRule, modes: Iterable[RoundMode | None]) -> tuple[RoundMode | None, ...]:
    """Those of some modes that AscendC's Cast has for the pair of a row."""
    had = _API_MODES.get(rule.family, {}).get((rule.src, rule.dst))
    return tuple(mode for mode in modes if had is None or mode in had)


def _target(
    family: str,
    architecture: int,
    minimum_cann: tuple[int, int],
    route_formats: tuple[Format, ...] = (),
) -> KernelTarget:
    widths = [storage_format(fmt).bits for fmt in route_formats]
    ways = dict.fromkeys(
        (widths[src], widths[dst])
        for src, dst in itertools.permutations(range(len(route_formats)), 2)
    )
    return KernelTarget(
        family=family,
        architecture=architecture,
        minimum_cann=minimum_cann,
        instances=tuple(
            Instance(rule=rule, mode=mode)
            for rule in MATRIX[family].values()
            for mode in _modes(rule)
        ),
        route_instances=tuple(
            RouteInstance(src=_COPIED[src], dst=_COPIED[dst]) for src, dst in ways
        ),
    )


A2_A3_TARGET: Final = _target(A2_A3, 2201, (8, 5), ROUTE_FORMATS)
TARGETS: Final[Mapping[str, KernelTarget]] = MappingProxyType(
    {target.family: target for target in (A2_A3_TARGET, _target(ASCEND_950, 3510, (9, 1)))}
)
"""By family. Routes are those of A2 and A3."""

SCALARS: Final = tuple((op, fmt) for op, formats in SCALAR_FORMATS.items() for fmt in formats)
"""The instructions with a scalar that steps of a route may be; they count on from the casts."""


def target_of(family: str) -> KernelTarget:
    """An architecture that the AscendC kernel is compiled for.

    Raises:
        ValueError: the kernel has no instances for the family.
    """
    if family not in TARGETS:
        raise ValueError(
            f"the AscendC kernel has instances for {', '.join(TARGETS)}, none for {family}: "
            "another engine runs its casts"
        )
    return TARGETS[family]


def instance_number(resolution: Resolution) -> int:
    """The place in the table of the instance that carries out a cast, of either saturation mode.

    Raises:
        ValueError: the steps are neither those of a row of the matrix nor a route that clamps; the
            kernel has no instances for the family; or AscendC's Cast lacks the mode.
    """
    rule = resolution.rule
    target = target_of(rule.family)
    if is_row(resolution):
        mode = resolution.mode if rule.instruction_modes != (None,) else None
        number = target.number(rule.src, rule.dst, mode)
        if number is None:
            had = _API_MODES[rule.family][rule.src, rule.dst]
            raise ValueError(
                f"the AscendC kernel has no instance for {rule} CAST_{mode}: Cast of AscendC's "
                f"memory API has {', '.join(f'CAST_{each}' for each in had)} alone; another engine "
                "runs it"
            )
        return number
    steps = resolution.steps
    has_low_bytes = any(isinstance(step, LowByteStep) for step in steps)
    too_long = len(steps) > MOST_WORK or not target.route_instances
    if resolution.begins_truncating or has_low_bytes or too_long:
        words = " -> ".join(str(cast.dst) for cast in resolution.casts)
        raise ValueError(
            f"the kernel has no instance for {rule.src} -> {words}: it takes the rows of the "
            f"matrix and routes of at most {MOST_WORK} instructions that do not begin with low "
            "bits; the machine runs every program"
        )
    route = RouteInstance(src=_COPIED[rule.src.bits], dst=_COPIED[rule.dst.bits])
    return len(target.instances) + target.route_instances.index(route)


def is_row(resolution: Resolution) -> bool:
    """The steps are those of the pair's row of the matrix, in any mode."""
    rule = resolution.rule
    row = MATRIX.get(rule.family, {}).get((rule.src, rule.dst))
    return row is not None and resolution.steps in (
        tuple(with_mode(step, resolution.mode) for step in steps) for steps in (row.on, row.off)
    )
