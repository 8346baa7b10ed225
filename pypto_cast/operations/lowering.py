"""From an operation on tensors to the arithmetic: release, checks, formats, results."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import CastControls, resolve
from ascend_kernels.npu import NpuError, RunMode
from ascend_kernels.program import conversions
from pypto_cast.cast.api import conversion
from pypto_cast.dtypes.data_types import DataType, TileOpFormat
from pypto_cast.operations.operation_rows import ROWS, ByFamily, OperationRow
from pypto_cast.options import context as options
from pypto_cast.options.releases import RELEASES, Dtypes, Release, ReleaseName
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import Uninitialized
from pypto_cast.recording.causes import assumed_rounding
from pypto_cast.recording.recording import trust
from pypto_cast.recording.steps import Patches
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import Enclosure
from simulator.machine.cast_table import CTRL_BITS, CTRL_INT
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP32, Format, IntFormat
from tiling.grid import Grid, Shape
from tiling.plan import MAX_DIMS, ShapeError, TileShapeError
from tiling.ub import padded_row_bytes

_Array = npt.NDArray[Any]
_Fact = TypeVar("_Fact")


_ShapeAndBits = tuple[Shape, int]
"""The shape of an input or output and the bits of an element."""


def tile_of(name: str, shape: Shape, *, exact_rank: bool = False) -> Shape | None:
    """The tile of an operation on a shape, no longer than it; None if no tile shape is set.

    Args:
        name: of the operation.
        shape: the one that the tile shape must match: the output's, of a reduction the input's.
        exact_rank: more entries than dimensions are refused too.

    Raises:
        TileShapeError: too few entries.
    """
    tile = options.current().vec_tile_shapes
    if not tile:
        return None
    if len(tile) < len(shape) or (exact_rank and len(tile) != len(shape)):
        asked = "exactly" if exact_rank else "at least"
        raise TileShapeError(
            f"{name}: tile shape {list(tile)} has {len(tile)} entries; {list(shape)} needs "
            f"{asked} {len(shape)}, one for each dimension"
        )
    return tuple(map(min, tile, shape))


def check_memory_of(
    name: str,
    tile: Shape | None,
    operands: Sequence[_ShapeAndBits],
    scratch: Callable[[Shape], int] = lambda tile: 0,
) -> bool:
    """Refuse a tile whose inputs, outputs and scratch exceed UB, but where a schedule decides that.

    Args:
        name: of the operation.
        tile: extents of a tile; None if no tile shape is set.
        operands: inputs and outputs; along an axis where one has 1 element its tile has 1.
        scratch: bytes, by tile.

    Returns:
        True if the tile fits, or none is set; False where a schedule decides.

    Raises:
        TileShapeError: naming the bytes and a tile that fits.

    Source: upstream's schedule_state.cpp, which charges every operand of one operation once.
    """
    if tile is None:
        return True
    chip = options.current().chip

    def needed(extents: Shape) -> int:
        total = scratch(extents)
        for shape, bits in operands:
            own = tuple(map(min, extents[-len(shape) :], shape))
            total += math.prod(own[:-1]) * int(padded_row_bytes(own[-1], bits, chip))
        return total

    asked = needed(tile)
    if asked <= chip.ub_bytes:
        return True
    refusal = recording.plan_refusal()
    if refusal is None:
        return False
    fits = list(tile)
    while needed(tuple(fits)) > chip.ub_bytes and max(fits) > 1:
        axis = next((k for k, extent in enumerate(fits[:-1]) if extent > 1), len(fits) - 1)
        fits[axis] = -(-fits[axis] // 2)
    raise TileShapeError(
        f"{name}: inputs, output and scratch of a tile {list(tile)} take {asked} B of UB; it has "
        f"{chip.ub_bytes} B; {fits} fits" + (refusal and f"; no schedule is planned: {refusal}")
    )


def check_copied_rows(name: str, shape: Shape, bits: int) -> None:
    """Refuse a tile whose last entry is no whole number of 32 B blocks, as upstream's copies do.

    A tile passes UB once; upstream removes the second buffer of a copy where it can.

    Raises:
        TileShapeError: that, too few entries, or more UB than there is.
    """
    tile = tile_of(name, shape)
    last = (options.current().vec_tile_shapes or (0,))[-1]
    if tile is not None and last * bits % 256:
        raise TileShapeError(
            f"{name} copies rows of tiles: the last entry of tile shape "
            f"{list(options.current().vec_tile_shapes)} must be a multiple of {256 // bits} "
            f"elements (32 B), not {last}"
        )
    check_memory_of(name, tile, [(shape, bits)])


def operand_values(x: Tensor, fmt: Format, *, reshaped: bool = False) -> Enclosure | None:
    """The values of a tensor in the format that an instruction runs in; None if it has none.

    A hidden FP32 value is taken where there is one and the tensor is read as it is, neither
    reshaped nor rounded before.
    """
    if not recording.executes():
        return None
    held = x.dtype.number_format
    if held is not fmt and not reshaped and (hidden := x.hidden()) is not None:
        return hidden
    enclosure = x.enclosure()
    if enclosure is None:
        return None
    if held is not fmt:
        return converted_to(enclosure, held, fmt)
    if enclosure.dtype.isnative:
        return enclosure
    return Enclosure(values=enclosure.values.astype(fmt.dtype), interval=enclosure.interval)


def result_tensor(
    result: Enclosure,
    row: OperationRow,
    dtype: DataType,
    shape: Shape,
    valid: Shape,
    grid: Grid | None,
    cause: int,
    uninitialized: Uninitialized | None = None,
) -> Tensor:
    """The tensor of a result: rounded to its dtype, with the FP32 value that the next one takes.

    Where there is such a value, most results are never read rounded: they are once they are read.

    Args:
        result: values of the valid shape in the format of the instruction.
        row: the operation.
        dtype, shape, valid: of the tensor.
        grid: the tiles of the output; None if no tile shape is set.
        cause: the operation, as `recording.causes` numbers it.
        uninitialized: elements that depend on what nobody wrote.
    """
    patches: Patches = ()
    if grid is not None:
        cores = options.current().chip.vector_cores
        patches = recording.record_operation(cause, grid, cores)
    is_wide = dtype is not DataType.DT_FP32 and is_widened(row.name, dtype)
    if (is_wide or dtype.number_format is FP32) and row.result_dtype(dtype) is dtype:
        shorter = assumed_rounding(row.name)
        if shorter is not None:
            result = converted_to(
                converted_to(result, FP32, shorter.number_format), shorter.number_format, FP32
            )
    data: Enclosure | Callable[[], Enclosure] = result
    hidden = None
    if is_wide and rounds_operands(row.name, dtype):
        data = converted_to(result, FP32, dtype.number_format)
    elif is_wide:
        rounding = _conversion(FP32, dtype.number_format)
        data, hidden = lambda: rounding(result), result
    return Tensor._from_result(
        shape,
        dtype,
        data=data,
        valid=valid,
        hidden=hidden,
        patches=patches,
        uninitialized=uninitialized,
    )


@contextlib.contextmanager
def as_one() -> Iterator[None]:
    """Keep none of the calls of a `with` statement: they are of one operation of upstream's."""
    running = recording.current()
    kept = None if running is None else running.calls
    if running is not None:
        running.calls = None
    try:
        yield
    finally:
        if running is not None:
            running.calls = kept


