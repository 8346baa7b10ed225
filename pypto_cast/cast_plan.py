"""What `cast` will do, decided from dtypes, shape and context before any value is touched."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_kernels.matrix import MATRIX, Resolution, resolve, unsupported
from ascend_kernels.vector_work import element_bits, vector_work
from pypto_cast.dtypes import CastMode, DataType, SaturationMode
from pypto_cast.options import current
from simulator.numbers.formats import Format
from tiling.grid import Shape
from tiling.plan import TilePlan, plan


@dataclass(frozen=True, slots=True, kw_only=True)
class CastPlan:
    """A cast of a tensor of some shape, decided."""

    resolution: Resolution
    tiles: TilePlan


def resolved(src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode) -> Resolution:
    """The row of the matrix, the mode and the steps of a cast in this context.

    Raises:
        UnsupportedCastError: A2/A3 does not convert this pair.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
    """
    src_format, dst_format = known_formats(src, dst)
    return resolve(
        src_format,
        dst_format,
        mode.round_mode,
        saturate=satmode is SaturationMode.ON,
        strict=current().strict,
    )


def planned(
    shape: Shape, src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode
) -> CastPlan:
    """The tiles of a cast too.

    Raises:
        UnsupportedCastError: A2/A3 does not convert this pair.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
        ShapeError: no cast takes the shape.
        TileShapeError: the tile shape of this context does not go with it.
    """
    context = current()
    resolution = resolved(src, dst, mode, satmode)
    tile = context.vec_tile_shapes or None
    work = vector_work(resolution) if tile is None else None
    bits = element_bits(resolution)
    tiles = plan(shape, tile, bits, context.chip, strict=context.strict, work=work)
    return CastPlan(resolution=resolution, tiles=tiles)


def known_formats(src: DataType, dst: DataType) -> tuple[Format, Format]:
    """The number formats of both sides.

    Raises:
        UnsupportedCastError: the simulator knows none for one of them.
    """
    if src.format is None or dst.format is None:
        names = [str(d.format or d.name.removeprefix("DT_")) for d in (src, dst)]
        raise unsupported(names[0], names[1])
    return src.format, dst.format


def cast_format(dtype: DataType) -> Format:
    """The number format of a dtype that A2/A3 casts from or to.

    Raises:
        UnsupportedCastError: it does neither.
    """
    found, _ = known_formats(dtype, dtype)
    if not any(found in pair for pair in MATRIX):
        raise unsupported(found.name, found.name)
    return found
