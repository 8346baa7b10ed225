"""pypto's reductions, and blocks of a softmax; a sum adds in the order of the tile that is set.

Upstream cuts the axis into tiles, adds the tiles elementwise in pairs, then reduces what is left
inside one tile. Sources: upstream pypto, framework/src/interface/operation/vector/reduction.cpp
(tiles), docs/zh/api/operation/pypto-experimental-online_softmax.md and its _update; pto-isa
a2a3/TPartAdd.hpp, and the headers that `simulator.arithmetic.reduce` names.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from pypto_cast.call_sites import warn_caller
from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.operations.elementwise_functions import add, exp, maximum, mul, sub
from pypto_cast.operations.elementwise_plan import plain_form
from pypto_cast.operations.lowering import (
    RELEASE_DEPENDENCE,
    axis_of,
    check_memory_of,
    check_operand,
    grid_of,
    is_cast_inside,
    of_release,
    operand_values,
    result_tensor,
    rounds_operands,
    runs_in,
    tile_of,
    wraps,
)
from pypto_cast.operations.movement import without_axis
from pypto_cast.operations.operation_rows import (
    ADDED,
    BF16_IN_FP32,
    NUMBERS,
    ROWS,
    OperationRow,
    everywhere,
    on_950,
)
from pypto_cast.options import context as options
from pypto_cast.options.releases import Release
from pypto_cast.recording import recording
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import (
    ASSUME_SUM_ORDER,
    OPERATIONS,
    Enclosure,
    Fidelity,
    Operation,
    Tiles,
    join_arrays,
)
from simulator.arithmetic.evaluation import RepeatedRows
from simulator.arithmetic.trust import Trust
from simulator.numbers.formats import FP32, Format
from tiling.grid import Grid, Shape
from tiling.plan import ShapeError, TileShapeError, TileShapeWarning
from tiling.ub import round_up

if TYPE_CHECKING:
    from simulator.arithmetic.native.small_programs import Programs

_JOINED_BY: Final = {"sum": "add", "prod": "mul"}
"""The rows that join tiles, of reductions whose order matters."""

_reduction = partial(
    OperationRow, run_in_fp32=BF16_IN_FP32, example="pypto.{name}(x, -1)", is_method=True
)


@_reduction(dtypes=ADDED, opcodes={"T": "ROWMAX_SINGLE"})
def amax(input: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The greatest element along a dimension; NaN where there is one, +0 of both zeros."""
    return _reduced("amax", input, dim, keepdim)


