"""Casts a tensor in one walk, each step of which hands one frozen value to the next.

resolve -> Resolution -> plan -> TilePlan -> lower -> TileProgram    (cast_plan)
-> execute -> Enclosure -> Tensor                                     (here)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels import twin
from ascend_kernels.matrix import SaturationModeWarning
from ascend_kernels.npu import RunMode
from ascend_kernels.program import TileProgram, conversions
from ascend_kernels.vector_work import element_bits
from pypto_cast.call_sites import Place, caller, is_silenced, warn_caller
from pypto_cast.cast import npu
from pypto_cast.cast.cast_plan import (
    CastPlan,
    cast_format,
    default_satmode,
    is_unchanged,
    plan_cast,
    readings_behind,
    resolve_cast,
    rest_on_readings,
)
from pypto_cast.dtypes.data_types import (
    CastMode,
    DataType,
    SaturationMode,
    TileOpFormat,
    check_choice,
    check_dtype,
)
from pypto_cast.options import context as _options
from pypto_cast.recording import recording
from pypto_cast.recording.steps import intercepted
from pypto_cast.tensors.tensor import DYNAMIC, Tensor
from simulator import arithmetic
from simulator.arithmetic import DEFAULT, Enclosure, Trust
from simulator.arithmetic.trust import ASSUMPTIONS
from simulator.corrections import NIBBLES, NO_CORRECTIONS, value_of_reading
from simulator.machine import execute as machine
from simulator.numbers.convert import Conversion, values_of
from simulator.numbers.engines import EngineWarning
from simulator.numbers.formats import Codes
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, ShapeError, check_shape, check_tile_shape
from tiling.ub import ElementBits


@recording.replayable_operation
@functools.partial(intercepted, "cast")
def cast(
    input: Tensor,
    dtype: DataType,
    mode: CastMode = CastMode.CAST_NONE,
    satmode: SaturationMode | None = None,
) -> Tensor:
    """Convert a tensor to another dtype, bit for bit as the chip's family is documented to.

    The cast is tiled by `set_vec_tile_shapes`; no result depends on the tile shape. Rounding
    happens once, from the exact source value. NaN has one pattern (0x7FFF in FP16 and BF16,
    0x7FFFFFFF in FP32) and becomes 0 in integers. FP16 and BF16 results overflow as IEEE 754 says
    for the mode: RINT and ROUND to infinity, TRUNC and ODD to the largest number, FLOOR and CEIL by
    sign; under `options(inf_nan_mode=False)` overflow and infinity become the largest number and
    NaN +0. Zero keeps its sign between float dtypes, except FP32 to FP32, which gives +0, and HF8,
    which has one zero. Subnormal numbers are gradual. On the 950 that holds of FP8 and HF8 too;
    overflow to DT_FP8E4M3, which has no infinity, gives NaN; FP4 has its largest number for what
    is out of range, and 0 for NaN.

    Args:
        input: 1 to 4 dimensions, 1 to 2147483647 elements. Without data, the result is only
            declared too. Of a view that reaches over an edge, the valid part is converted.
        dtype: destination, one that `pypto-cast matrix` lists for the source. The input itself
            comes back if it has this dtype already, unless both are DT_FP32 and a mode is given:
            that rounds to integral values. Its shape and the entries of the tile are checked then
            too.
        mode: the round mode. CAST_NONE takes the default of the pair: CAST_TRUNC from float to
            integer, CAST_ROUND to HF8, CAST_RINT otherwise. Where nothing is rounded the mode is
            ignored.
        satmode: ON clamps what an integer dtype cannot hold (130.0 to DT_INT8 is 127). OFF keeps
            low bits, for FP16 to UINT8, INT8 and INT16, FP32 to INT16, INT64 to INT32 and INT32 to
            INT16, and on the 950 for every integer that may be out of range, and under
            `options(global_saturation=False)` for floats, which keep infinities; elsewhere it warns
            and clamps. Left out, it is ON, as the pypto.cast document
            says; where this package was imported as `pypto`, and under
            `options(satmode="upstream")`, it is OFF for those pairs, upstream's default. Name it in
            code that runs on both.

    Returns:
        A new tensor of the same shape. The input is not modified.

    Raises:
        TypeError: an argument of the wrong type.
        UnsupportedCastError: the chip does not convert this pair, or, if both dtypes are equal,
            casts nothing from or to them.
        TileShapeError: the tile has fewer entries than the tensor has dimensions or does not fit
            UB, or is unaligned under `options(strict=True)`.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
        ValueError: a shape that no cast takes, or a layout other than ND.
        NpuError: in a kernel of RunMode.NPU, what the op for the device cannot do.
        UpstreamRefusalError: an input with a dynamic dimension, in a kernel under `strict`.

    Warns:
        DynamicOperandWarning: an input with a dynamic dimension, in a kernel.
        CastModeWarning: the pair lacks the mode; its default is taken.
        SaturationModeWarning: OFF where it does not act; once for a line that leaves it out, where
            upstream's default changes a result.
        EngineWarning: the engine of the context cannot run here, or a native engine is damaged.
        TileShapeWarning: no tile shape set, rows that are not whole 32 B blocks, more UB than the
            documented safe budget, 18000 tiles or more.

    Source: the pypto.cast document; boundary values from CANN asc-devkit's tables for Cast.
    """
    _check_arguments(input, dtype, mode, satmode)
    src, shape, valid = input.dtype, tuple(input.shape), tuple(input.valid_shape)
    if is_unchanged(src, dtype, mode):
        bits = cast_format(dtype).bits
        _check_shapes(shape, ElementBits(src=bits, dst=bits))
        return input
    input.check_static()
    chosen = default_satmode(src, dtype) if satmode is None else satmode
    if DYNAMIC in shape:
        resolution = resolve_cast(src, dtype, mode, chosen)
        _check_shapes(shape, element_bits(resolution))
        diagnostics = resolution.diagnostics
    else:
        plan = plan_cast(shape, src, dtype, mode, chosen)
        diagnostics = plan.diagnostics
    for category, text in diagnostics:
        warn_caller(text, category)
    if DYNAMIC in shape or 0 in valid:
        return Tensor._from_result(shape, dtype, input.name, valid=valid)
    if valid != shape:
        plan = plan_cast(valid, src, dtype, mode, chosen)
    rest_on_readings("cast", readings_behind(src, dtype, mode))
    patches = recording.record_cast(plan.program)
    operand = input.enclosure() if recording.executes() else None
    result = None if operand is None else _execute(plan, operand)
    if satmode is None and operand is not None and _follows_upstream(plan):
        assert result is not None
        _warn_of_wrapping(operand, result, src, plan)
    uninitialized = None if operand is None else input.uninitialized()
    return Tensor._from_result(
        shape, dtype, input.name, result, valid=valid, patches=patches, uninitialized=uninitialized
    )


def conversion(
    chain: tuple[Conversion, ...], trust: Trust = DEFAULT
) -> Callable[[Enclosure], Enclosure]:
    """A chain of conversions of values and intervals, under the options of now.

    Args:
        chain: of a cast.
        trust: what is taken for granted; the cast is a cause here where it leaves elements open.
    """
    context = _options.current()
    return functools.partial(
        arithmetic.cast,
        chain,
        trust=trust,
        cause=recording.cast_cause(trust),
        exact=context.exact,
        threads=context.threads,
        corrections=context.corrections,
        engine=context.converter,
    )


def _execute(plan: CastPlan, operand: Enclosure) -> Enclosure:
    """Run a plan on the device, on the engine of the context, or on intervals."""
    from simulator.arithmetic.native.operation_nodes import may_be_open

    context, trusted, program = _options.current(), recording.trust("cast"), plan.program
    if context.run_mode is RunMode.NPU:
        codes = npu.run(program, operand.values)
    elif trusted.assumed >= ASSUMPTIONS and not may_be_open(operand):
        waiting = _waiting(plan, operand, context)
        if waiting is not None:
            return waiting
        codes = _codes(program, operand.values, context)
    else:
        return conversion(conversions(plan.resolution, context.controls), trusted)(operand)
    values = values_of(codes, plan.resolution.rule.dst)
    return Enclosure(values=values.reshape(program.plan.shape))


def _waiting(plan: CastPlan, operand: Enclosure, context: _options.Options) -> Enclosure | None:
    """The cast as a step of a native program, where operations wait; None: it is carried out."""
    from simulator.arithmetic.native.operation_nodes import waiting_cast

    if context.engine == "twin" or context.fidelity != "fast" or context.exact:
        return None
    chain = conversions(plan.resolution, context.controls)
    if context.corrections.touch(chain):
        return None
    again = conversion(chain, recording.trust("cast"))
    return waiting_cast(
        *(chain, operand, again),
        names_choices=False,
        engine=context.converter,
        threads=context.threads,
    )


def _codes(program: TileProgram, values: npt.NDArray[Any], context: _options.Options) -> Codes:
    asks_twin = context.engine == "twin" and context.fidelity == "fast" and not context.exact
    if asks_twin and context.corrections is NO_CORRECTIONS:  # the twin knows what is assumed alone
        try:
            return twin.execute(program, values, threads=context.threads)
        except twin.TwinUnavailableError as error:
            text = f"engine 'twin' cannot run, 'numpy' goes on: {error}"
            warn_caller(text, EngineWarning)
    return machine.execute(
        program,
        values,
        fidelity=context.fidelity,
        copy_completion=context.copy_completion,
        exact=context.exact,
        engine=context.converter,
        threads=context.threads,
        corrections=context.corrections,
        first_nibble=value_of_reading(NIBBLES, context.readings),
    )


_WARNED_OF_WRAPPING: Final[set[Place]] = set()


def _follows_upstream(plan: CastPlan) -> bool:
    """A cast that names no satmode keeps low bits by upstream's default, which no option names."""
    if not plan.resolution.rule.off or plan.satmode is SaturationMode.ON:
        return False
    context = _options.current()
    return context.cast_saturation or not context.global_saturation


