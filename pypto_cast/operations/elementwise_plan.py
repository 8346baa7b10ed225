"""Elementwise operations on tensors: the plan, which equal ones share, and its evaluation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import numpy as np

from ascend_kernels.npu import RunMode
from pypto_cast.cast.api import cast
from pypto_cast.dtypes.data_types import DataType, TileOpFormat
from pypto_cast.operations.lowering import (
    RELEASE_DEPENDENCE,
    check_alike,
    check_memory_of,
    check_operand,
    check_repeated,
    grid_of,
    is_cast_inside,
    operand_values,
    result_tensor,
    rounds_operands,
    runs_in,
    tile_of,
    wraps,
)
from pypto_cast.operations.operation_rows import ROWS, OperationRow
from pypto_cast.operations.scalar_operands import Constant
from pypto_cast.options import context as options
from pypto_cast.options.context import AutoCast, Options
from pypto_cast.options.releases import ReleaseName
from pypto_cast.recording import recording
from pypto_cast.recording.buffers import Uninitialized, slices
from pypto_cast.recording.causes import what_ifs
from pypto_cast.recording.recording import trust
from pypto_cast.recording.steps import Patches
from pypto_cast.tensors.tensor import Tensor
from simulator import arithmetic
from simulator.arithmetic import Enclosure
from simulator.arithmetic.evaluation import Repeated
from simulator.arithmetic.operation import Operation
from simulator.arithmetic.trust import Trust
from simulator.numbers.formats import BOOL, Format
from tiling.chips import Chip
from tiling.grid import Grid, Shape
from tiling.plan import ShapeError, check_shape
from tiling.ub import ElementBits

_Operands = tuple[tuple[DataType, Shape, Shape | None, TileOpFormat], ...]


class _Asked(NamedTuple):
    """All that decides a plan: whatever it is to depend on must be here."""

    name: str
    dtype: DataType | None
    has_condition: bool
    operands: _Operands
    chip: Chip
    release: ReleaseName
    auto_cast: AutoCast
    tile_shape: Shape
    run_mode: RunMode


@dataclass(frozen=True, slots=True, kw_only=True)
class _ElementwisePlan:
    """The formats, shapes and tile of an operation, decided by its operands.

    Attributes:
        dtype: of the operands besides a condition.
        fmt: the format that the instruction runs in.
        out, shape, valid: of the result.
        grid: the tiles of the output; None if no tile shape is set.
        steps: the rows of values, one after another.
        needed: of each tensor the extents that valid elements depend on.
        fits: the tile fits in UB by itself.
        depends_on_release: another release carries it out otherwise or refuses it.
    """

    dtype: DataType
    fmt: Format
    out: DataType
    shape: Shape
    valid: Shape
    grid: Grid | None
    steps: tuple[Operation, ...]
    needed: tuple[Shape, ...]
    fits: bool
    depends_on_release: bool

    @property
    def is_plain(self) -> bool:
        """True if it is one step between operands and a result of the format that it runs in."""
        is_told = self.fits and not self.depends_on_release
        is_one = len(self.steps) == 1 and self.out is self.dtype
        return is_told and is_one and self.dtype.number_format is self.fmt


_PLANS: Final[dict[_Asked, _ElementwisePlan]] = {}
_KNOWN: Final[dict[tuple[object, ...], tuple[Options, _ElementwisePlan]]] = {}
"""The same by the identity of the options, which are kept."""
_MOST_PLANS: Final = 1 << 12
_Key = TypeVar("_Key")
_Plan = TypeVar("_Plan")


def _plan_of(
    row: OperationRow, tensors: Sequence[Tensor], condition: object, dtype: DataType | None
) -> _ElementwisePlan:
    """The plan of an operation; equal ones share it, with every warning and record of its own.

    None is kept of an operation that is refused, whose room in UB a schedule decides, or that has
    an extent that is known only when the kernel runs, which a recording for a schedule follows.
    """
    for x in tensors:
        if not x.is_plain():
            return _planned(row, tensors, condition, dtype)
    context = options.current()
    operands = tuple([(x._dtype, x._shape, x._valid, x._format) for x in tensors])
    key = id(context), row.name, dtype, condition is None, operands
    known = _KNOWN.get(key)
    if known is None:
        asked = _Asked(
            row.name,
            dtype,
            condition is not None,
            operands,
            context.chip,
            context.release,
            context.auto_cast,
            context.vec_tile_shapes,
            context.run_mode,
        )
        plan = _PLANS.get(asked)
        if plan is None:
            plan = _planned(row, tensors, condition, dtype)
            if plan.fits:
                _keep(_PLANS, asked, plan)
            return plan
        known = context, plan
        _keep(_KNOWN, key, known)
    plan = known[1]
    for x in tensors:
        if x._moved is not None and x is not condition:
            x.check_content()
    if plan.depends_on_release:
        recording.record_release_dependence(row.name, plan.dtype)
    return plan


def _keep(plans: dict[_Key, _Plan], key: _Key, plan: _Plan) -> None:
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan


def _planned(
    row: OperationRow, tensors: Sequence[Tensor], condition: object, dtype: DataType | None
) -> _ElementwisePlan:
    """Check the operands, and decide formats, shapes and the tile."""
    noted: list[str] = []
    token = RELEASE_DEPENDENCE.set(noted)
    try:
        dtype = _common_dtype(row, [x for x in tensors if x is not condition], dtype)
        shape = _broadcast_shape(row, dtype, [tuple(map(int, x.shape)) for x in tensors])
        fmt, out = runs_in(row.name, dtype), row.result_dtype(dtype)
    finally:
        RELEASE_DEPENDENCE.reset(token)
    tile, fits = tile_of(row.name, shape), True
    if tile is not None:
        bits: list[tuple[Shape, int]] = [
            (tuple(x.shape), 8 if x is condition else fmt.bits) for x in tensors
        ]
        bits.append((shape, 8 if out is DataType.DT_BOOL else fmt.bits))
        fits = check_memory_of(row.name, tile, bits, lambda extents: row.scratch(extents, fmt))
    valid = _valid_shape(shape, tensors)
    return _ElementwisePlan(
        dtype=dtype,
        fmt=fmt,
        out=out,
        shape=shape,
        valid=valid,
        grid=None if tile is None else grid_of(shape, tile),
        steps=row.steps,
        needed=tuple(_needed(x, shape, valid) for x in tensors),
        fits=fits,
        depends_on_release=bool(noted),
    )


class _Settled(NamedTuple):
    """An operation on plain tensors and numbers that was checked once.

    Attributes:
        context: the options, which are kept: they are found by their identity.
        plan: of the operation, which `is_plain`.
        repeated: its evaluation, by the identity of what is trusted, which is kept; None is what
            the options trust, outside kernels.
    """

    context: Options
    plan: _ElementwisePlan
    repeated: dict[int, tuple[Trust | None, Repeated]]


_SETTLED: Final[dict[tuple[object, ...], _Settled]] = {}
_MOST_OPERANDS: Final = 2
"""Of more, one comparison would not tell which of them are the same tensor."""

_Elementwise = Callable[..., Tensor]


def _settling(checked: _Elementwise) -> _Elementwise:
    """The same function, at once for operands of a form that it has had before."""

    @functools.wraps(checked)
    def call(name: str, *operands: Tensor | Constant, dtype: DataType | None = None) -> Tensor:
        form = None if dtype is not None else plain_form(name, operands)
        if form is None:
            return checked(name, *operands, dtype=dtype)
        known = _SETTLED.get(form[0])
        if known is not None:
            return _carried_out(name, operands, form[1], known)
        result = checked(name, *operands)
        _settle(form[0], name, operands)
        return result

    return call


def at_once(name: str, *operands: object) -> Tensor | None:
    """The result of `elementwise`, where that has carried out the same; None where it has not."""
    form = plain_form(name, operands)
    known = None if form is None else _SETTLED.get(form[0])
    return None if form is None or known is None else _carried_out(name, operands, form[1], known)


def plain_form(
    name: str, operands: Sequence[object]
) -> tuple[tuple[object, ...], list[Enclosure | None]] | None:
    """The key of an operation among the settled ones, and the values of its tensors.

    None where more is to be done than to compute: an operand is not plain, calls are kept, no
    values are computed, or a what-if applies.
    """
    running = recording.current()
    if running is not None and not (
        running.executes and running.calls is None and running.tape is None
    ):
        return None
    if len(operands) > _MOST_OPERANDS or what_ifs():
        return None
    held: list[Enclosure | None] = []
    key: list[object] = [id(options.current()), name, operands[0] is operands[-1]]
    for x in operands:
        if type(x) is Tensor:
            values = _plain_values(x, running)
            if values is None:
                return None
            held.append(values)
            key += x._dtype, x._shape
        elif type(x) is Constant:
            held.append(None)
            key.append(None)
        else:
            return None
    return tuple(key), held


def _plain_values(x: Tensor, running: recording.Recording | None) -> Enclosure | None:
    """The values of a tensor about which nothing else is to be found out; None of others.

    Others are parts, were written by the kernel or moved away, wait, or have elements that nobody
    set or an extent that only a run knows.
    """
    if x._valid is not None or x._dynamic or x._moved is not None or x._uninitialized is not None:
        return None
    buffer = x._buffer
    if buffer is not None:
        held = buffer.untouched()
    elif running is not None and x in running.declared:
        return None
    else:
        held = x._held
    if held is None or type(held) is not Enclosure or x._format is not TileOpFormat.TILEOP_ND:
        return None
    return held if held.values.dtype.isnative else None


def _carried_out(
    name: str, operands: Sequence[object], held: Sequence[Enclosure | None], known: _Settled
) -> Tensor:
    """The result of a settled operation."""
    plan, running, trusted = known.plan, recording.current(), None
    if running is None:
        cause = recording.OUTSIDE.index_here(name)
    else:
        cause, trusted = running.causes.index_here(name), trust(name)
    given: list[Enclosure] = []
    for x, values in zip(operands, held, strict=True):
        if values is None:
            assert isinstance(x, Constant)
            values = x.enclosure(plan.fmt)
        given.append(values)
    if len(given) == 2 and operands[0] is operands[1]:
        given[1] = given[0]
    repeated = known.repeated.get(id(trusted))
    if repeated is None:
        made = _repeated(plan, given, trusted or trust(name), known.context)
        repeated = trusted, made
        _keep(known.repeated, id(trusted), repeated)
    result = repeated[1].result(given, cause)
    if result is None:
        result = _evaluated(plan, given, trusted or trust(name), cause, known.context)
    patches: Patches = ()
    if plan.grid is not None:
        cores = known.context.chip.vector_cores
        patches = recording.record_operation(cause, plan.grid, cores)
    return Tensor._computed(plan.shape, plan.out, result, patches)


def _settle(key: tuple[object, ...], name: str, operands: Sequence[Tensor | Constant]) -> None:
    """Keep an operation that succeeded, where nothing else is to be done for it."""
    tensors = list({id(x): x for x in operands if isinstance(x, Tensor)}.values())
    if not tensors or _takes_condition(name):
        return
    plan = _plan_of(ROWS[name], tensors, None, None)
    if plan.is_plain:
        _keep(_SETTLED, key, _Settled(options.current(), plan, {}))


def _repeated(
    plan: _ElementwisePlan, given: Sequence[Enclosure], trusted: Trust, context: Options
) -> Repeated:
    return Repeated(
        plan.steps[0],
        tuple([x.dtype for x in given]),
        plan.fmt,
        trust=trusted,
        inf_nan_mode=wraps(plan.fmt),
        engine=context.converter,
    )


def _evaluated(
    plan: _ElementwisePlan,
    given: Sequence[Enclosure],
    trusted: Trust,
    cause: int,
    context: Options,
) -> Enclosure:
    for step in plan.steps:
        result = arithmetic.evaluate(
            step,
            given,
            plan.fmt,
            trust=trusted,
            inf_nan_mode=wraps(plan.fmt),
            cause=cause,
            engine=context.converter,
            threads=context.threads,
        )
        given = [result]
    return result


@_settling
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
    if not tensors and dtype is None:
        check_operand(name, operands[0])  # which refuses it
    condition = operands[0] if _takes_condition(name) else None
    plan = _plan_of(row, tensors, condition, dtype)
    shape, valid, fmt, out = plan.shape, plan.valid, plan.fmt, plan.out
    held = {}
    for x, needed in zip(tensors, plan.needed, strict=True):
        reads = BOOL if x is condition else fmt
        is_rounded = x.dim < len(shape) or rounds_operands(name, plan.dtype)
        enclosure = operand_values(x, reads, reshaped=is_rounded)
        if enclosure is not None:
            whole = enclosure.shape == needed
            held[id(x)] = enclosure if whole else enclosure[slices([0] * x.dim, needed)]
    if len(held) < len(tensors) or 0 in valid:
        return Tensor._from_result(shape, out, valid=valid)
    cause, context, trusted = recording.causes().index_here(name), options.current(), trust(name)
    given = [x.enclosure(fmt) if isinstance(x, Constant) else held[id(x)] for x in operands]
    result = _evaluated(plan, given, trusted, cause, context)
    uninitialized = _uninitialized(operands, condition, held, shape, valid)
    return result_tensor(result, row, out, shape, valid, plan.grid, cause, uninitialized)


def together() -> AbstractContextManager[None]:
    """Let the steps of one operation, none of which writes to a tensor, become one program."""
    from simulator.arithmetic.native.operation_nodes import deferring  # loaded when first used

    return deferring()


@functools.cache
def _takes_condition(name: str) -> bool:
    return ROWS[name].arithmetic.copies


def _uninitialized(
    operands: Sequence[Tensor | Constant],
    condition: Tensor | Constant | None,
    held: Mapping[int, Enclosure],
    shape: Shape,
    valid: Shape,
) -> Uninitialized | None:
    """The elements of a result that depend on uninitialized ones; `where` takes one branch."""
    found: dict[int, Uninitialized] = {}
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


def _common_dtype(row: OperationRow, tensors: Sequence[Tensor], dtype: DataType | None) -> DataType:
    for x in tensors:
        check_operand(row.name, x)
    first = dtype or tensors[0].dtype
    for x in tensors:
        check_alike(row.name, first, x)
    return first


def _broadcast_shape(row: OperationRow, dtype: DataType, shapes: Sequence[Shape]) -> Shape:
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
        for each in shapes:  # numpy refuses one that is too large, too
            check_shape(each, ElementBits(src=8, dst=8), row.name)
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


Reading = Callable[[str, object, DataType], Constant]
"""(operation, number, dtype of the tensor) -> the number as the instruction gets it."""


def with_number(name: str, input: object, other: object, reading: Reading) -> Tensor:
    """Carry out an operation whose second operand may be a number."""
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input._dtype is DataType.DT_FP32:
        result = at_once(name, input, other)
        if result is not None:
            return result
    x = check_operand(name, input)
    operand = other if isinstance(other, Tensor) else reading(name, other, x.dtype)
    if x.dtype is DataType.DT_FP32:
        return elementwise(name, x, operand)
    if is_cast_inside(name, x.dtype) and getattr(operand, "dtype", x.dtype) is x.dtype:
        wide = (
            cast(each, DataType.DT_FP32) if isinstance(each, Tensor) else each
            for each in (x, operand)
        )
        return elementwise(name, *wide)
    return elementwise(name, x, operand)


def either(name: str, input: object, other: object, reading: Reading) -> Tensor:
    """Carry out an operation either of whose operands may be a number, but not both."""
    result = at_once(name, input, other)
    if result is not None:
        return result
    given = next((x for x in (input, other) if isinstance(x, Tensor)), None)
    x = check_operand(name, input if given is None else given)
    operands = (
        each if isinstance(each, Tensor) else reading(name, each, x.dtype)
        for each in (input, other)
    )
    return elementwise(name, *operands)
