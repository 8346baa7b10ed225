"""Plans of casts, and what the UB rule charges for their tiles, from the rule itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st

from tiling.chips import DEFAULT_CHIP, Chip
from tiling.grid import Shape
from tiling.plan import TilePlan, TileShapeError, plan
from tiling.ub import ElementBits

UB_BYTES = 196608
SAFE_BYTES = 188160
MAX_ELEMS = 2147483647

FP32_FP16 = ElementBits(src=32, dst=16)
INT64_FP32 = ElementBits(src=64, dst=32)
FP16_INT4 = ElementBits(src=16, dst=4)
FP16_INT8_OFF = ElementBits(src=16, dst=8, tmp=32)
WIDTHS = [
    FP32_FP16,
    INT64_FP32,
    FP16_INT4,
    FP16_INT8_OFF,
    ElementBits(src=4, dst=16),
    ElementBits(src=8, dst=16),
    ElementBits(src=16, dst=16, tmp=32),
    ElementBits(src=32, dst=32),
    ElementBits(src=32, dst=64),
]


def planned(
    shape: Shape,
    tile: Shape | None,
    bits: ElementBits = FP32_FP16,
    *,
    chip: Chip = DEFAULT_CHIP,
    strict: bool = False,
) -> TilePlan:
    return plan(shape, tile, bits, chip, strict=strict)


def refused(shape: Shape, tile: Shape | None, bits: ElementBits = FP32_FP16) -> str:
    """The text of the TileShapeError that planning gives."""
    with pytest.raises(TileShapeError) as error:
        planned(shape, tile, bits)
    return str(error.value)


def line_bytes(elems: int, bits: int) -> int:
    """Bytes of a row in UB, from the rule: padded to 32 B."""
    whole_bytes = math.ceil(elems * bits / 8)
    return math.ceil(whole_bytes / 32) * 32


def charged_bytes(tile: Shape, bits: ElementBits) -> int:
    """Bytes of UB that the rule charges for a tile."""
    rows = math.prod(tile[:-1])
    return rows * (line_bytes(tile[-1], bits.src) + line_bytes(tile[-1], bits.dst))


def grids(*, longest: int = 9) -> st.SearchStrategy[tuple[Shape, Shape]]:
    """A shape of 1 to 4 axes and a tile for it, possibly larger than the tensor."""
    axis = st.tuples(st.integers(1, longest), st.integers(1, longest + 3))
    return st.lists(axis, min_size=1, max_size=4).map(
        lambda axes: (tuple(s for s, _ in axes), tuple(t for _, t in axes))
    )


@st.composite
def fitting_tiles(draw: st.DrawFn) -> tuple[Shape, ElementBits]:
    """A tile that the UB rule admits, of 1 to 4 axes, anywhere up to the limit."""
    bits = draw(st.sampled_from(WIDTHS))
    cols = 2 * draw(st.integers(1, 8192))
    row_bytes = line_bytes(cols, bits.src) + line_bytes(cols, bits.dst)
    rows = draw(st.integers(1, UB_BYTES // row_bytes))
    axes = draw(
        st.sampled_from([(rows, cols), (1, rows, cols), (rows, 1, cols), (1, rows, 1, cols)])
    )
    return axes, bits
