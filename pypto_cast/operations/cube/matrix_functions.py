"""pypto.matmul and its kin.

Sources: upstream pypto, python/pypto/op/matmul.py, docs/zh/api/operation/pypto-matmul.md and
framework/src/interface/operation/cube_operation_impl.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pypto_cast.call_sites import warn_caller
from pypto_cast.dtypes.data_types import DataType, TileOpFormat, check_dtype
from pypto_cast.operations.cube.cube_tiles import (
    BLOCK_BYTES,
    BLOCK_ELEMS,
    CubeTiles,
    Factor,
    check_cube_tiles,
    current_tiles,
)
from pypto_cast.operations.cube.extend_params import (
    ExtendParams,
    bias_enclosure,
    checked_params,
    scale_factors,
    undecided_scale,
)
from pypto_cast.operations.lowering import (
    check_operand,
    check_tensor,
    converted_to,
    dtypes_of,
    of_release,
    operand_values,
)
from pypto_cast.operations.operation_rows import FLOATS, OperationRow, everywhere, on_950
from pypto_cast.options.context import current
from pypto_cast.recording import recording
from pypto_cast.recording.recording import trust
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import OPERATIONS, Enclosure, Fidelity
from simulator.numbers.formats import FP32, FP64, INT32, Format
from tiling.grid import Shape
from tiling.plan import ShapeError, TileShapeError, TileShapeWarning

_SMALL_FLOATS: Final = (DataType.DT_FP8E5M2, DataType.DT_FP8E4M3, DataType.DT_HF8)
_RESULTS: Final[Mapping[DataType, tuple[DataType, ...]]] = {
    DataType.DT_INT8: (DataType.DT_INT32, DataType.DT_FP16, DataType.DT_INT8),
    DataType.DT_FP16: (*FLOATS, DataType.DT_INT8),
    DataType.DT_BF16: (*FLOATS, DataType.DT_INT8),
    DataType.DT_FP32: (*FLOATS, DataType.DT_INT8),
    **dict.fromkeys(_SMALL_FLOATS, (*FLOATS, DataType.DT_INT8)),
}
"""The dtypes of a result by that of the matrices; INT8, and INT8 to FP16, take a scale."""
_FP8: Final = _SMALL_FLOATS[:2]
"""The dtypes that meet each other; all others meet themselves."""
_SCALED: Final = (*_FP8, DataType.DT_FP4_E2M1X2)
_SCALED_RESULTS: Final = (*FLOATS, DataType.DT_INT8)
_PAIR_ELEMS: Final = 64
"""Elements under the two scales that stand side by side."""
_LONGEST_ROW: Final = 65535
_IN_ND_ALONE: Final = (DataType.DT_FP32, DataType.DT_FP8E5M2)
_LAYOUTS: Final = (TileOpFormat.TILEOP_ND, TileOpFormat.TILEOP_NZ)


@OperationRow(
    opcodes={"TT": "A_MUL_B"},
    dtypes=everywhere(
        *(each for each in _RESULTS if each not in _SMALL_FLOATS), ascend_950=_SMALL_FLOATS
    ),
    fidelity=Fidelity.BOUNDED,
    remark="INT8 is exact while sums stay below 2^31: "
    "[Products of matrices](../operations.md#products-of-matrices)",
    example="pypto.matmul(x, y, pypto.DT_FP32, b_trans=True)",
    is_method=True,
)
def matmul(
    input: Tensor,
    mat2: Tensor,
    out_dtype: DataType,
    *,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
    extend_params: dict[str, Any] | None = None,
) -> Tensor:
    """Multiply matrices; leading dimensions are batches, which broadcast.

    INT8 gives the exact INT32 sum while the sum of magnitudes stays below 2**31. Floats are summed
    in FP32 in an order that is not public: an element is certain where every order gives it.
    Where parts of the operands hold data, the sum has the terms that both hold.

    Args:
        input: [..., M, K], or [..., K, M] with `a_trans`; 2 to 4 dimensions, TILEOP_ND or NZ.
        mat2: [..., K, N], or [..., N, K] with `b_trans`; as many dimensions, of the same dtype.
        out_dtype: DT_INT32 for DT_INT8 (DT_FP16 with a scale), else DT_FP32, DT_FP16 or DT_BF16,
            rounded once from FP32 to the nearest; with a scale DT_INT8 for any, ties to even,
            clamped.
        a_trans, b_trans: a matrix is handed over as its transpose.
        c_matrix_nz: False; upstream refuses a result in NZ.
        extend_params: a dict of bias_tensor, scale or scale_tensor, relu_type; it is not modified.

    Returns:
        [..., M, N].

    Raises:
        TypeError: dtypes that upstream refuses, or arguments of other types.
        ValueError: what A2/A3 does not do, such as FP32 in NZ.
        ShapeError: another K, batches that do not broadcast, NZ that is no whole fractals, an odd
            last axis of FP4.
        TileShapeError: cube tile shapes that upstream refuses or that a buffer does not hold.
        NpuError: in a kernel of RunMode.NPU.

    Warns:
        TileShapeWarning: no cube tile shapes are set; upstream's program would fail.
    """
    _check_flags("matmul", a_trans=a_trans, b_trans=b_trans, c_matrix_nz=c_matrix_nz)
    taken = dtypes_of("matmul")
    a, b = (check_tensor("matmul", x, taken, formats=_LAYOUTS) for x in (input, mat2))
    _check_pair("matmul", a.dtype, b.dtype)
    if check_dtype(out_dtype) not in _RESULTS[a.dtype]:
        known = ", ".join(map(format, _RESULTS[a.dtype]))
        raise TypeError(f"matmul of {a.dtype} gives {known}, not {out_dtype}")
    for x in (a, b):
        _check_layout(x, _IN_ND_ALONE)
    shape_a, shape_b = _swapped(tuple(a.shape), a_trans), _swapped(tuple(b.shape), b_trans)
    batch = _batch_of(a, b, shape_a, shape_b)
    shape = (*batch, shape_a[-2], shape_b[-1])
    params = checked_params(extend_params, a.dtype, shape)
    is_quantised = out_dtype is DataType.DT_INT8
    if is_quantised and not of_release("matmul", a.dtype, getattr, "quantises_products"):
        raise TypeError(f"matmul: {current().followed_release} gives no DT_INT8; cast the result")
    dequantises = a.dtype is DataType.DT_INT8 and out_dtype is DataType.DT_FP16
    if params.is_scaled != (is_quantised or dequantises):
        raise ValueError(
            f"matmul of {a.dtype} to {out_dtype} "
            + ("takes no scale" if params.is_scaled else "needs scale or scale_tensor")
        )
    tiles = _checked_tiles(a, b, a_trans, b_trans, (shape[-2], shape_a[-1], shape[-1]), params)
    if tiles is not None and tiles.splits_k:
        _check_split(params, out_dtype)
    return _multiplied("matmul", a, b, a_trans, b_trans, shape, out_dtype, params, tiles)


def _check_flags(operation: str, *, c_matrix_nz: bool, **flags: bool) -> None:
    for name, flag in (*flags.items(), ("c_matrix_nz", c_matrix_nz)):
        if not isinstance(flag, bool):
            raise TypeError(f"{operation}: {name} must be True or False, not {flag!r}")
    if c_matrix_nz:
        raise ValueError(
            f"{operation} gives TILEOP_ND alone, as upstream's: c_matrix_nz must be False"
        )


@OperationRow(
    dtypes=on_950(*_SCALED),
    lacked_by=("0.2.0",),
    fidelity=Fidelity.BOUNDED,
    remark="exact where every order of adding in FP32 gives one sum: "
    "[Products of matrices](../operations.md#products-of-matrices)",
    example="pypto.scaled_mm(codes, codes, pypto.DT_FP32, scales, scales, b_trans=True, "
    "scale_b_trans=True)",
)
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    out_dtype: DataType,
    scale_a: Tensor,
    scale_b: Tensor,
    *,
    a_trans: bool = False,
    b_trans: bool = False,
    scale_a_trans: bool = False,
    scale_b_trans: bool = False,
    c_matrix_nz: bool = False,
    extend_params: dict[str, Any] | None = None,
) -> Tensor:
    """Multiply matrices of MX: codes with a scale for every 32 along K.

    A product of two codes and their scales is exact in the range of FP32, and an element with one
    outside is undecided. The sum is one of FP32 in an order that is not public: an element is
    certain where every order gives it. A scale that is NaN makes
    NaN of its row or column.

    Args:
        mat_a: [..., M, K], or [..., K, M] with `a_trans`; 2 to 4 dimensions.
        mat_b: [..., K, N], or [..., N, K] with `b_trans`; as many dimensions. FP8 of either kind
            meets FP8 of either kind; FP4 meets FP4.
        out_dtype: DT_FP32, DT_FP16 or DT_BF16, rounded once from FP32 to the nearest; DT_INT8 with
            a scale of `extend_params`.
        scale_a: DT_FP8E8M0, [M, ceil(K / 64), 2], or [ceil(K / 64), M, 2] with `scale_a_trans`;
            the same for every batch.
        scale_b: DT_FP8E8M0, [ceil(K / 64), N, 2], or [N, ceil(K / 64), 2] with `scale_b_trans`.
        a_trans, b_trans, scale_a_trans, scale_b_trans: it is handed over as its transpose.
        c_matrix_nz: False; upstream refuses a result in NZ.
        extend_params: as of `matmul`; a bias is FP32, FP16 or BF16.

    Returns:
        [..., M, N].

    Raises:
        TypeError: dtypes that upstream refuses, or arguments of other types.
        ValueError: DT_FP8E5M2 in TILEOP_NZ, or scales that hold data for a part only.
        ShapeError: another K, batches that do not broadcast, scales of another shape, or an odd
            last axis of FP4.
        TileShapeError: cube tile shapes that upstream refuses or that a buffer does not hold.
        NpuError: in a kernel of RunMode.NPU.

    Warns:
        TileShapeWarning: no cube tile shapes are set; upstream's program would fail.
    """
    flags = {
        **{"a_trans": a_trans, "b_trans": b_trans, "c_matrix_nz": c_matrix_nz},
        **{"scale_a_trans": scale_a_trans, "scale_b_trans": scale_b_trans},
    }
    _check_flags("scaled_mm", **flags)
    taken = dtypes_of("scaled_mm")
    a, b = (check_tensor("scaled_mm", x, taken, formats=_LAYOUTS) for x in (mat_a, mat_b))
    _check_pair("scaled_mm", a.dtype, b.dtype)
    if check_dtype(out_dtype) not in _SCALED_RESULTS:
        known = ", ".join(map(format, _SCALED_RESULTS))
        raise TypeError(f"scaled_mm gives {known}, not {out_dtype}")
    for x in (a, b):
        _check_layout(x, _IN_ND_ALONE)
    shape_a, shape_b = _swapped(tuple(a.shape), a_trans), _swapped(tuple(b.shape), b_trans)
    batch = _batch_of(a, b, shape_a, shape_b)
    shape = (*batch, shape_a[-2], shape_b[-1])
    scales = (
        _checked_scales("scale_a", scale_a, shape_a[-2], shape_a[-1], scale_a_trans),
        _checked_scales("scale_b", scale_b, shape_b[-1], shape_a[-1], not scale_b_trans),
    )
    params = checked_params(extend_params, a.dtype, shape)
    if params.is_scaled != (out_dtype is DataType.DT_INT8):
        raise ValueError(
            f"scaled_mm to {out_dtype} "
            + ("takes no scale" if params.is_scaled else "needs scale or scale_tensor")
        )
    tiles = _checked_tiles(a, b, a_trans, b_trans, (shape[-2], shape_a[-1], shape[-1]), params)
    if tiles is not None and tiles.splits_k:
        _check_split(params, out_dtype)
    return _multiplied("scaled_mm", a, b, a_trans, b_trans, shape, out_dtype, params, tiles, scales)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scales:
    """Scales of the lines of a matrix, [lines, pairs of blocks, 2] once they are turned."""

    tensor: Tensor
    is_turned: bool

    def read(self, lines: int, terms: int) -> Enclosure | None:
        """[lines, blocks] for so many terms; None without values."""
        held = operand_values(self.tensor, self.tensor.dtype.number_format)
        if held is None:
            return None
        if self.is_turned:
            held = held.map(lambda array: np.swapaxes(array, 0, 1))
        pairs = -(-terms // _PAIR_ELEMS)
        if held.shape[0] < lines or held.shape[1] < pairs or held.shape[2] < 2:
            raise ValueError(
                f"scaled_mm: scales hold data in {list(held.shape)} of [lines, pairs, 2], and "
                f"{lines} lines of {terms} elements have some"
            )
        held = held[:lines, :pairs]
        return held.map(lambda array: array.reshape(lines, 2 * pairs))


def _checked_scales(name: str, x: object, lines: int, terms: int, is_turned: bool) -> _Scales:
    scales = check_tensor(f"scaled_mm: {name}", x, [DataType.DT_FP8E8M0])
    pairs = -(-terms // _PAIR_ELEMS)
    wanted, other = [lines, pairs, 2], [pairs, lines, 2]
    if is_turned:
        wanted, other = other, wanted
    found = list(map(int, scales.shape))
    if found != wanted:
        hint = f"; {name}_trans exchanges the first two axes" if found == other else ""
        raise ShapeError(
            f"scaled_mm: {name} of {lines} lines along K = {terms} has shape {wanted}, not "
            f"{found}{hint}"
        )
    return _Scales(tensor=scales, is_turned=is_turned)


@OperationRow(
    dtypes=everywhere(DataType.DT_FP16, DataType.DT_BF16),
    opcodes={"TT": "A_MUL_B"},
    is_experimental=True,
)
def transposed_batchmatmul(tensor_a: Tensor, tensor_b: Tensor, out_dtype: DataType) -> Tensor:
    """Multiply [M, B, K] by [B, K, N] batch by batch, to [M, B, N].

    Raises:
        TypeError: dtypes other than DT_FP16 and DT_BF16.
        ShapeError: other than three dimensions, another B or another K.
    """
    a, b = (check_operand("transposed_batchmatmul", x) for x in (tensor_a, tensor_b))
    if check_dtype(out_dtype) not in dtypes_of("transposed_batchmatmul"):
        raise TypeError(f"transposed_batchmatmul gives DT_FP16 and DT_BF16, not {out_dtype}")
    shape_a, shape_b = tuple(map(int, a.shape)), tuple(map(int, b.shape))
    if len(shape_a) != 3 or len(shape_b) != 3 or shape_a[1:] != shape_b[:2]:
        raise ShapeError(
            f"transposed_batchmatmul takes [M, B, K] and [B, K, N], not {list(shape_a)} and "
            f"{list(shape_b)}"
        )
    product = matmul(_exchanged(a), b, out_dtype)
    return _exchanged(product)


def _exchanged(x: Tensor) -> Tensor:
    """The same elements with the first two of three dimensions exchanged."""

    def move(entries: Shape) -> Shape:
        return (entries[1], entries[0], entries[2])

    fmt = x.dtype.number_format
    held = operand_values(x, fmt)
    moved = None if held is None else held.map(lambda array: np.swapaxes(array, 0, 1))
    shape, valid = tuple(map(int, x.shape)), tuple(x.valid_shape)
    return Tensor._from_result(move(shape), x.dtype, data=moved, valid=move(valid))


def _swapped(shape: tuple[Any, ...], is_transposed: bool) -> Shape:
    plain = tuple(map(int, shape))
    return (*plain[:-2], plain[-1], plain[-2]) if is_transposed else plain


def _check_pair(name: str, left: DataType, right: DataType) -> None:
    known = _FP8 if left in _FP8 else (left,)
    if right not in known:
        raise TypeError(
            f"{name} takes matrices of one dtype, or both of FP8, not {left} and {right}"
        )


def _check_layout(x: Tensor, in_nd_alone: tuple[DataType, ...]) -> None:
    """Refuse matrices whose rows a copy into L1 cannot take, and dtypes that lie in no fractals."""
    shape, fmt = tuple(map(int, x.shape)), x.dtype.number_format
    if not 2 <= len(shape) <= 4:
        raise ShapeError(f"matmul takes tensors of 2 to 4 dimensions; got {list(shape)}")
    if x.format is TileOpFormat.TILEOP_ND:
        if shape[-1] > _LONGEST_ROW:
            raise ShapeError(
                f"matmul takes rows of at most {_LONGEST_ROW} elements in TILEOP_ND; {list(shape)} "
                f"has {shape[-1]}"
            )
        if shape[-1] * fmt.bits % 8:
            raise ShapeError(
                f"two elements of {fmt.bits} bits share a byte, so rows of a matrix of {x.dtype} "
                f"have an even number of them; {list(shape)} has {shape[-1]}"
            )
        return
    if x.dtype in in_nd_alone:
        raise ValueError(
            f"matmul takes {x.dtype.name.removeprefix('DT_')} in TILEOP_ND alone; TILEOP_NZ takes "
            "other dtypes of 8 and 16 bits"
        )
    columns = BLOCK_BYTES * 8 // fmt.bits
    if shape[-2] % BLOCK_ELEMS or shape[-1] % columns:
        raise ShapeError(
            f"matmul: {list(shape)} of {x.dtype} in TILEOP_NZ must be whole fractals of "
            f"{BLOCK_ELEMS} x {columns} elements"
        )


def _batch_of(a: Tensor, b: Tensor, shape_a: Shape, shape_b: Shape) -> Shape:
    fits = len(shape_a) == len(shape_b) and shape_a[-1] == shape_b[-2]
    batches = list(zip(shape_a[:-2], shape_b[:-2], strict=False))
    if not fits or any(1 not in pair and len(set(pair)) > 1 for pair in batches):
        raise ShapeError(
            f"matmul takes [..., M, K] and [..., K, N] with as many dimensions and batches that "
            f"are equal or 1; got {list(shape_a)} and {list(shape_b)} (handed over as "
            f"{list(map(int, a.shape))} and {list(map(int, b.shape))})"
        )
    return tuple(map(max, batches))


def _checked_tiles(
    a: Tensor,
    b: Tensor,
    a_trans: bool,
    b_trans: bool,
    extents: tuple[int, int, int],
    params: ExtendParams,
) -> CubeTiles | None:
    tiles = current_tiles()
    if tiles is None:
        warn_caller(
            "no cube tile shapes are set, without which upstream's program fails: "
            "pypto.set_cube_tile_shapes sets them",
            TileShapeWarning,
        )
        return None
    factors = tuple(
        Factor(
            dtype=x.dtype,
            is_transposed=is_transposed,
            is_nz=x.format is TileOpFormat.TILEOP_NZ,
        )
        for x, is_transposed in ((a, a_trans), (b, b_trans))
    )
    check_cube_tiles(
        tiles,
        extents,
        (factors[0], factors[1]),
        has_bias=params.bias is not None,
        has_scales=params.scales is not None,
    )
    return tiles


def _check_split(params: ExtendParams, out_dtype: DataType) -> None:
    if not params.is_empty:
        raise TileShapeError(
            "matmul: with enable_split_k cores add sums of theirs, which leaves no place for "
            "bias, scales and ReLU; leave one of both out"
        )
    if out_dtype not in (DataType.DT_FP32, DataType.DT_INT32):
        raise TileShapeError(
            f"matmul: with enable_split_k the result is DT_FP32 or DT_INT32, not {out_dtype}"
        )


def _multiplied(
    name: str,
    a: Tensor,
    b: Tensor,
    a_trans: bool,
    b_trans: bool,
    shape: Shape,
    out_dtype: DataType,
    params: ExtendParams,
    tiles: CubeTiles | None,
    scales: tuple[_Scales, _Scales] | None = None,
) -> Tensor:
    held_a, held_b = (_swapped(tuple(x.valid_shape), t) for x, t in ((a, a_trans), (b, b_trans)))
    terms = min(held_a[-1], held_b[-2])
    batch = (
        min(of_a, of_b) if size_a == size_b else of_b if size_a == 1 else of_a
        for size_a, size_b, of_a, of_b in zip(
            *(tuple(map(int, x.shape))[:-2] for x in (a, b)), held_a[:-2], held_b[:-2], strict=True
        )
    )
    valid = (*batch, held_a[-2], held_b[-1]) if terms else (0,) * len(shape)
    is_small = a.dtype in (*_SMALL_FLOATS, *_SCALED)
    fmt = FP64 if is_small else a.dtype.number_format
    if 0 in valid:
        return Tensor._from_result(shape, out_dtype, valid=valid)
    quantities = [_read(x, x.dtype.number_format, t) for x, t in ((a, a_trans), (b, b_trans))]
    bias = bias_enclosure(params, valid[-1])
    missing = params.bias is not None and bias is None
    if quantities[0] is None or quantities[1] is None or missing:
        return Tensor._from_result(shape, out_dtype, valid=valid)
    left, right = (_cut_batch(x, valid[:-2]) for x in (quantities[0], quantities[1]))
    from simulator.arithmetic.cube import matmul as product  # loaded when first used

    cause = recording.causes().index_here(name)
    left, right = left[..., :terms], right[..., :terms, :]
    if is_small:
        from simulator.arithmetic.microscaling import in_fp64, scaled_numbers

        left, right = in_fp64(left, a.dtype.number_format), in_fp64(right, b.dtype.number_format)
    if is_small and scales is not None:
        of_left, of_right = (
            of_lines.read(lines, terms) for of_lines, lines in zip(scales, valid[-2:], strict=True)
        )
        if of_left is None or of_right is None:
            return Tensor._from_result(shape, out_dtype, valid=valid)
        left, right = (
            scaled_numbers(left, of_left),
            _turned(scaled_numbers(_turned(right), of_right)),
        )
    step = tiles.terms_of_a_core if tiles is not None and tiles.splits_k else terms
    pieces = (
        product(
            left[..., piece],
            right[..., piece, :],
            fmt,
            bias=bias,
            trust=trust(name),
            cause=cause,
            engine=current().converter,
            threads=current().threads,
        )
        for piece in _pieces(terms, step if out_dtype is DataType.DT_FP32 else terms)
    )
    result = Tensor._from_result(
        shape,
        out_dtype,
        data=_leaving(name, _added(name, pieces, cause), params, a.dtype, out_dtype, valid, cause),
        valid=valid,
    )
    open_scale = undecided_scale(params, valid[-1])
    if open_scale is not None:
        recording.record_control_dependence(open_scale)  # some of the words may be refused
    return result.made_unknown(open_scale)


def _read(x: Tensor, fmt: Format, is_transposed: bool) -> Enclosure | None:
    held = operand_values(x, fmt)
    if held is None or not is_transposed:
        return held
    return _turned(held)


def _turned(x: Enclosure) -> Enclosure:
    return x.map(lambda array: np.swapaxes(array, -1, -2))


def _cut_batch(x: Enclosure, batch: Shape) -> Enclosure:
    """The batches that both operands hold."""
    kept = tuple(
        slice(None, 1 if have == 1 else want)
        for have, want in zip(x.shape[:-2], batch, strict=True)
    )
    return x[kept] if kept else x


def _pieces(terms: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, terms, step))


def _added(name: str, pieces: Iterator[Enclosure], cause: int) -> Enclosure:
    """Add the sums of cores one after another, as upstream's vector additions do."""
    total = next(pieces)
    for piece in pieces:
        total = arithmetic.evaluate(
            OPERATIONS["add"], (total, piece), FP32, trust=trust(name), cause=cause
        )
    return total


def _leaving(
    name: str,
    sums: Enclosure,
    params: ExtendParams,
    a_dtype: DataType,
    out_dtype: DataType,
    valid: Shape,
    cause: int,
) -> Enclosure:
    """Scale, clip at zero and round the sums of the accumulator."""
    if params.is_scaled:
        from simulator.arithmetic.cube import dequantised, quantised  # loaded when first used

        factors = scale_factors(params, valid[-1], out_dtype)
        scaled = (
            functools.partial(quantised, fmt=INT32 if a_dtype is DataType.DT_INT8 else FP32)
            if out_dtype is DataType.DT_INT8
            else dequantised
        )
        return scaled(sums, factors, relu=params.relu, trust=trust(name), cause=cause)
    fmt = INT32 if out_dtype is DataType.DT_INT32 else FP32
    if params.relu:
        sums = arithmetic.evaluate(OPERATIONS["relu"], (sums,), fmt, trust=trust(name), cause=cause)
    out = out_dtype.number_format
    return sums if out is fmt else converted_to(sums, FP32, out)