@functools.lru_cache(maxsize=1 << 12)
def grid_of(shape: Shape, tile: Shape) -> Grid:
    """The tiles of a result."""
    return Grid(shape=shape, tile_shape=tuple(map(min, tile, shape)))


def wraps(fmt: Format) -> bool:
    """True if arithmetic in a format goes on beyond its range, to infinity or around; False where
    a control bit clamps it: CTRL[48], or of integers CTRL[53] on a family that has it.
    """
    context = options.current()
    is_apart = isinstance(fmt, IntFormat) and CTRL_INT in CTRL_BITS.get(context.chip.isa, ())
    return not context.int_saturation if is_apart else context.inf_nan_mode


def converted_to(x: Enclosure, src: Format, dst: Format) -> Enclosure:
    """A cast that upstream adds by itself: exact, or rounded to the nearest."""
    return _conversion(src, dst)(x)


def _conversion(src: Format, dst: Format) -> Callable[[Enclosure], Enclosure]:
    context = options.current()
    return conversion(_chain(context.chip.isa, src, dst, context.controls), trust("cast"))


@functools.cache
def _chain(family: str, src: Format, dst: Format, controls: CastControls) -> tuple[Conversion, ...]:
    return conversions(resolve(family, src, dst), controls)


def of_release(name: str, dtype: DataType, fact: Callable[..., _Fact], *given: Hashable) -> _Fact:
    """A fact of the release of this context.

    Where it is another in another release, the operation is one whose results may be others there:
    a running kernel keeps it.

    Args:
        name: of the operation.
        dtype: of its operands.
        fact: what a release says: a function at the top of a module, called with a release and
            what is given. Its answers are kept, for the tables of releases do not change.
        given: more arguments of it.
    """
    found, differs = _fact_of(fact, options.current().release, given)
    if differs:
        recording.record_release_dependence(name, dtype)
        if (noted := RELEASE_DEPENDENCE.get()) is not None:
            noted.append(name)
    said: _Fact = found
    return said


