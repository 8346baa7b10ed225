"""Additions of scaled terms: by index, in UB or in GM, and to a whole tensor in place.

Sources: upstream pypto, python/pypto/op/indexing.py and op/math.py,
framework/src/interface/operation/vector/indexing.cpp and binary.cpp (Axpy), and
framework/src/interface/tileop/vector/indexadd.h.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.operations.elementwise_plan import elementwise
from pypto_cast.operations.indexed.scattering import joined_in_memory, sums_from
from pypto_cast.operations.lowering import (
    as_one,
    axis_of,
    check_memory_of,
    check_operand,
    held_by,
    held_indices,
    index_tensor,
    of_release,
    operand_values,
    same_dtype,
    tile_of,
)
from pypto_cast.operations.operation_rows import NUMBERS, OperationRow, everywhere
from pypto_cast.operations.scalar_operands import Constant, converted
from pypto_cast.options.context import current
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import slices
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_SUM_ORDER,
    Fidelity,
)
from simulator.arithmetic.indexed import gather_scatter as writing
from simulator.arithmetic.trust import PRECISION
from simulator.numbers.formats import FP32
from tiling.plan import ShapeError

_ROUNDED: Final = (ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW)
_SHORT: Final = (DataType.DT_FP16, DataType.DT_BF16)
_adding = partial(
    OperationRow,
    index_dtypes=everywhere(DataType.DT_INT32, DataType.DT_INT64),
    is_method=True,
)
_in_gm = partial(
    _adding,
    dtypes=everywhere(*NUMBERS, DataType.DT_INT8),
    instruction="vmuls; copy_ubuf_to_gm with atomic addition, a row at a time",
    source="pypto tileop/vector/indexadd.h: TIndexAdd; AutoCast runs FP16 and BF16 in FP32 "
    "(opcode.h); release 0.2.0 adds in UB, INT8 in FP16",
    fidelity=Fidelity.BOUNDED,
    assumes=_ROUNDED,
    opcodes={"TTT": "INDEX_ADD"},
)
_in_ub = partial(
    _adding,
    dtypes=everywhere(*NUMBERS),
    lacked_by=("0.2.0",),
    instruction="vmuls, vadd, a row at a time; the scalar unit along the last axis",
    source="pypto tileop/vector/indexadd.h: TIndexAddUB",
    fidelity=Fidelity.ASSUMED,
    assumes=(*_ROUNDED, ASSUME_SUM_ORDER),
    opcodes={"TTT": "INDEX_ADD_UB"},
)


@_in_gm(example="pypto.index_add(x, 1, row, y[:, :2])")
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: int | float = 1
) -> Tensor:
    """Add slices by index: out[index[i]] = input[index[i]] + alpha * source[i] for dimension 0.

    Where several indices are equal their terms come in any order. FP16 and BF16 are added in FP32
    and rounded at the end; along the last axis a product is rounded to the dtype first. Integers
    wrap. A factor nearer to 1 than 1e-6 multiplies nothing. Upstream's page says that the input
    stays as it is, as here; its code adds to the input's memory.

    Args:
        input: a tensor of the dtypes below.
        dim: the dimension; a negative one counts from the last.
        index: INT32 or INT64, [n].
        source: n slices of the input's dtype.
        alpha: the factor of the source, converted to the dtype.

    Returns:
        A tensor of the input's dtype and shape.

    Raises:
        TypeError: other dtypes, or a factor that is no number.
        OverflowError: a factor that the dtype does not hold.
        ShapeError: an index of several dimensions, or a source that does not fit.
        IndexError: an index outside the input.
        TileShapeError: too few entries, or a tile beyond UB.
    """
    return index_added("index_add", input, dim, index, source, alpha)


@_in_gm(like="index_add", example="pypto.index_add_(out, 1, at, pypto.reshape(x[:, :2], [2, 2]))")
def index_add_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: int | float = 1
) -> Tensor:
    """`index_add` in place: the input itself, which takes over the result.

    Args:
        input: a tensor that the kernel writes, of the dtypes below.

    Returns:
        The input.

    Raises:
        TypeError: an input that the kernel does not write, or no kernel.
    """
    found = index_added("index_add_", input, dim, index, source, alpha)
    input.move(found)
    return input


@_in_ub(example="pypto.index_add_ub(x, 1, row, y[:, :2])")
def index_add_ub(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: int | float = 1
) -> Tensor:
    """`index_add` in UB, where the terms are added one after another, in the order of the index.

    FP16 and BF16 are rounded after each step; with INT64 indices and a factor of 1 they are added
    in FP32 and rounded at the end. The tile holds the whole dimension.

    Args:
        input: a tensor of the dtypes below.
        dim, index, source, alpha: as for `index_add`.

    Returns:
        A tensor of the input's dtype and shape.

    Raises:
        TypeError, OverflowError, ShapeError, IndexError, TileShapeError: as `index_add`.
    """
    return index_added("index_add_ub", input, dim, index, source, alpha)


@_in_ub(
    like="index_add_ub",
    example="pypto.index_add__ub(out, 1, at, pypto.reshape(x[:, :2], [2, 2]))",
)
def index_add__ub(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: int | float = 1
) -> Tensor:
    """`index_add_ub` in place: the input itself, which takes over the result.

    Args:
        input: a tensor that the kernel writes, of the dtypes below.

    Returns:
        The input.

    Raises:
        TypeError: an input that the kernel does not write, or no kernel.
    """
    found = index_added("index_add__ub", input, dim, index, source, alpha)
    input.move(found)
    return input


def _factor(name: str, alpha: object, dtype: DataType) -> Constant:
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
        raise TypeError(f"{name} takes an int or a float as alpha, not {alpha!r}")
    if isinstance(alpha, float) and not math.isfinite(alpha):
        raise OverflowError(f"{name}: alpha {alpha} is no finite number of {dtype}")
    return converted(name, alpha, dtype)


@recording.replayable_operation
def index_added(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: object
) -> Tensor:
    in_ub = name.endswith("ub")
    x = check_operand(name, input, in_gm=not in_ub)
    where, terms = index_tensor(name, index), check_operand(name, source)
    same_dtype(name, x, terms)
    axis = axis_of(name, dim, x.dim)
    wanted = [int(s) for s in x.shape]
    wanted[axis] = int(where.shape[0])
    if where.dim != 1 or list(map(int, terms.shape)) != wanted:
        raise ShapeError(
            f"{name} along {axis} of {x.shape} takes indices [n] and n slices; got {where.shape} "
            f"and {terms.shape}"
        )
    factor = _factor(name, alpha, x.dtype)
    in_ub = in_ub or not of_release(name, x.dtype, getattr, "index_adds_in_gm")
    _check_tile(name, x, terms, where, axis, in_ub=in_ub)
    with as_one():
        return _sum(name, x, axis, where, terms, factor, in_ub=in_ub)


def _sum(
    name: str,
    x: Tensor,
    axis: int,
    where: Tensor,
    terms: Tensor,
    factor: Constant,
    *,
    in_ub: bool,
) -> Tensor:
    """The sums in the format and in the order in which they are added."""
    number = float(np.asarray(factor.enclosure(x.dtype.number_format).values, np.float64))
    is_scaled = writing.is_factor(number)
    dtype = x.dtype
    if dtype in _SHORT:
        factor = converted(name, number, dtype)  # rounded before it is beside FP32
    if in_ub and dtype is DataType.DT_INT8:
        wide = _scaled(cast(terms, DataType.DT_FP16), factor, is_scaled, to=DataType.DT_FP16)
        found = _added(name, cast(x, DataType.DT_FP16), axis, where, wide, in_order=True)
        return cast(found, dtype, CastMode.CAST_TRUNC, SaturationMode.ON)
    rounds_once = not in_ub or (not is_scaled and where.dtype is DataType.DT_INT64)
    if dtype not in _SHORT or not rounds_once:
        scaled = _scaled(terms, factor, is_scaled, to=dtype)
        return _added(name, x, axis, where, scaled, in_order=in_ub)
    rounded_to = dtype if axis == x.dim - 1 else DataType.DT_FP32
    scaled = cast(_scaled(terms, factor, is_scaled, to=rounded_to), DataType.DT_FP32)
    wide = cast(x, DataType.DT_FP32)
    found = _added(name, wide, axis, where, scaled, in_order=in_ub)
    return cast(found, dtype, CastMode.CAST_RINT)


def _check_tile(
    name: str, x: Tensor, terms: Tensor, index: Tensor, axis: int, *, in_ub: bool
) -> None:
    """Refuse a tile beyond UB: of the terms and indices, in UB of the whole dimension besides."""
    shape, extents = (tuple(map(int, each.shape)) for each in (terms, x))
    tile, bits = tile_of(name, shape), x.dtype.number_format.bits
    if tile is None:
        return
    count, wide = int(index.shape[0]), max(bits, 32) if x.dtype in _SHORT else bits
    if not in_ub:
        check_memory_of(name, tile, [(shape, wide), ((shape[-1],), wide), ((count,), 64)])
        return
    longest = max(extents[axis], shape[axis])
    whole = tuple(longest if k == axis else extent for k, extent in enumerate(tile))
    check_memory_of(name, whole, [(extents, wide), (extents, wide), (shape, wide)])


def _scaled(terms: Tensor, factor: Constant, is_scaled: bool, *, to: DataType) -> Tensor:
    """The terms times a factor, rounded to a dtype."""
    if not is_scaled:
        return terms
    if terms.dtype in _SHORT:
        product = elementwise("mul", cast(terms, DataType.DT_FP32), factor)
        return cast(product, to, CastMode.CAST_RINT)
    if terms.dtype is not DataType.DT_INT8:
        return elementwise("mul", terms, factor)
    held = held_by(terms)
    shape, valid = tuple(map(int, terms.shape)), tuple(terms.valid_shape)
    if held is None:
        return Tensor._from_result(shape, terms.dtype, valid=valid)
    fmt = terms.dtype.number_format
    cause = recording.causes().index_here("index_add")
    product_data = joined_in_memory("mul", fmt, cause, held, factor.enclosure(fmt))
    return Tensor._from_result(shape, terms.dtype, data=product_data, valid=valid)


def _added(
    name: str, x: Tensor, axis: int, index: Tensor, terms: Tensor, *, in_order: bool
) -> Tensor:
    fmt = x.dtype.number_format
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    held = held_by(x) if 0 not in valid else None
    indices, given = held_indices(name, index, valid[axis]), held_by(terms)
    region = list(terms.valid_shape)
    region[axis] = min(region[axis], index.valid_shape[0])
    if held is None or indices is None or given is None or 0 in region:
        return Tensor._from_result(shape, x.dtype, data=held, valid=valid)
    region = [r if k == axis else min(r, valid[k]) for k, r in enumerate(region)]
    box, along = slices((0,) * x.dim, region), [1] * x.dim
    along[axis] = region[axis]
    places = indices[: region[axis]].map(
        lambda array: np.broadcast_to(array.reshape(along), tuple(region))
    )
    cause = recording.causes().index_here(name)
    sums = None
    if not in_order or ASSUME_SUM_ORDER not in trust(name).assumed:
        reached = [valid[axis] if k == axis else each for k, each in enumerate(region)]
        sums = sums_from(held[slices((0,) * x.dim, reached)], fmt)
    result = writing.scatter(
        held,
        places,
        given[box],
        fmt,
        axis=axis,
        join=partial(joined_in_memory, "add", fmt, cause),
        in_order=in_order,
        sums=sums,
        cause=cause,
        trust=trust(name),
    )
    return Tensor._from_result(shape, x.dtype, data=result, valid=valid)


@OperationRow(
    dtypes=everywhere(DataType.DT_FP32, DataType.DT_FP16),
    lacked_by=("0.2.0",),
    instruction="vaxpy",
    source="pypto tileop/vector/binary.h: TAxpy; pto-isa a2a3/TAxpy.hpp; pypto op/math.py: FP16 "
    "runs in FP32",
    fidelity=Fidelity.BOUNDED,
    assumes=_ROUNDED,
    opcodes={"TT": "AXPY"},
    example="pypto.axpy_(out, x, 2.0)",
    is_method=True,
)
def axpy_(y: Tensor, x: Tensor, alpha: int | float = 1.0) -> Tensor:
    """y = alpha * x + y in place, in FP32; of FP16 the result is rounded at the end.

    One instruction multiplies and adds. On the 950 it rounds once; of A2 and A3 it is not public
    whether it rounds the product: results are those of two roundings, and open to those of one.

    Args:
        y: a tensor that the kernel writes, FP32 or FP16.
        x: of the same dtype, or FP16 beside FP32; it broadcasts to y, which does not.
        alpha: the factor, as FP32.

    Returns:
        y.

    Raises:
        TypeError: other dtypes, a factor that is no number, or a y that is not written.
        OverflowError: a factor beyond FP32, infinite or NaN.
        ShapeError: other dimensions, or a y of 1 element where x has more.
    """
    name = "axpy_"
    total, terms = check_operand(name, y), check_operand(name, x)
    mixes = total.dtype is DataType.DT_FP32 and terms.dtype is DataType.DT_FP16
    if not mixes:
        same_dtype(name, total, terms)
    pairs = list(zip(map(int, total.shape), map(int, terms.shape), strict=False))
    if total.dim != terms.dim or any(term not in (1, own) for own, term in pairs):
        raise ShapeError(
            f"{name}: x of {terms.shape} does not broadcast to y of {total.shape}; as many "
            "dimensions, each equal or 1 in x"
        )
    factor = _factor(name, alpha, DataType.DT_FP32)
    wide, own = cast(terms, DataType.DT_FP32), cast(total, DataType.DT_FP32)
    both = elementwise("add", elementwise("mul", wide, factor), own)
    y.move(cast(_fused(name, both, own, wide, factor), total.dtype, CastMode.CAST_NONE))
    return y


def _fused(name: str, both: Tensor, y: Tensor, x: Tensor, factor: Constant) -> Tensor:
    """The sum by two roundings, open to one; by one where a document says so of the family."""
    held = [operand_values(each, FP32) for each in (both, y, x)]
    rounded, own, terms = held
    valid = tuple(both.valid_shape)
    if rounded is None or own is None or terms is None or 0 in valid:
        return both
    own, terms = (each[tuple(slice(0, v) for v in valid)] for each in (own, terms))
    from simulator.arithmetic.fused import fused, open_to_fusion  # loaded when first used

    alpha = factor.enclosure(FP32)
    precision = PRECISION.get(current().chip.isa)
    if precision is not None and precision.fuses:
        data = fused(rounded, own, terms, alpha)
    else:
        cause = recording.causes().index_here(name)
        data = open_to_fusion(rounded, own, terms, alpha, trust=trust(name), cause=cause)
    shape = tuple(map(int, both.shape))
    return Tensor._from_result(
        shape, both.dtype, data=data, valid=valid, uninitialized=both.uninitialized()
    )
