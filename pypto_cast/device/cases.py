"""The casts that a device check makes: programs with codes, piece by piece."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ascend_kernels.matrix import MATRIX, CastControls, CastRule, Resolution, resolve
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.vector_work import element_bits
from pypto_cast.device.behaviour import CASTS, CheckedCast
from simulator.numbers.convert import codes_of
from simulator.numbers.formats import FP32, INT32, INT64, Codes, Format
from simulator.numbers.rounding import boundary_codes
from tiling.chips import Chip
from tiling.grid import Shape
from tiling.plan import plan

RANDOM_CODES: Final = 1_000_000
"""Random codes of a source of more than 16 bits, for each cast."""
_SETTLING: Final[Mapping[Format, tuple[float, ...]]] = {
    FP32: (65519.99, 65520.0, 65521.0, 70000.0, 1e30, 0.3),
    INT64: (2**24 + 1, 2**53 + 1, 2**63 - 1),
    INT32: (2049, 2051, 65519, 65520),
}
"""Numbers that settle a fact each; cast with both signs, also if the boundaries lack them."""
_TILE: Final = 4096
_PIECE: Final = 1 << 24
_SEED: Final = 20261122
PADDING: Final = "padding of rows"
UB_LIMIT: Final = "UB at its limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCase:
    """One launch.

    Attributes:
        program: the cast.
        codes: its input, 1-D.
        about: the fact that its differences tell of; None: by element, as behaviour.py has it.
    """

    program: TileProgram
    codes: Codes
    about: str | None = None

    @property
    def cast(self) -> CheckedCast:
        """The cast, whatever its tiles."""
        program = self.program
        return CheckedCast(resolution=program.resolution, inf_nan_mode=program.inf_nan_mode)


def cast_cases(
    chip: Chip, *, exhaustive: bool = False, random_codes: int = RANDOM_CODES
) -> Iterator[CheckCase]:
    """Every pair, mode, saturation and overflow mode, then shapes that end within a block.

    Args:
        chip: the device's.
        exhaustive: all codes of 32-bit sources, instead of boundaries and random codes.
        random_codes: how many of them.
    """
    for cast in CASTS.values():
        for codes in _pieces(cast.src, exhaustive, random_codes):
            shape = (codes.size,)
            program = _program(shape, _TILE, cast.resolution, chip, cast.inf_nan_mode)
            yield CheckCase(program=program, codes=codes)
    for rule in MATRIX[chip.isa].values():
        yield from _shapes(rule, chip)


def all_codes_of_32_bits() -> Iterator[Codes]:
    """Every code of a format of 32 bits, ascending, in pieces that a launch takes."""
    for first in range(0, 1 << 32, _PIECE):
        yield np.arange(first, first + _PIECE, dtype=np.uint32)


def _pieces(src: Format, exhaustive: bool, random_codes: int) -> Iterator[Codes]:
    if src.bits == 32 and exhaustive:
        yield from all_codes_of_32_bits()
    else:
        yield _sample(src, random_codes)


@functools.lru_cache(maxsize=2)
def _sample(src: Format, random_codes: int) -> Codes:
    """Boundaries and random codes, an even number of them; all codes of at most 16 bits."""
    codes = boundary_codes(src)
    if src.bits > 16:
        words = np.random.default_rng(_SEED).bytes(random_codes * src.code_dtype.itemsize)
        settling = np.array(_SETTLING[src]).astype(src.dtype)
        some = codes_of(np.concatenate([settling, -settling]), src)
        codes = np.concatenate([codes, some, np.frombuffer(words, src.code_dtype)])
    even = codes[: codes.size // 2 * 2]
    even.flags.writeable = False
    return even


def _shapes(rule: CastRule, chip: Chip) -> Iterator[CheckCase]:
    """Rows of every length up to two blocks; tiles that fill UB, and larger ones."""
    resolution = resolve(rule.family, rule.src, rule.dst, rule.default)
    least = 2 if min(rule.src.bits, rule.dst.bits) < 8 else 1
    bits = rule.src.bits + rule.dst.bits
    shapes = [((3, cols), cols, PADDING) for cols in range(least, 65, least)]
    for ub_bytes in (chip.ub_safe_bytes, chip.ub_bytes - 256 * bits // 8, chip.ub_bytes):
        cols = ub_bytes * 8 // (2 * bits) // 64 * 64
        shapes += [((2, cols - less), cols - less, UB_LIMIT) for less in (0, 64)]
    codes = boundary_codes(rule.src)
    for shape, tile, about in shapes:
        count = math.prod(shape)
        some = np.resize(codes[:: max(1, codes.size // count)], count)
        program = _program(shape, tile, resolution, chip, True)
        yield CheckCase(program=program, codes=some, about=about)


def _program(
    shape: Shape, cols: int, resolution: Resolution, chip: Chip, inf_nan_mode: bool
) -> TileProgram:
    tile = (*shape[:-1], min(cols, shape[-1]))
    tiles = plan(shape, tile, element_bits(resolution), chip)
    return lower(tiles, resolution, CastControls(inf_nan_mode=inf_nan_mode))