RELEASE_DEPENDENCE: Final[ContextVar[list[str] | None]] = ContextVar(
    "pypto_cast_release_dependence", default=None
)
"""The list that notes operations which another release carries out otherwise or refuses."""


@functools.lru_cache(maxsize=1 << 12)
def _fact_of(
    fact: Callable[..., object], release: ReleaseName, given: tuple[Hashable, ...]
) -> tuple[Any, bool]:
    """A fact of a release, and whether it is another in some other release."""
    facts = {name: fact(each, *given) for name, each in RELEASES.items()}
    return facts[release], any(each != facts[release] for each in facts.values())


def _runs_in_fp32(release: Release, name: str, dtype: DataType) -> bool:
    return dtype in release.run_in_fp32.get(name, ())


def _casts_to_fp32(release: Release, name: str, dtype: DataType) -> bool:
    return dtype in release.cast_to_fp32.get(name, ())


def _takes(
    release: Release, name: str, dtype: DataType, dtypes: Dtypes | None, dim: int
) -> tuple[bool, bool, bool]:
    """Return if a release has an operation, offers it a dtype, and takes so many dimensions."""
    return (
        name not in release.lacks,
        dtypes is None or release.offers(name, dtype, dtype in dtypes),
        dim >= release.least_dims.get(name, 1),
    )


def _repeats(release: Release, axes: int) -> bool:
    return axes <= release.repeated_axes


def is_widened(name: str, dtype: DataType) -> bool:
    """True if AutoCast runs an operation on a dtype in FP32; by the newest lists where it rounds
    after every operation.
    """
    if options.current().auto_cast != "as upstream":
        return dtype in RELEASES["head"].run_in_fp32.get(name, ())
    return of_release(name, dtype, _runs_in_fp32, name, dtype)


def rounds_operands(name: str, dtype: DataType) -> bool:
    """True if an operation takes and gives a dtype as it is, without a hidden FP32 value: where
    this context rounds after every operation, or AutoCast leaves the dtype on this chip's family.
    """
    context = options.current()
    kept = ROWS[name].rounds_on.get(context.chip.isa, ())
    return context.auto_cast != "as upstream" or dtype in kept


def runs_in(name: str, dtype: DataType) -> Format:
    """The format of the instruction for operands of a dtype."""
    return FP32 if is_widened(name, dtype) else dtype.number_format


def is_cast_inside(name: str, dtype: DataType) -> bool:
    """True if an operation itself casts a dtype to FP32 that it could take as it is."""
    return of_release(name, dtype, _casts_to_fp32, name, dtype)


_TO_SCALES: Final = (
    "no cast leads there; bytes that are its codes take .view(ml_dtypes.float8_e8m0fnu)"
)