def _warn_of_wrapping(
    operand: Enclosure, wrapped: Enclosure, src: DataType, plan: CastPlan
) -> None:
    """Warn once for a line whose results upstream's default of satmode changed."""
    place = caller()
    if is_silenced() or place in _WARNED_OF_WRAPPING:
        return
    clamping = resolve_cast(src, plan.dst, plan.mode, SaturationMode.ON)
    clamped = conversion(conversions(clamping, _options.current().controls))(operand)
    if all(
        np.array_equal(getattr(wrapped, name), getattr(clamped, name))
        for name in ("values", "low", "high")
    ):
        return
    warn_caller(
        f"cast names no satmode: upstream's default, OFF, keeps the low bits of numbers that "
        f"{plan.dst} does not hold; the pypto.cast document's, ON, clamps them. Name one",
        SaturationModeWarning,
    )
    _WARNED_OF_WRAPPING.add(place)


def ceildiv(a: int, b: int) -> int:
    """a / b rounded up, for an `a` of at least 0 and a positive `b`; computed as upstream does."""
    return (a + b - 1) // b


def _check_arguments(input: object, dtype: object, mode: object, satmode: object) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(
            f"cast takes a pypto Tensor, not {type(input).__module__}.{type(input).__qualname__}; "
            "make one with pypto.from_torch(tensor), pypto.from_numpy(array) or "
            "pypto.tensor(shape, dtype, data=numbers)"
        )
    input.check_content()
    check_dtype(dtype)
    check_choice("mode", mode, CastMode)
    if satmode is not None:
        check_choice("satmode", satmode, SaturationMode)
    if input.format is not TileOpFormat.TILEOP_ND:
        raise ValueError(f"a cast takes tensors in TILEOP_ND, not {input.format.name}")


def _check_shapes(shape: Shape, bits: ElementBits) -> None:
    """Refuse a shape that no cast takes and a tile shape, if one is set, of too few entries."""
    least = shape
    if DYNAMIC in shape:
        if not 1 <= len(shape) <= MAX_DIMS or 0 in shape:
            raise ShapeError(
                f"a cast takes 1 to {MAX_DIMS} dimensions, none of them 0; got {list(shape)}"
            )
        # What no length of the unknown dimensions makes legal is refused now; the last may have to
        # be even, so two stands for it.
        least = tuple(1 if entry == DYNAMIC else entry for entry in shape)
        if shape[-1] == DYNAMIC:
            least = (*least[:-1], 2)
    check_shape(least, bits)
    if tile := _options.current().vec_tile_shapes:
        check_tile_shape(tile, shape)
