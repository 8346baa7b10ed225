"""Tile programs of casts that differ in widths and steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import strategies as st

from ascend_kernels.matrix import CastControls, resolve
from ascend_kernels.program import TileProgram, lower
from simulator.machine.isa import DataCopyPad, Instruction
from simulator.numbers import formats as f
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, DEFAULT_CHIP
from tiling.grid import Shape
from tiling.plan import plan
from tiling.ub import ElementBits

CASTS = [
    (f.FP32, f.FP16, True),
    (f.FP32, f.FP32, True),
    (f.INT64, f.FP32, True),
    (f.FP32, f.INT64, True),
    (f.INT32, f.FP16, True),
    (f.UINT8, f.FP16, True),
    (f.FP16, f.INT4, True),
    (f.INT4, f.FP16, True),
    (f.FP32, f.INT16, False),
    (f.FP16, f.INT16, False),
    (f.FP16, f.INT8, False),
    (f.FP16, f.UINT8, False),
]
CAST_IDS = [f"{s}-{d}-{'on' if saturate else 'off'}".lower() for s, d, saturate in CASTS]


def program_of(
    shape: Shape,
    tile: Shape,
    src: Format = f.FP32,
    dst: Format = f.FP16,
    mode: RoundMode | None = None,
    *,
    saturate: bool = True,
    inf_nan_mode: bool = True,
) -> TileProgram:
    resolution = resolve(A2_A3, src, dst, mode, saturate=saturate)
    bits = ElementBits(src=src.bits, dst=dst.bits, tmp=resolution.tmp_bits)
    made = plan(shape, tile, bits, DEFAULT_CHIP)
    return lower(made, resolution, CastControls(inf_nan_mode=inf_nan_mode))


def all_instructions(program: TileProgram) -> Iterator[Instruction]:
    for core in program.cores:
        yield from program.instructions(core)


def copies(program: TileProgram) -> Iterator[DataCopyPad]:
    return copies_among(all_instructions(program))


def copies_among(instructions: Iterable[Instruction]) -> Iterator[DataCopyPad]:
    return (i for i in instructions if isinstance(i, DataCopyPad))


@st.composite
def shapes(draw: st.DrawFn, *, last: int = 70) -> tuple[Shape, Shape]:
    """A shape of 1 to 4 axes with an even last one, and a tile that may be larger."""
    rows = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 7)), max_size=3))
    cols = 2 * draw(st.integers(1, last))
    tile_cols = 2 * draw(st.integers(1, last + 10))
    return (*(s for s, _ in rows), cols), (*(t for _, t in rows), tile_cols)
