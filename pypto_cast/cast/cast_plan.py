"""Plans a cast from dtypes, shape and context before any value is touched."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from ascend_kernels.matrix import (
    MATRIX,
    Resolution,
    UnsupportedCastError,
    resolve,
    unsupported,
)
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.routing.verdict_table import advised
from ascend_kernels.vector_work import element_bits, vector_work
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.options.context import current
from pypto_cast.report.markup import fragment
from pypto_cast.report.notebook_tables import plan_table
from simulator.numbers.formats import FP32, Format
from tiling.chips import Chip
from tiling.grid import Shape
from tiling.plan import TilePlan, TileShapeWarning, plan


@dataclass(frozen=True, slots=True, kw_only=True)
class CastPlan:
    """A cast of a tensor of some shape, decided.

    Attributes:
        dst: the dtype of the result.
        mode: the mode asked for.
        satmode: the satmode asked for.
        program: how the cores do it.
        diagnostics: what a user should be warned of.
    """

    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    program: TileProgram
    diagnostics: tuple[tuple[type[UserWarning], str], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        of_tiles = ((TileShapeWarning, text) for text in self.tiles.diagnostics)
        object.__setattr__(self, "diagnostics", (*self.resolution.diagnostics, *of_tiles))

    @property
    def resolution(self) -> Resolution:
        """The cast as A2/A3 carries it out."""
        return self.program.resolution

    @property
    def tiles(self) -> TilePlan:
        """Tiles, cores, UB."""
        return self.program.plan

    def _repr_html_(self) -> str:
        return fragment(plan_table(self.tiles))


def is_unchanged(src: DataType, dst: DataType, mode: CastMode) -> bool:
    """Tells whether `cast` gives its input back; FP32 to FP32 with a mode rounds to integers."""
    return src is dst and (dst.format is not FP32 or mode is CastMode.CAST_NONE)


def resolve_cast(
    src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode
) -> Resolution:
    """The row of the matrix, the mode and the steps of a cast in this context.

    Raises:
        UnsupportedCastError: A2/A3 does not convert this pair.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
    """
    return _resolve(src, dst, mode, satmode, strict=current().strict)


def wraps(src: DataType, dst: DataType) -> bool:
    """Tells whether SaturationMode.OFF acts on a pair."""
    rule = (
        None if src.format is None or dst.format is None else MATRIX.get((src.format, dst.format))
    )
    return rule is not None and bool(rule.off)


def plan_cast(
    shape: Shape, src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode
) -> CastPlan:
    """The tiles and the program of a cast in this context too; equal casts share one plan.

    Raises:
        UnsupportedCastError: A2/A3 does not convert this pair.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
        ShapeError: no cast takes the shape.
        TileShapeError: the tile shape of this context does not go with it.
    """
    context = current()
    return _plan_cast(
        # A SymbolicScalar equals its int, and must not come back to a cast of plain ints.
        tuple(map(int, shape)),
        src,
        dst,
        mode,
        satmode,
        context.vec_tile_shapes,
        context.chip,
        context.strict,
        context.inf_nan_mode,
    )


# Every argument decides: whatever a plan is to depend on must be one of them.
@functools.lru_cache(maxsize=256)
def _plan_cast(
    shape: Shape,
    src: DataType,
    dst: DataType,
    mode: CastMode,
    satmode: SaturationMode,
    tile_shape: Shape,
    chip: Chip,
    strict: bool,
    inf_nan_mode: bool,
) -> CastPlan:
    resolution = _resolve(src, dst, mode, satmode, strict=strict)
    tiles = plan(
        shape,
        tile_shape or None,
        element_bits(resolution),
        chip,
        strict=strict,
        work=None if tile_shape else vector_work(resolution),
    )
    program = lower(tiles, resolution, inf_nan_mode=inf_nan_mode)
    return CastPlan(dst=dst, mode=mode, satmode=satmode, program=program)


def _resolve(
    src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode, *, strict: bool
) -> Resolution:
    src_format, dst_format = known_formats(src, dst)
    saturate = satmode is SaturationMode.ON
    try:
        return resolve(src_format, dst_format, mode.round_mode, saturate=saturate, strict=strict)
    except UnsupportedCastError as error:
        raise advised(error, src_format, dst_format, mode.round_mode) from None


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
