"""Tile programs of any row of the matrix, for the tests of the twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from ascend_kernels.matrix import MATRIX, CastControls, CastRule, resolve
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.twin import TwinUnavailableError, library
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, DEFAULT_CHIP, Chip
from tiling.grid import Shape
from tiling.plan import plan
from tiling.ub import ElementBits


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the matrix with everything that changes its bits."""

    rule: CastRule
    mode: RoundMode | None
    saturate: bool
    inf_nan: bool

    def __str__(self) -> str:
        flags = ("" if self.saturate else "-off") + ("" if self.inf_nan else "-saturating")
        return f"{self.rule.src}-{self.rule.dst}-{self.mode or 'exact'}{flags}".lower()

    @property
    def least(self) -> int:
        """Elements that the last axis is a multiple of."""
        return 2 if min(self.rule.src.bits, self.rule.dst.bits) < 8 else 1

    def program(self, shape: Shape, tile: Shape | None, chip: Chip = DEFAULT_CHIP) -> TileProgram:
        rule = self.rule
        found = resolve(A2_A3, rule.src, rule.dst, self.mode, saturate=self.saturate)
        bits = ElementBits(src=rule.src.bits, dst=rule.dst.bits, tmp=found.tmp_bits)
        return lower(plan(shape, tile, bits, chip), found, CastControls(inf_nan_mode=self.inf_nan))


def cases() -> Iterator[Case]:
    """Every row, mode, saturation mode that acts, and overflow mode."""
    for rule in MATRIX[A2_A3].values():
        for mode in rule.modes or (None,):
            for saturate in (True, False) if rule.off else (True,):
                for inf_nan in (True, False):
                    yield Case(rule=rule, mode=mode, saturate=saturate, inf_nan=inf_nan)


CASES = tuple(cases())
DISTINCT = tuple(c for c in CASES if c.inf_nan and c.mode == c.rule.default)
"""Every row and saturation mode once: what instructions there are depends on no more."""


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