@_reduction(dtypes=ADDED, opcodes={"T": "ROWMIN_SINGLE"})
def amin(input: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The least element along a dimension; NaN where there is one, -0 of both zeros."""
    return _reduced("amin", input, dim, keepdim)


@_reduction(
    dtypes=everywhere(*(d for d in NUMBERS if d is not DataType.DT_FP16)),
    takes={"0.2.0": (DataType.DT_FP16,)},
    opcodes={"T": "ROWSUM_SINGLE"},
)
def sum(input: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The sum along a dimension; of floats its bits depend on the tile shape along it.

    Warns:
        TileShapeWarning: no tile shape is set, so one tile takes the whole dimension.
    """
    return _reduced("sum", input, dim, keepdim)


@_reduction(
    dtypes=everywhere(DataType.DT_FP32, DataType.DT_INT32, DataType.DT_INT16),
    run_in_fp32={},
    takes={"0.2.0": (DataType.DT_FP16, DataType.DT_BF16)},
    cast_to_fp32={"0.2.0": (DataType.DT_FP16, DataType.DT_BF16)},
    composed_by=("0.2.0",),
    opcodes={"T": "ROWPROD_SINGLE"},
)
def prod(self: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The product along a dimension; of floats its bits depend on the tile shape along it.

    Integers wrap. NaN of an infinity and a zero; release 0.2.0 multiplies FP16 and BF16 in FP32.

    Warns:
        TileShapeWarning: no tile shape is set, so one tile takes the whole dimension.
    """
    x = check_operand("prod", self)
    if not is_cast_inside("prod", x.dtype):
        return _reduced("prod", x, dim, keepdim)
    return cast(_reduced("prod", cast(x, DataType.DT_FP32), dim, keepdim), x.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """A reduction of a plain tensor that was checked once, and keeps its axis.

    Attributes:
        context: the options, which are kept: they are found by their identity.
        axis: from 0.
        extent, count: of the tiles of the axis.
        dtype, shape: of the result.
        grid: the tiles of the result.
        repeated: its evaluation, by the identity of what is trusted, which is kept.
    """

    context: options.Options
    axis: int
    extent: int
    count: int
    dtype: DataType
    shape: Shape
    grid: Grid
    repeated: dict[int, tuple[Trust, RepeatedRows]] = field(default_factory=dict)

    def result(self, name: str, held: Enclosure) -> Tensor:
        """The result for other elements."""
        cause, trusted = recording.causes().index_here(name), trust(name)
        repeated = self.repeated.get(id(trusted))
        if repeated is None:
            repeated = self.repeated[id(trusted)] = trusted, RepeatedRows()
        values = repeated[1].result(held)
        if values is None:
            kept = repeated[1].programs
            reduction = _Reduction(ROWS[name].arithmetic, FP32, self.axis, cause, kept)
            values = reduction.of(held, self.extent, self.count)
        patches = recording.record_operation(cause, self.grid, self.context.chip.vector_cores)
        return Tensor._computed(self.shape, self.dtype, values, patches)


_SETTLED: Final[dict[tuple[object, ...], _Settled]] = {}
_MOST_SETTLED: Final = 1 << 12


def _reduced(name: str, input: Tensor, dim: int, keepdim: bool) -> Tensor:
    form = plain_form(name, (input,)) if keepdim is True and type(dim) is int else None
    if form is None:
        return _checked(name, input, dim, keepdim)
    key, (held,) = (*form[0], dim), form[1]
    known = _SETTLED.get(key)
    if known is not None and held is not None:
        return known.result(name, held)
    result = _checked(name, input, dim, keepdim)
    found = _settled(name, input, dim)
    if found is not None:
        if len(_SETTLED) >= _MOST_SETTLED:
            _SETTLED.clear()
        _SETTLED[key] = found
    return result


def _settled(name: str, x: Tensor, dim: int) -> _Settled | None:
    """A reduction that succeeded, where nothing else is to be done for it than to compute.

    None of one that warns each time, tells a kernel of other releases, or fits by a schedule alone.
    """
    if x._dtype is not DataType.DT_FP32:
        return None
    noted: list[str] = []
    token = RELEASE_DEPENDENCE.set(noted)
    try:
        plan = _planned(name, x, axis := dim % x.dim)
    finally:
        RELEASE_DEPENDENCE.reset(token)
    if plan.tile is None or noted or not plan.fits or plan.fmt is not FP32:
        return None
    return _Settled(
        context=options.current(),
        axis=axis,
        extent=plan.tile[axis],
        count=-(-x._shape[axis] // plan.tile[axis]),
        dtype=x._dtype,
        shape=plan.kept,
        grid=grid_of(plan.kept, plan.tile),
    )


def _checked(name: str, input: Tensor, dim: int, keepdim: bool) -> Tensor:
    x = check_operand(name, input)
    axis = axis_of(name, dim, x.dim)
    if not isinstance(keepdim, bool):
        raise TypeError(f"{name}: keepdim must be True or False, not {keepdim!r}")
    return without_axis(reduced(name, x, axis), axis, keepdim=keepdim)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The shape and format of a reduction, its tile, if one is set, and if that fits in UB."""

    kept: Shape
    fmt: Format
    tile: Shape | None
    fits: bool


def _planned(name: str, x: Tensor, axis: int) -> _Plan:
    """Check an operand, and decide on shape, format and tile."""
    shape = tuple(map(int, x.shape))
    fmt = runs_in(name, x.dtype)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    tile, fits = tile_of(name, shape), True
    if tile is not None:
        if axis == x.dim - 1:
            _check_whole_blocks(name, x)
        fits = check_memory_of(
            name,
            tile,
            [(shape, fmt.bits), (kept, fmt.bits)],
            lambda extents: _scratch(name, extents, fmt, axis),
        )
    return _Plan(kept=kept, fmt=fmt, tile=tile, fits=fits)


@recording.replayable
def reduced(name: str, x: Tensor, axis: int) -> Tensor:
    """Reduce an axis to one element.

    Args:
        name: of the row.
        x: a tensor that the row takes.
        axis: from 0.

    Raises:
        TileShapeError: more UB than there is, or a tile that the release refuses.

    Warns:
        TileShapeWarning: see `sum`.
    """
    row = ROWS[name]
    shape = tuple(map(int, x.shape))
    plan = _planned(name, x, axis)
    kept, fmt, tile = plan.kept, plan.fmt, plan.tile
    if tile is None and name in _JOINED_BY and shape[axis] > 1:
        warn_caller(
            f"no tile shape is set: one tile takes the whole dimension of the {name}; "
            "pypto.set_vec_tile_shapes decides its order",
            TileShapeWarning,
        )
    valid = list(x.valid_shape)
    valid[axis] = min(valid[axis], 1)
    is_rounded = rounds_operands(name, x.dtype)
    held = operand_values(x, fmt, reshaped=is_rounded) if 0 not in valid else None
    if held is None:
        return Tensor._from_result(kept, x.dtype, valid=tuple(valid))
    extent = shape[axis] if tile is None else tile[axis]
    cause = recording.causes().index_here(name)
    values = _Reduction(row.arithmetic, fmt, axis, cause).of(
        held, extent, -(-shape[axis] // extent)
    )
    whole = x.uninitialized()
    uninitialized = whole and whole.masked(np.logical_or.reduce(whole.mask, axis, keepdims=True))
    grid = None if tile is None else grid_of(kept, tile)
    return result_tensor(values, row, x.dtype, kept, tuple(valid), grid, cause, uninitialized)


def _scratch(name: str, tile: Shape, fmt: Format, axis: int) -> int:
    """UB bytes of a reduction along an axis of a tile."""
    if axis != len(tile) - 1:
        rows = -(-tile[axis] // 2) if name == "sum" else 0
        return rows * round_up(tile[-1], 8) * fmt.bits // 8
    row_bytes = tile[-1] * fmt.bits // 8
    if row_bytes <= 256:
        return 32
    return (tile[-2] if len(tile) > 1 else 1) * 256 * max(1, row_bytes // 256 // 2)


def _reduces_rows(release: Release, is_whole: bool) -> bool:
    return is_whole or not release.reduces_whole_blocks


def _check_whole_blocks(name: str, x: Tensor) -> None:
    """Refuse a tile that ends inside a block, where the release that is followed does."""
    last, block_elems = (
        options.current().vec_tile_shapes[x.dim - 1],
        256 // x.dtype.number_format.bits,
    )
    is_whole = last % block_elems == 0
    if not of_release(name, x.dtype, _reduces_rows, is_whole):
        raise TileShapeError(
            f"{name}: {options.current().followed_release} reduces the last axis by tiles of whole "
            f"32 B blocks; entry {x.dim - 1} of tile shape "
            f"{list(options.current().vec_tile_shapes)} must be a multiple of {block_elems} "
            f"elements of {x.dtype}"
        )


@functools.cache
def joins(count: int) -> tuple[tuple[int, int], ...]:
    """The order in which tiles are added, the second of a pair to the first: in halves of the
    largest power of two; the others join level by level.
    """
    width = 1 << (count.bit_length() - 1)
    left, following = count - width, width
    found: list[tuple[int, int]] = []
    while width > 1:
        width //= 2
        found += [(k, k + width) for k in range(width)]
        if left >= width:
            found += [(k, following + k) for k in range(width)]
            left, following = left - width, following + width
    return tuple(found)


class _Reduction:
    """One reduction of an axis that is cut into tiles."""

    def __init__(
        self,
        operation: Operation,
        fmt: Format,
        axis: int,
        cause: int,
        programs: Programs | None = None,
    ) -> None:
        self._operation, self._fmt, self._axis, self._cause = operation, fmt, axis, cause
        self._programs = programs

    def of(self, x: Enclosure, extent: int, count: int) -> Enclosure:
        """Reduce an array whose axis is `count` tiles of some extent, of which the last are short
        or without data.
        """
        if self._operation.name not in _JOINED_BY or count == 1:
            return self._within(x, programs=self._programs)
        context = options.current()
        if self._axis == len(x.shape) - 1:
            found = arithmetic.reduce_tiles(
                self._operation,
                x,
                Tiles(extent=extent, joins=joins(count)),
                self._fmt,
                by_numpy=functools.partial(self._by_tiles, extent=extent, count=count),
                trust=trust(self._operation.name),
                engine=context.converter,
                threads=context.threads,
                family=context.chip.isa,
                programs=self._programs,
            )
            if found is not None:
                return found
        return self._by_tiles(x, extent, count)

    def _by_tiles(self, x: Enclosure, extent: int, count: int) -> Enclosure:
        parts = [self._part(x, k * extent, (k + 1) * extent) for k in range(count)]
        held = [part if part.shape[self._axis] else None for part in parts]
        for to, of in joins(count):
            held[to] = self._joined(held[to], held[of])
        assert held[0] is not None
        ordered = self._within(held[0])
        if ASSUME_SUM_ORDER in trust(self._operation.name).assumed:
            return ordered
        whole = self._within(x, is_joined=True)
        return Enclosure(values=ordered.values, interval=whole.interval)

    def _within(
        self, x: Enclosure, *, is_joined: bool = False, programs: Programs | None = None
    ) -> Enclosure:
        return arithmetic.reduce(
            self._operation,
            x,
            self._fmt,
            axis=self._axis,
            trust=trust(self._operation.name),
            inf_nan_mode=wraps(self._fmt),
            cause=self._cause,
            engine=options.current().converter,
            threads=options.current().threads,
            family=options.current().chip.isa,
            is_joined=is_joined,
            programs=programs,
        )

    def _joined(self, a: Enclosure | None, b: Enclosure | None) -> Enclosure | None:
        """Add or multiply two tiles; where the second is shorter, the rest of the first stays."""
        if a is None or b is None:
            return a if b is None else b
        length, shorter = a.shape[self._axis], b.shape[self._axis]
        total = arithmetic.evaluate(
            OPERATIONS[_JOINED_BY[self._operation.name]],
            (self._part(a, 0, shorter), b),
            self._fmt,
            trust=trust(self._operation.name),
            inf_nan_mode=wraps(self._fmt),
            cause=self._cause,
            engine=options.current().converter,
            threads=options.current().threads,
        )
        if shorter == length:
            return total
        rest = self._part(a, shorter, length)
        return join_arrays(lambda arrays: np.concatenate(arrays, self._axis), (total, rest))

    def _part(self, x: Enclosure, start: int, stop: int) -> Enclosure:
        return x[(*(slice(None),) * self._axis, slice(start, stop))]


_online = partial(
    OperationRow,
    dtypes=on_950(DataType.DT_FP32),
    lacked_by=("0.2.0",),
    is_experimental=True,
    source="pypto tileop/vector/softmax.h; pto-isa a5/TColSum.hpp, TColReduceOps.hpp",
)


@_online(
    parts=("amax", "mul", "sub", "exp", "add"),
    instruction="vmax, vmuls, vsub, vexp, vconv, vadd",
    fidelity=Fidelity.BOUNDED,
    assumes=(ASSUME_SUM_ORDER,),
)
def online_softmax(scores: Tensor, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """A block of a softmax down the columns: exponentials, and the maximum and sum of each column.

    The maximum is that of the scores, times the scale; e ** (score * scale - maximum) is rounded to
    BF16, ties away from zero, and summed in FP32: two rows at a time onto the first. NaN makes its
    column NaN.

    Args:
        scores: FP32, [rows, columns].
        scale: a factor, rounded to FP32.

    Returns:
        The exponentials in BF16, [rows, columns]; the maxima and the sums in FP32, [1, columns].

    Raises:
        TypeError: another dtype, or a scale that is no float.
        ShapeError: other than two dimensions.
        TileShapeError: a tile of other than two entries, or of fewer rows than the scores have.
    """
    name = "online_softmax"
    x = _matrix(name, "scores", scores)
    _check_tile(name, x)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"{name}: scale is a float, not {scale!r}")
    most = mul(amax(x, 0, True), float(scale))
    exponentials = exp(sub(mul(x, float(scale)), most))
    rounded = cast(exponentials, DataType.DT_BF16, CastMode.CAST_ROUND, SaturationMode.ON)
    return rounded, most, _sum_by_pairs(exponentials)


@_online(parts=("maximum", "sub", "exp", "mul", "add"))
def online_softmax_update(
    previous_max: Tensor,
    previous_sum: Tensor,
    previous_output: Tensor,
    current_max: Tensor,
    current_sum: Tensor,
    current_output: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Join two blocks of an online softmax: their maxima, sums and outputs under one maximum.

    With M the greater maximum, each sum and output is multiplied by e ** (maximum - M), and both
    are added.

    Args:
        previous_max, previous_sum, current_max, current_sum: FP32, [1, columns].
        previous_output, current_output: FP32, [rows, columns].

    Returns:
        The maximum and the sum, [1, columns], and the output, [rows, columns], in FP32.

    Raises:
        TypeError: another dtype.
        ShapeError: other shapes.
        TileShapeError: a tile of other than two entries, or of fewer rows than an output has.
    """
    name = "online_softmax_update"
    given = {
        "previous_max": previous_max,
        "previous_sum": previous_sum,
        "previous_output": previous_output,
        "current_max": current_max,
        "current_sum": current_sum,
        "current_output": current_output,
    }
    tensors = {label: _matrix(name, label, x) for label, x in given.items()}
    rows, columns = map(int, tensors["previous_output"].shape)
    for label, x in tensors.items():
        wanted = [rows if label.endswith("output") else 1, columns]
        if list(map(int, x.shape)) != wanted:
            raise ShapeError(f"{name}: {label} has shape {wanted}, not {list(map(int, x.shape))}")
    _check_tile(name, tensors["previous_output"])
    most = maximum(tensors["previous_max"], tensors["current_max"])
    before = exp(sub(tensors["previous_max"], most))
    now = exp(sub(tensors["current_max"], most))
    return (
        most,
        add(mul(before, tensors["previous_sum"]), mul(now, tensors["current_sum"])),
        add(mul(tensors["previous_output"], before), mul(tensors["current_output"], now)),
    )


def _sum_by_pairs(x: Tensor) -> Tensor:
    """The sum of each column: rows behind the first are joined in pairs, and each pair is added to
    it, an odd row last (pto-isa a5/TColReduceOps.hpp, with updated addresses, as by default). In no
    known order where the order is not taken for granted.
    """
    total, rows = x[0:1], int(x.shape[0])
    for row in range(1, rows - 1, 2):
        total = add(total, add(x[row : row + 1], x[row + 1 : row + 2]))
    if rows % 2 == 0:
        total = add(total, x[rows - 1 :])
    values = total.enclosure()
    if values is None or ASSUME_SUM_ORDER in trust("sum").assumed:
        return total
    in_any_order = sum(x, 0, True).enclosure()
    assert in_any_order is not None
    whole = Enclosure(values=values.values, interval=in_any_order.interval)
    return Tensor._from_result((1, int(x.shape[1])), x.dtype, data=whole)


def _matrix(name: str, label: str, operand: object) -> Tensor:
    x = check_operand(name, operand)
    if x.dim != 2:
        raise ShapeError(f"{name}: {label} has two dimensions, not {x.dim}")
    return x


def _check_tile(name: str, x: Tensor) -> None:
    """Refuse a tile that divides the rows, as upstream does.

    Raises:
        TileShapeError: that, or another number of entries.
    """
    if tile_of(name, tuple(map(int, x.shape)), exact_rank=True) is None:
        return
    tile = options.current().vec_tile_shapes
    if tile[0] < int(x.shape[0]):
        raise TileShapeError(
            f"{name} takes columns whole: the first entry of tile shape {list(tile)} must be at "
            f"least {int(x.shape[0])}"
        )
