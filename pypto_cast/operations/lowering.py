"""From an operation on tensors to the arithmetic: release, checks, formats, results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import resolve
from ascend_kernels.npu import NpuError, RunMode
from ascend_kernels.program import conversions
from pypto_cast.cast.api import conversion
from pypto_cast.dtypes.data_types import DataType, TileOpFormat
from pypto_cast.operations.operation_rows import ROWS, ByFamily, OperationRow
from pypto_cast.operations.scalar_operands import Constant
from pypto_cast.operations.tile_memory import check_memory_of, tile_of
from pypto_cast.options import context as options
from pypto_cast.options.releases import RELEASES, Dtypes, Release
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import Uninitialized, slices
from pypto_cast.recording.causes import assumed_rounding
from pypto_cast.recording.recording import trust
from pypto_cast.recording.steps import Patches
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import Enclosure
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import BOOL, FP32, Format
from tiling.grid import Grid, Shape
from tiling.plan import MAX_DIMS, ShapeError, check_shape
from tiling.ub import ElementBits

_Array = npt.NDArray[Any]
_Fact = TypeVar("_Fact")


@recording.replayable
def elementwise(name: str, *operands: Tensor | Constant, dtype: DataType | None = None) -> Tensor:
    """Carry out a row of the table on tensors of one dtype, and numbers.

    Args:
        name: of the row.
        operands: as many as the row takes; a condition is checked.
        dtype: of the operands besides a condition, where all of them are numbers.

    Raises:
        TypeError: no tensor, or dtypes that upstream refuses.
        ValueError: a layout other than ND.
        ShapeError: shapes that do not broadcast, or that no operation takes.
        TileShapeError: too few entries, or more UB than there is.
        NpuError: in a kernel of RunMode.NPU.
    """
    row = ROWS[name]
    tensors = list({id(x): x for x in operands if isinstance(x, Tensor)}.values())
    condition = operands[0] if row.arithmetic.copies else None
    dtype = _common_dtype(row, [x for x in tensors if x is not condition], dtype)
    shape = _broadcast_shape(row, dtype, [tuple(map(int, x.shape)) for x in tensors])
    fmt, out = runs_in(name, dtype), row.result_dtype(dtype)
    tile = tile_of(name, shape)
    if tile is not None:
        bits: list[tuple[Shape, int]] = [
            (tuple(x.shape), 8 if x is condition else fmt.bits) for x in tensors
        ]
        bits.append((shape, 8 if out is DataType.DT_BOOL else fmt.bits))
        check_memory_of(name, tile, bits, lambda extents: row.scratch(extents, fmt))
    valid = _valid_shape(shape, tensors)
    held = {}
    for x in tensors:
        needed = _needed(x, shape, valid)
        reads = BOOL if x is condition else fmt
        enclosure = operand_values(x, reads, reshaped=x.dim < len(shape))
        if enclosure is not None:
            whole = enclosure.shape == needed
            held[id(x)] = enclosure if whole else enclosure[slices([0] * x.dim, needed)]
    if len(held) < len(tensors) or 0 in valid:
        return Tensor._from_result(shape, out, valid=valid)
    cause = recording.causes().index_here(name)
    result = arithmetic.evaluate(
        row.arithmetic,
        [x.enclosure(fmt) if isinstance(x, Constant) else held[id(x)] for x in operands],
        fmt,
        trust=trust(name),
        inf_nan_mode=options.current().inf_nan_mode,
        cause=cause,
    )
    uninitialized = _uninitialized(operands, condition, held, shape, valid)
    return result_tensor(result, row, out, shape, valid, tile, cause, uninitialized)


def _uninitialized(
    operands: Sequence[Tensor | Constant],
    condition: Tensor | Constant | None,
    held: Mapping[int, Enclosure],
    shape: Shape,
    valid: Shape,
) -> Uninitialized | None:
    """The elements of a result that depend on uninitialized ones; `where` takes one branch."""
    found = {}
    for x in operands:
        if isinstance(x, Tensor) and (whole := x.uninitialized()) is not None:
            part = whole.part((0,) * x.dim, _needed(x, shape, valid))
            if part is not None:
                found[id(x)] = part
    if not found:
        return None
    masks = {key: np.broadcast_to(part.mask, valid) for key, part in found.items()}
    if isinstance(condition, Tensor) and id(condition) not in found:
        chosen = held[id(condition)]
        for operand, taken in zip(operands[1:], (True, False), strict=True):
            if id(operand) in found:
                dropped = chosen.certain() & (chosen.values.astype(np.bool_) != taken)
                masks[id(operand)] = masks[id(operand)] & ~np.broadcast_to(dropped, valid)
    mask = functools.reduce(np.logical_or, masks.values())
    return next(iter(found.values())).masked(mask)


def operand_values(x: Tensor, fmt: Format, *, reshaped: bool = False) -> Enclosure | None:
    """The values of a tensor in the format that an instruction runs in; None if it has none.

    A hidden FP32 value is taken where there is one and the tensor is read as it is.
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
    if enclosure.values.dtype.isnative:
        return enclosure
    return Enclosure(values=enclosure.values.astype(fmt.dtype), interval=enclosure.interval)