def check_tensor(
    name: str,
    x: object,
    dtypes: Sequence[DataType] | None = None,
    *,
    formats: Sequence[TileOpFormat] = (TileOpFormat.TILEOP_ND,),
    in_gm: bool = False,
    most_dims: int = MAX_DIMS,
) -> Tensor:
    """Refuse an operand that no operation takes, or this one not in the release that is followed.

    Args:
        name: of the operation.
        x: its operand.
        dtypes, formats: those that it takes; None for any dtype.
        most_dims: the most dimensions that it may have.
        in_gm: upstream leaves this operand in GM, where it may have a dynamic dimension.

    Raises:
        TypeError: no tensor, or of a dtype that this one does not take; an operation that the
            release lacks.
        ValueError: a layout that this one does not take.
        ShapeError: dimensions that are not known, none, too many, too few, or empty ones.
        NpuError: in a kernel of RunMode.NPU.
        UpstreamRefusalError: a dynamic dimension, under `options(strict=True)`.

    Warns:
        DynamicOperandWarning: a dynamic dimension.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} takes a pypto Tensor, not {type(x).__module__}.{type(x).__qualname__}; make "
            "one with pypto.from_torch(tensor) or pypto.from_numpy(array)"
        )
    x.check_content()
    if x.format not in formats:
        known = ", ".join(each.name for each in formats)
        raise ValueError(f"{name} takes tensors in {known}, not {x.format.name}")
    shape = tuple(map(int, x.shape)) if x._dynamic else x._shape
    if not 1 <= len(shape) <= most_dims or min(shape) < 1:
        raise ShapeError(
            f"{name} takes tensors of 1 to {most_dims} dimensions, each known and not empty; got "
            f"{list(shape)}"
        )
    release = options.current().followed_release
    listed_dtypes = None if dtypes is None else tuple(dtypes)
    is_there, is_offered, is_deep = of_release(
        name, x.dtype, _takes, name, x.dtype, listed_dtypes, x.dim
    )
    if not is_there:
        raise TypeError(f"{release} has no {name}; options(release=) chooses another")
    if dtypes is not None and not is_offered:
        besides = release.takes.get(name, ())
        listed = [d for d in (*dtypes, *besides) if release.offers(name, d, d in dtypes)]
        are_scales = all(getattr(each.format, "is_scale", False) for each in listed)
        way = _TO_SCALES if are_scales else "cast it first"
        raise TypeError(f"{name} takes {', '.join(map(format, listed))}, not {x.dtype}; {way}")
    if not is_deep:
        raise ShapeError(
            f"{name} takes tensors of {release.least_dims[name]} dimensions or more in {release}; "
            f"got {list(shape)}"
        )
    if options.current().run_mode is RunMode.NPU:
        raise NpuError(
            f"RunMode.NPU launches casts alone; {name} needs pypto.RunMode.SIM, or upstream's pypto"
        )
    if not in_gm:
        x.check_static()
    return x


def check_operand(name: str, x: object, *, in_gm: bool = False) -> Tensor:
    """Refuse an operand whose dtype the row of this name does not list; see `check_tensor`.

    Operands of equal form are looked at once under the same options, unless another release takes
    others.
    """
    if not isinstance(x, Tensor) or x._dynamic:
        return check_tensor(name, x, dtypes_of(name), in_gm=in_gm)
    context = options.current()
    key = id(context), name, x._dtype, x._shape, x._format
    if key in _ACCEPTED:
        if x._moved is not None:
            x.check_content()
        return x
    listed = dtypes_of(name)
    check_tensor(name, x, listed, in_gm=in_gm)
    if not _fact_of(_takes, context.release, (name, x.dtype, tuple(listed), x.dim))[1]:
        if len(_ACCEPTED) >= _MOST_ACCEPTED:
            _ACCEPTED.clear()
        _ACCEPTED[key] = context
    return x


_ACCEPTED: Final[dict[tuple[object, ...], options.Options]] = {}
"""The operands that an operation takes under options, which are kept."""
_MOST_ACCEPTED: Final = 1 << 12


def dtypes_of(name: str, which: Literal["dtypes", "index_dtypes", "added"] = "dtypes") -> Dtypes:
    """The dtypes that the row of an operation lists for the chip of this context.

    Raises:
        TypeError: none for its family.
    """
    listed: ByFamily = getattr(ROWS[name], which)
    chip = options.current().chip
    found = listed.get(chip.isa)
    if found is None:
        raise TypeError(
            f"{name} has no dtypes on {chip.name}, of family {chip.isa}; it has on "
            f"{', '.join(listed)}: options(chip=) chooses another"
        )
    return found


def index_tensor(name: str, x: object, *, in_gm: bool = False) -> Tensor:
    """Refuse indices that the row of this name does not list; see `check_tensor`."""
    return check_tensor(name, x, dtypes_of(name, "index_dtypes"), in_gm=in_gm)


def axis_of(name: str, dim: object, count: int) -> int:
    """The axis, from 0, that a dimension of `count` means; negative ones count from the last.

    Raises:
        TypeError: a dimension that is no int.
        ValueError: a dimension that is not there.
    """
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise TypeError(f"{name} takes one dimension as an int, not {dim!r}")
    if not -count <= dim < count:
        raise ValueError(f"{name}: dimension {dim} of {count}; {-count} to {count - 1} are there")
    return dim % count


def check_alike(name: str, first: DataType, x: Tensor) -> None:
    """Refuse an operand of another dtype than the first one's.

    Raises:
        TypeError: naming both.
    """
    if x.dtype is not first:
        raise TypeError(
            f"{name} takes tensors of one dtype, not {first} and {x.dtype}; cast one: "
            "upstream promotes nothing"
        )


def check_repeated(name: str, dtype: DataType, before: Shape, after: Shape) -> None:
    """Refuse to repeat an operand along more axes than the release that is followed does.

    Raises:
        ShapeError: that.
    """
    whole = (1,) * (len(after) - len(before)) + before
    axes = sum(b != a for b, a in zip(whole, after, strict=True))
    if not of_release(name, dtype, _repeats, axes):
        release = options.current().followed_release
        raise ShapeError(
            f"{name}: {release} repeats an operand along {release.repeated_axes} axis at once, and "
            f"{list(before)} becomes {list(after)} along {axes}; expand_clone it one by one"
        )


def held_by(x: Tensor, taken: Callable[[_Array], _Array] = lambda held: held) -> Enclosure | None:
    """The values of a tensor as it is; None if it has none.

    Args:
        x: any tensor.
        taken: what of them is used, where that is not all.

    Raises:
        ValueError: some of those that are used were never written.
    """
    if not recording.executes():
        return None
    if (uninitialized := x.uninitialized()) and (
        left := uninitialized.masked(taken(uninitialized.mask))
    ):
        left.refuse("an operation")
    held = x.enclosure()
    return None if held is None else held.map(taken)


def held_indices(name: str, x: Tensor, length: int, *, least: int = 0) -> Enclosure | None:
    """The values of a tensor of indices; None if it has none.

    Raises:
        IndexError: one lies outside `least` to `length` - 1.
        ValueError: some of them nobody wrote.
    """
    held = held_by(x) if 0 not in x.valid_shape else None
    if held is not None:
        check_range(name, held.values, length, least=least)
        if held.interval is not None and (out := (held.low < least) | (held.high >= length)).any():
            recording.record_control_dependence(int(held.interval.cause[out][0]))
    return held


def check_range(name: str, indices: np.ndarray, length: int, *, least: int = 0) -> None:
    """Refuses indices that lead outside.

    Raises:
        IndexError: with the first of them.
    """
    outside = (indices < least) | (indices >= length)
    if outside.any():
        place = tuple(map(int, np.argwhere(outside)[0]))
        raise IndexError(
            f"{name}: index {indices[place]} at {list(place)} lies outside 0 to {length - 1}; a "
            "device would go elsewhere in memory"
        )


def same_dtype(name: str, first: Tensor, second: Tensor) -> DataType:
    """The dtype of two tensors.

    Raises:
        TypeError: they differ.
    """
    if first.dtype is not second.dtype:
        raise TypeError(f"{name} takes one dtype, not {first.dtype} and {second.dtype}; cast one")
    return first.dtype
