"""Tile programs of any row of the matrix, for the tests of the twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ascend_kernels.matrix import CastControls, CastRule, resolve, rules_of
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.twin import TwinUnavailableError, library
from simulator.corrections import FP4_MODES, Readings
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950, CHIPS, Chip
from tiling.grid import Shape
from tiling.plan import plan
from tiling.ub import ElementBits


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the matrix with everything that changes its bits."""

    rule: CastRule
    mode: RoundMode | None
    saturate: bool
    controls: CastControls

    def __str__(self) -> str:
        flags = {
            "-off": not self.saturate,
            "-saturating": not self.controls.inf_nan_mode,
            "-keeping-nan": self.controls.fp8_nan,
            "-by-satmode": not self.controls.global_saturation,
        }
        chosen = "".join(name for name, holds in flags.items() if holds)
        prefix = "" if self.rule.family == A2_A3 else f"{self.rule.family}-"
        return f"{prefix}{self.rule.src}-{self.rule.dst}-{self.mode or 'exact'}{chosen}".lower()

    @property
    def is_plain(self) -> bool:
        """In the default mode and under the default control bits."""
        state = CastControls(readings=self.controls.readings)
        return self.controls == state and self.mode == self.rule.default

    @property
    def inf_nan(self) -> bool:
        return self.controls.inf_nan_mode

    @property
    def chip(self) -> Chip:
        """The first one of its family."""
        return next(chip for chip in CHIPS.values() if chip.isa == self.rule.family)

    @property
    def least(self) -> int:
        """Elements that the last axis is a multiple of."""
        return 2 if min(self.rule.src.bits, self.rule.dst.bits) < 8 else 1

    def program(self, shape: Shape, tile: Shape | None, chip: Chip | None = None) -> TileProgram:
        rule, controls = self.rule, self.controls
        found = resolve(
            *(rule.family, rule.src, rule.dst, self.mode),
            saturate=self.saturate,
            strict=True,
            controls=controls,
        )
        bits = ElementBits(src=rule.src.bits, dst=rule.dst.bits, tmp=found.tmp_bits)
        return lower(plan(shape, tile, bits, chip or self.chip), found, controls)


READ_950: Readings = ((FP4_MODES.name, "five"),)
"""Readings under which the 950 has the most modes."""
REFUSED = {
    (fmt, mode)
    for fmt in (f.E4M3FN, f.E5M2)
    for mode in (RoundMode.ROUND, RoundMode.FLOOR, RoundMode.CEIL, RoundMode.TRUNC)
}
"""Destinations from FP32 with modes that pypto has on the 950 and Cast of AscendC lacks."""


def cases(family: str, readings: Readings = ()) -> Iterator[Case]:
    """Every row, mode, saturation mode that acts, and state of the control bits that act."""
    for rule in rules_of(family, readings).values():
        for mode in rule.modes or (None,):
            if family != A2_A3 and (rule.dst, mode) in REFUSED:
                continue
            for controls in states(family, rule):
                acts = rule.off and controls.global_saturation
                for saturate in (True, False) if acts else (True,):
                    yield Case(
                        rule=rule,
                        mode=mode,
                        saturate=saturate,
                        controls=replace(controls, readings=readings),
                    )


def states(family: str, rule: CastRule) -> Iterator[CastControls]:
    """Both of CTRL[48]; where the family has them, [50] and [60] where they change something."""
    yield CastControls()
    yield CastControls(inf_nan_mode=False)
    if family != A2_A3:
        if rule.saturation_with_nan is not rule.saturation:
            yield CastControls(inf_nan_mode=False, fp8_nan=True)
        if rule.overflow is not rule.saturation or rule.off:
            yield CastControls(global_saturation=False)


CASES_950 = tuple(cases(ASCEND_950, READ_950))
CASES = (*cases(A2_A3), *CASES_950)
DISTINCT = tuple(case for case in CASES if case.is_plain)
"""Every row and saturation mode once: what instructions there are depends on little more."""
OF_A2_A3 = tuple(c for c in CASES if c.rule.family == A2_A3)


def random_codes(fmt: Format, elems: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    mask = fmt.code_dtype.type((1 << fmt.bits) - 1)
    codes: np.ndarray = random.bytes(elems * fmt.code_dtype.itemsize)
    return np.frombuffer(codes, fmt.code_dtype) & mask


def needs_twin() -> None:
    """Skip where nothing can be compiled."""
    try:
        library()
    except TwinUnavailableError as error:
        pytest.skip(str(error))