def result_tensor(
    result: Enclosure,
    row: OperationRow,
    dtype: DataType,
    shape: Shape,
    valid: Shape,
    tile: Shape | None,
    cause: int,
    uninitialized: Uninitialized | None = None,
) -> Tensor:
    """The tensor of a result: rounded to its dtype, with the FP32 value that the next one takes.

    Where there is such a value, most results are never read rounded: they are once they are read.

    Args:
        result: values of the valid shape in the format of the instruction.
        row: the operation.
        dtype, shape, valid: of the tensor.
        tile: of the output; None if no tile shape is set.
        cause: the operation, as `recording.causes` numbers it.
        uninitialized: elements that depend on what nobody wrote.
    """
    patches: Patches = ()
    if tile is not None:
        grid = Grid(shape=shape, tile_shape=tuple(map(min, tile, shape)))
        patches = recording.record_operation(cause, grid, options.current().chip.vector_cores)
    is_wide = is_widened(row.name, dtype)
    if (is_wide or dtype.number_format is FP32) and row.result_dtype(dtype) is dtype:
        shorter = assumed_rounding(row.name)
        if shorter is not None:
            result = converted_to(
                converted_to(result, FP32, shorter.number_format), shorter.number_format, FP32
            )
    make = functools.partial(
        Tensor._from_result, shape, dtype, valid=valid, patches=patches, uninitialized=uninitialized
    )
    if not is_wide:
        return make(data=result)
    if options.current().auto_cast != "as upstream":
        rounded = converted_to(result, FP32, dtype.number_format)
        return make(data=rounded)
    rounding = _conversion(FP32, dtype.number_format)
    return make(data=lambda: rounding(result), hidden=result)


def converted_to(x: Enclosure, src: Format, dst: Format) -> Enclosure:
    """A cast that upstream adds by itself: exact, or rounded to the nearest."""
    return _conversion(src, dst)(x)


def _conversion(src: Format, dst: Format) -> Callable[[Enclosure], Enclosure]:
    context = options.current()
    return conversion(_chain(context.chip.isa, src, dst, context.inf_nan_mode), trust("cast"))


@functools.cache
def _chain(family: str, src: Format, dst: Format, inf_nan_mode: bool) -> tuple[Conversion, ...]:
    return conversions(resolve(family, src, dst), inf_nan_mode=inf_nan_mode)


def of_release(name: str, dtype: DataType, fact: Callable[[Release], _Fact]) -> _Fact:
    """A fact of the release of this context.

    Where it is another in another release, the operation is one whose results may be others there:
    a running kernel keeps it.

    Args:
        name: of the operation.
        dtype: of its operands.
        fact: what a release says.
    """
    followed = options.current().followed_release
    found = fact(followed)
    for other in RELEASES.values():
        if other is not followed and fact(other) != found:
            recording.record_release_dependence(name, dtype)
            break
    return found


def is_widened(name: str, dtype: DataType) -> bool:
    """True if AutoCast runs an operation on a dtype in FP32; by the newest lists where it rounds
    after every operation.
    """
    if options.current().auto_cast != "as upstream":
        return dtype in RELEASES["head"].run_in_fp32.get(name, ())
    return of_release(name, dtype, lambda release: dtype in release.run_in_fp32.get(name, ()))


def runs_in(name: str, dtype: DataType) -> Format:
    """The format of the instruction for operands of a dtype."""
    return FP32 if is_widened(name, dtype) else dtype.number_format


def is_cast_inside(name: str, dtype: DataType) -> bool:
    """True if an operation itself casts a dtype to FP32 that it could take as it is."""
    return of_release(name, dtype, lambda release: dtype in release.cast_to_fp32.get(name, ()))


def check_tensor(
    name: str,
    x: object,
    dtypes: Sequence[DataType] | None = None,
    *,
    formats: Sequence[TileOpFormat] = (TileOpFormat.TILEOP_ND,),
    in_gm: bool = False,
) -> Tensor:
    """Refuse an operand that no operation takes, or this one not in the release that is followed.

    Args:
        name: of the operation.
        x: its operand.
        dtypes, formats: those that it takes; None for any dtype.
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
    shape = tuple(map(int, x.shape))
    if not 1 <= len(shape) <= MAX_DIMS or min(shape) < 1:
        raise ShapeError(
            f"{name} takes tensors of 1 to {MAX_DIMS} dimensions, each known and not empty; got "
            f"{list(shape)}"
        )
    release = options.current().followed_release
    is_there, is_offered, is_deep = of_release(
        name,
        x.dtype,
        lambda each: (
            name not in each.lacks,
            dtypes is None or each.offers(name, x.dtype, x.dtype in dtypes),
            x.dim >= each.least_dims.get(name, 1),
        ),
    )
    if not is_there:
        raise TypeError(f"{release} has no {name}; options(release=) chooses another")
    if dtypes is not None and not is_offered:
        besides = release.takes.get(name, ())
        listed = [d for d in (*dtypes, *besides) if release.offers(name, d, d in dtypes)]
        raise TypeError(f"{name} takes {', '.join(map(str, listed))}, not {x.dtype}; cast it first")
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
    """Refuse an operand whose dtype the row of this name does not list; see `check_tensor`."""
    return check_tensor(name, x, dtypes_of(name), in_gm=in_gm)


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


def _common_dtype(row: OperationRow, tensors: Sequence[Tensor], dtype: DataType | None) -> DataType:
    for x in tensors:
        check_operand(row.name, x)
    first = dtype or tensors[0].dtype
    for x in tensors:
        if x.dtype is not first:
            raise TypeError(
                f"{row.name} takes tensors of one dtype, not {first} and {x.dtype}; cast one: "
                "upstream promotes nothing"
            )
    return first


def _broadcast_shape(row: OperationRow, dtype: DataType, shapes: Sequence[Shape]) -> Shape:
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
    if not shape or (row.same_rank and len({len(each) for each in shapes}) > 1):
        rule = "as many dimensions each, and along each" if row.same_rank else "along each axis"
        raise ShapeError(
            f"{row.name}: shapes {', '.join(str(list(each)) for each in shapes)} do not broadcast; "
            f"{rule} equal lengths or 1"
        )
    check_shape(shape, ElementBits(src=8, dst=8), row.name)
    for each in shapes:
        check_repeated(row.name, dtype, each, shape)
    return shape


def check_repeated(name: str, dtype: DataType, before: Shape, after: Shape) -> None:
    """Refuse to repeat an operand along more axes than the release that is followed does.

    Raises:
        ShapeError: that.
    """
    whole = (1,) * (len(after) - len(before)) + before
    axes = sum(b != a for b, a in zip(whole, after, strict=True))
    if not of_release(name, dtype, lambda release: axes <= release.repeated_axes):
        release = options.current().followed_release
        raise ShapeError(
            f"{name}: {release} repeats an operand along {release.repeated_axes} axis at once, and "
            f"{list(before)} becomes {list(after)} along {axes}; expand_clone it one by one"
        )


def _valid_shape(shape: Shape, tensors: Sequence[Tensor]) -> Shape:
    """The extents that hold data in every operand."""
    valid = list(shape)
    for x in tensors:
        shift = len(shape) - x.dim
        for axis, (length, held) in enumerate(zip(x.shape, x.valid_shape, strict=True)):
            if length == shape[axis + shift] or held == 0:
                valid[axis + shift] = min(valid[axis + shift], held)
    return tuple(valid)


def _needed(x: Tensor, shape: Shape, valid: Shape) -> Shape:
    """The extents of an operand that a result's valid elements depend on."""
    shift = len(shape) - x.dim
    return tuple(
        valid[k + shift] if length == shape[k + shift] else 1 for k, length in enumerate(x.shape)
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
