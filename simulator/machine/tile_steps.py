"""Steps of the machine that are tile operations: their tiles, and the values that each gives.

A value of a step follows from its inputs alone; the core beside it moves bytes and guards them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator import arithmetic
from simulator.arithmetic import EXACT, OPERATIONS, Enclosure
from simulator.arithmetic.indexed.by_place import (
    ALL,
    TRIANGLES,
    ones_of_triangle,
    pattern,
    spaced,
)
from simulator.arithmetic.indexed.gather_scatter import gather, is_factor, scatter
from simulator.arithmetic.indexed.running_sums import prefix_scan
from simulator.machine.isa import Pipe
from simulator.machine.memory import UB, Bytes, Effect, Region, SimulatorFault, UbRange
from simulator.machine.tile_functions import evaluated
from simulator.machine.tile_opcodes import TileOpcode, TileWork
from simulator.numbers import float_environment
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP32, FloatFormat, Format, assert_never
from tiling.chips import A2_A3, Chip

_Values = npt.NDArray[Any]
GROUP_ELEMS: Final = 32
"""Elements that are sorted at once."""
ASCENDING: Final = "ascending"
"""The function of sorts, and of elements taken out of pairs, that are in rising order."""
NUMBERS: Final = "indices"
"""The function that takes the numbers out of pairs."""
SHIFTED: Final = "shifted"
"""The function of running sums that add tiles shifted by 1, 2, 4, ... elements, not in turn."""
ROUNDED: Final = "rounded"
"""The function of additions by index in FP32 whose factor, products and sums are those of BF16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileBox:
    """A box of elements of a tensor that lies in UB or GM in row-major order.

    Attributes:
        space: "ub", or "gm." and the name of a tensor.
        start_bytes: the first byte of the tensor in its memory.
        tensor_shape: its extents as it lies there, padding included.
        offset: of the box, an axis.
        shape: of the box: the valid elements.
        format: of an element.
        buffer: the part of UB that holds the tensor; None in GM.
        strides_bytes: from element to element along each axis.
        first_byte: the address of the first element of the box.

    Raises:
        ValueError: shapes and offset have different numbers of axes.
    """

    space: str
    start_bytes: int
    tensor_shape: tuple[int, ...]
    offset: tuple[int, ...]
    shape: tuple[int, ...]
    format: Format
    buffer: UbRange | None = None
    strides_bytes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    first_byte: int = field(init=False, repr=False, compare=False)
    _regions: tuple[Region, ...] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not len(self.tensor_shape) == len(self.offset) == len(self.shape) > 0:
            raise ValueError(
                f"a tile of {list(self.shape)} at {list(self.offset)} in {self.space} of "
                f"{list(self.tensor_shape)}: their axes differ"
            )
        from_last = (self.elem_bytes, *self.tensor_shape[:0:-1])
        strides = tuple(itertools.accumulate(from_last, int.__mul__))[::-1]
        object.__setattr__(self, "strides_bytes", strides)
        first_byte = self.start_bytes + sum(map(operator.mul, self.offset, strides))
        object.__setattr__(self, "first_byte", first_byte)

    @property
    def elem_bytes(self) -> int:
        return self.format.dtype.itemsize

    @property
    def stop_bytes(self) -> int:
        """The end of the tensor that holds the box."""
        return self.start_bytes + math.prod(self.tensor_shape) * self.elem_bytes

    def regions(self) -> tuple[Region, ...]:
        """The bytes of the box, as rows; they are asked for again and again, and found once."""
        found = self._regions
        if found is None:
            found = self._find_regions()
            object.__setattr__(self, "_regions", found)
        return found

    def _find_regions(self) -> tuple[Region, ...]:
        if 0 in self.shape:
            return ()
        shape, strides = list(self.shape), list(self.strides_bytes)
        width = self.elem_bytes
        while shape and strides[-1] == width:
            width *= shape.pop()
            strides.pop()
        count = shape.pop() if shape else 1
        pitch = strides.pop() if strides else 0
        return tuple(
            Region(
                space=self.space,
                start=self.first_byte + sum(map(int.__mul__, outer, strides)),
                width=width,
                count=count,
                pitch=pitch,
            )
            for outer in itertools.product(*map(range, shape))
        )

    def view(self, memory: Bytes) -> _Values:
        """The elements of the box in its memory."""
        return np.ndarray(
            self.shape, self.format.dtype, memory.data, self.first_byte, self.strides_bytes
        )

    def __str__(self) -> str:
        box = "x".join(map(str, self.shape))
        return f"{self.space}+{self.first_byte} {box} {self.format}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileStep:
    """One tile operation with its operands.

    Attributes:
        opcode: its row.
        inputs: the tiles that it reads.
        outputs: those that it writes; those behind the first are scratch memory.
        scalar: the number beside them; device code holds it in FP32.
        other_scalar: the number behind it.
        scalar_first: the number is the first operand.
        step: the distance of numbers that begin with it.
        numbers: those of the tile: the diagonal of a triangle, the first place of a range.
        function: of a comparison, the row of `OPERATIONS`; the name of a triangle; `SHIFTED` or
            `ROUNDED`.
        axis: of a reduction of lines, of sums, of indices, of a repetition.
        axes: two that are exchanged, or all of them in the order of the result.
        conversions: of a cast; of additions by index, those that round the factor, each product and
            each sum.
    """

    opcode: TileOpcode
    inputs: tuple[TileBox, ...]
    outputs: tuple[TileBox, ...]
    scalar: float | None = None
    other_scalar: float | None = None
    scalar_first: bool = False
    step: float | None = None
    numbers: tuple[int, ...] = ()
    function: str = ""
    axis: int = -1
    axes: tuple[int, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    _checked: tuple[Chip, Effect] | None = field(
        init=False, repr=False, compare=False, default=None
    )

    @property
    def pipe(self) -> Pipe:
        return self.opcode.pipe

    def effect(self, chip: Chip, check: Callable[[], Effect]) -> Effect:
        """The bytes that it touches; of a step inside UB they are the same for every task.

        Args:
            chip: for its sizes and limits.
            check: checks the step and finds them, or raises.
        """
        if self._checked is not None and self._checked[0] is chip:
            return self._checked[1]
        found = check()
        if all(tile.space == UB for tile in (*self.inputs, *self.outputs)):
            object.__setattr__(self, "_checked", (chip, found))
        return found

    def __str__(self) -> str:
        outputs = ", ".join(map(str, self.outputs))
        scalars = [f"{x:g}" for x in (self.scalar, self.other_scalar) if x is not None]
        return f"{self.opcode.name} {outputs} <- {', '.join([*map(str, self.inputs), *scalars])}"


def changed_input(work: TileWork, scalar: float | None, function: str) -> int | None:
    """The place of an input that is other numbers afterwards, whatever lies where; None of none.

    An addition by index multiplies its terms (tileop indexadd.h:32), a sort in rising order changes
    the sign of its elements (sort.h:66), and a quantisation multiplies where its elements lie
    (pto-isa a2a3/TQuant.hpp).
    """
    if work is TileWork.QUANTIZE:
        return 0
    if work is TileWork.ADD_AT and scalar is not None and is_factor(scalar):
        return 1
    return 0 if work is TileWork.SORT32 and function == ASCENDING else None


def step_values(step: TileStep, inputs: Sequence[_Values], family: str = A2_A3) -> _Values:
    """The values of a step's output; `family` is that of the chip, for the order of reductions."""
    row, result = step.opcode, step.outputs[0]
    match row.work:
        case TileWork.COPY:
            return inputs[0]
        case TileWork.EXPAND:
            return _expanded(inputs[0], result.shape)
        case TileWork.FILL:
            return np.broadcast_to(_scalar(step, result.format), result.shape)
        case TileWork.CAST:
            return arithmetic.cast(step.conversions, Enclosure(values=inputs[0])).values
        case TileWork.REDUCE | TileWork.REDUCE_LINES:
            return _reduced(row.function, inputs[0], step.inputs[0].format, step.axis, family)
        case TileWork.PAIR:
            return _paired(row.function, inputs, step.inputs[0].format)
        case TileWork.ELEMENTS | TileWork.COMPARE:
            fmt = result.format if row.scalars == 2 else step.inputs[-1].format
            operands = list(inputs)
            if row.takes_blocks:
                operands = [_repeated(each, result.shape) for each in inputs]
            if step.scalar is not None:
                last = len(operands) if row.scalar_at is None else row.scalar_at
                operands.insert(0 if step.scalar_first else last, _scalar(step, fmt))
            if step.other_scalar is not None:
                operands.append(_scalar(replace(step, scalar=step.other_scalar), fmt))
            return evaluated(row.function or step.function, operands, fmt)
        case TileWork.PAD:
            return _padded(inputs[0], _scalar(step, result.format), result.shape)
        case TileWork.TRANSPOSE:
            return _turned(inputs[0], step.axes)
        case TileWork.BLOCKS:
            return _expanded(np.swapaxes(inputs[0], -1, -2), result.shape)
        case TileWork.BYTES:
            return np.ascontiguousarray(inputs[0]).view(result.format.dtype)
        case TileWork.ACCUMULATE:
            return prefix_scan(
                Enclosure(values=inputs[0]),
                step.inputs[0].format,
                axis=step.axis,
                extent=inputs[0].shape[step.axis],
                step="mul" if row.function == "mul" else "add",
                trust=EXACT,
                cause=0,
                by_scalars=inputs[0].ndim == 1,
                in_turn=row.function != "mul" and step.function != SHIFTED,
            ).values
        case TileWork.GATHER:
            return _gathered(inputs, step.inputs[0].format, step.axis)
        case TileWork.SELECT:
            return _selected(inputs, step.axis)
        case TileWork.PAGED_ROWS:
            return _paged_rows(step, inputs)
        case TileWork.PUT:
            return _put(step, inputs)
        case TileWork.SCATTER:
            return _scattered(step, inputs)
        case TileWork.ADD_AT:
            return _added_at(step, inputs)
        case TileWork.SORT32:
            return sorted_pairs(step, inputs[0])
        case TileWork.MERGE:
            return merged_pairs(inputs[0], result.shape[-1])
        case TileWork.EXTRACT:
            return extracted(step, inputs[0])
        case TileWork.PATTERN:
            return inputs[0][..., _pattern(step)]
        case TileWork.ONE_HOT:
            return _one_hot(inputs[0], result)
        case TileWork.TRIANGLE:
            return _triangle(step, inputs[0])
        case TileWork.SPACED:
            return _spaced(step)
        case TileWork.QUANTIZE:
            return _quantized(step, inputs)
        case TileWork.DEQUANTIZE:
            return _dequantized(step, inputs)
        case TileWork.WEIGH:
            return _weighed(row.function, inputs, step.inputs[0].format)
        case TileWork.EXTREME | TileWork.PAIR_EXTREME:
            raise SimulatorFault(f"{row.name} gives two tiles")
        case TileWork.ALIAS:
            raise SimulatorFault(f"{row.name} moves nothing, and has no values of its own")
        case _:
            assert_never(row.work)


def _turned(values: _Values, axes: Sequence[int]) -> _Values:
    return np.swapaxes(values, *axes) if len(axes) == 2 else np.transpose(values, axes)


def step_results(
    step: TileStep, inputs: Sequence[_Values], family: str = A2_A3
) -> tuple[_Values, ...]:
    """The values of all of a step's results; see `step_values`."""
    match step.opcode.work:
        case TileWork.EXTREME:
            return _extreme(step, inputs[0])
        case TileWork.PAIR_EXTREME:
            return _chosen(step, inputs)
        case _:
            return (step_values(step, inputs, family),)


def _extreme(step: TileStep, values: _Values) -> tuple[_Values, _Values]:
    """The extreme element along an axis, and the place of the first that equals it."""
    from simulator.arithmetic.indexed.sort import sort  # loaded when first used

    rows = Enclosure(values=np.ascontiguousarray(np.moveaxis(values, step.axis, -1)))
    is_greatest = "MAX" in step.opcode.name
    found = sort(rows, 1, descending=is_greatest, trust=EXACT, cause=0)
    value, place = (np.moveaxis(each.values, -1, step.axis) for each in found)
    return value, place


def _chosen(step: TileStep, inputs: Sequence[_Values]) -> tuple[_Values, _Values]:
    """Of two tiles the more extreme elements and their places; of equal ones the first tile's."""
    value, place, other, there = inputs
    is_greatest = "MAX" in step.opcode.name
    is_other = other > value if is_greatest else other < value
    return np.where(is_other, other, value), np.where(is_other, there, place)


def _padded(values: _Values, number: _Values, shape: tuple[int, ...]) -> _Values:
    if any(map(int.__gt__, values.shape, shape)):
        raise SimulatorFault(f"does not pad {values.shape} to {shape}")
    padded = np.full(shape, number, values.dtype)
    padded[tuple(map(slice, values.shape))] = values
    return padded


def _gathered(inputs: Sequence[_Values], fmt: Format, axis: int) -> _Values:
    """Elements read by indices, which must lie inside the tile."""
    source, index = inputs
    _check_indices(index, source.shape[axis])
    beside = [slice(extent) for extent in index.shape]  # the other axes may be shorter
    beside[axis] = slice(None)
    source = source[tuple(beside)]
    return gather(Enclosure(values=source), Enclosure(values=index), fmt, axis=axis).values


def _selected(inputs: Sequence[_Values], axis: int) -> _Values:
    """Slices read by indices, whose axes come in the place of the one that they are along."""
    source, index = inputs
    _check_indices(index, source.shape[axis])
    return np.take(source, index, axis)


def _paged_rows(step: TileStep, inputs: Sequence[_Values]) -> _Values:
    """Rows read by numbers in the order of a table, which has the block of rows of each."""
    source, index, table = inputs
    assert step.scalar is not None
    block, numbers = int(step.scalar), index.reshape(-1).astype(np.int64)
    _check_indices(numbers, table.size * block)
    rows = table.reshape(-1).astype(np.int64)[numbers // block] * block + numbers % block
    _check_indices(rows, source.shape[0])
    return np.take(source, rows, 0)


def put_target(step: TileStep) -> int:
    """The place of the input in GM that is written to."""
    return next(k for k, tile in enumerate(step.inputs) if tile.space == step.outputs[0].space)


def _put(step: TileStep, inputs: Sequence[_Values]) -> _Values:
    """A tensor with other rows where indices say; of equal ones the last one's stays.

    INDEX_OUTCAST leaves rows of negative indices out (tileop index_outcast.h).
    """
    place = put_target(step)
    values, index = (each for k, each in enumerate(inputs) if k != place)
    target = inputs[place].copy()
    numbers = index.reshape(-1).astype(np.int64)
    leading = target.shape[:1] if step.opcode.name == "INDEX_PUT" else target.shape[:-1]
    rows, given = target.reshape(math.prod(leading), -1), values.reshape(numbers.size, -1)
    if given.shape[1] != rows.shape[1]:
        raise SimulatorFault(f"writes {values.shape} elements to {target.shape} at {index.shape}")
    if step.opcode.name != "INDEX_PUT":
        given, numbers = given[numbers >= 0], numbers[numbers >= 0]
    _check_indices(numbers, rows.shape[0])
    rows[numbers] = given
    return target


def _scattered(step: TileStep, inputs: Sequence[_Values]) -> _Values:
    """A tile with other elements where the indices say; of equal indices the last one's stays."""
    source, index, *given = inputs
    fmt = step.inputs[0].format
    _check_indices(index, source.shape[step.axis])
    written = given[0][tuple(map(slice, index.shape))] if given else _scalar(step, fmt)
    target, places, others = (Enclosure(values=each) for each in (source, index, written))
    return scatter(target, places, others, fmt, axis=step.axis % source.ndim).values


def _added_at(step: TileStep, inputs: Sequence[_Values]) -> _Values:
    """A tile with terms added one after another, in the order of the indices.

    The factor is rounded as its products are; one near enough to 1 multiplies nothing.
    """
    target, terms, index = inputs
    fmt, axis = step.inputs[0].format, step.axis % target.ndim
    _check_indices(index, target.shape[axis])

    def rounded(values: _Values) -> _Values:
        if not step.conversions:
            return values
        return arithmetic.cast(step.conversions, Enclosure(values=values)).values

    def joined(held: Enclosure, given: Enclosure) -> Enclosure:
        return Enclosure(values=rounded(evaluated("add", (held.values, given.values), fmt)))

    factor = rounded(_scalar(step, fmt).reshape(1))
    if is_factor(float(factor[0])):
        terms = rounded(evaluated("mul", (terms, factor.reshape((1,) * terms.ndim)), fmt))
    along = [index.size if k == axis else 1 for k in range(target.ndim)]
    places = np.broadcast_to(index.reshape(along), terms.shape)
    held, where, given = (Enclosure(values=each) for each in (target, places, terms))
    return scatter(held, where, given, fmt, axis=axis, join=joined).values


def sorted_pairs(step: TileStep, values: _Values) -> _Values:
    """Each 32 elements of a row in falling order, each before the bits of its number.

    Of equal ones the first is first. Rising order is that of the elements with the other sign.
    """
    count = values.shape[-1]
    if step.scalar is None or count % GROUP_ELEMS or values.dtype != FP32.dtype:
        raise SimulatorFault(f"does not sort rows of {count} {step.inputs[0].format}")
    numbers = np.arange(int(step.scalar), int(step.scalar) + count, dtype=np.int32)
    keys = -values if step.function == ASCENDING else values
    groups = *values.shape[:-1], count // GROUP_ELEMS, GROUP_ELEMS
    held = np.broadcast_to(numbers.view(np.float32), values.shape).reshape(groups)
    return _in_order(keys.reshape(groups), held).reshape(*values.shape[:-1], 2 * count)


def merged_pairs(pairs: _Values, length: int) -> _Values:
    """The first pairs of a row in falling order."""
    return _in_order(pairs[..., ::2], pairs[..., 1::2])[..., :length]


def _in_order(keys: _Values, numbers: _Values) -> _Values:
    from simulator.arithmetic.indexed.sort import sort  # loaded when first used

    keys = np.ascontiguousarray(keys)
    found = sort(Enclosure(values=keys), keys.shape[-1], descending=True, trust=EXACT, cause=0)
    beside = np.take_along_axis(numbers, found.indices.values.astype(np.int64), -1)
    pairs = np.stack((found.values.values, beside), -1)
    return pairs.reshape(*keys.shape[:-1], -1)


def extracted(step: TileStep, pairs: _Values) -> _Values:
    """The first elements of pairs, or their numbers."""
    result = step.outputs[0]
    found = pairs[..., step.function == NUMBERS :: 2][..., : result.shape[-1]]
    if step.function == NUMBERS:
        return np.ascontiguousarray(found).view(np.int32)
    return -found if step.function == ASCENDING else found


def _check_indices(index: _Values, length: int) -> None:
    if index.size and not 0 <= index.min() <= index.max() < length:
        raise SimulatorFault(
            f"has indices {index.min()} to {index.max()} along an axis of {length} elements"
        )


def _pattern(step: TileStep) -> slice:
    if step.scalar is None or step.scalar not in range(1, ALL + 1):
        raise SimulatorFault(f"names no pattern, but {step.scalar}")
    return pattern(int(step.scalar))


def _one_hot(values: _Values, result: TileBox) -> _Values:
    classes = result.shape[-1]
    if values.size and not 0 <= values.min() <= values.max() < classes:
        raise SimulatorFault(f"has elements {values.min()} to {values.max()} of {classes} classes")
    found: _Values = (values[..., None] == np.arange(classes)).astype(result.format.dtype)
    return found


def _triangle(step: TileStep, values: _Values) -> _Values:
    if len(step.numbers) != 1 or values.ndim < 2 or step.function not in TRIANGLES:
        raise SimulatorFault(f"names no triangle of {values.shape}, but {step.function!r}")
    fmt = step.inputs[0].format
    kept = ones_of_triangle(step.function, values.shape[-2:], step.numbers[0], fmt.dtype)
    spread = np.ascontiguousarray(np.broadcast_to(kept, values.shape))
    return evaluated("mul", (values, spread), fmt)


def _spaced(step: TileStep) -> _Values:
    result = step.outputs[0]
    if len(step.numbers) != 1 or len(result.shape) != 1 or step.step is None:
        raise SimulatorFault("has no place and no distance for its numbers")
    assert step.scalar is not None
    ends = step.scalar, step.step
    return spaced(*ends, step.numbers[0], result.shape[0], result.format)


def _weighed(function: str, inputs: Sequence[_Values], fmt: Format) -> _Values:
    """Elements with weights along the second axis; of two axes 0 has its weight too."""
    values, weights = inputs
    if values.ndim < 2 or weights.shape != values.shape[1:2]:
        raise SimulatorFault(f"has {weights.shape} weights for {values.shape} elements")
    spread = weights.reshape(-1, *(1,) * (values.ndim - 2))
    spread = np.ascontiguousarray(np.broadcast_to(spread, values.shape))
    found = evaluated(function, (values, spread), fmt)
    if values.ndim > 2:
        return found
    return np.where(values == 0, evaluated("mul", (values, spread), fmt), found)


def _quantized(step: TileStep, inputs: Sequence[_Values]) -> _Values:
    """Products with the numbers of the rows, these or sums with further ones in 8 bits."""
    values, *numbers = inputs
    for name, each in zip(("mul", "add"), numbers, strict=False):
        values = evaluated(name, (values, _of_rows(each, values)), FP32)
    return arithmetic.cast(step.conversions, Enclosure(values=values)).values


def _dequantized(step: TileStep, inputs: Sequence[_Values]) -> _Values:
    """Differences from the last numbers of the rows, times the others, in FP32."""
    whole, scales, zeros = inputs
    values = arithmetic.cast(step.conversions, Enclosure(values=whole)).values
    for name, each in (("sub", zeros), ("mul", scales)):
        values = evaluated(name, (values, _of_rows(each, values)), FP32)
    return values


def _of_rows(numbers: _Values, values: _Values) -> _Values:
    if numbers.shape != values.shape[:-1]:
        raise SimulatorFault(f"has {numbers.shape} numbers for the rows of {values.shape}")
    return np.ascontiguousarray(np.broadcast_to(numbers[..., None], values.shape))


def _reduced(function: str, values: _Values, fmt: Format, axis: int, family: str) -> _Values:
    operand, row = Enclosure(values=values), OPERATIONS[function]
    return arithmetic.reduce(row, operand, fmt, axis=axis, trust=EXACT, family=family).values


def _paired(function: str, inputs: Sequence[_Values], fmt: Format) -> _Values:
    """Two tiles joined; where the second is shorter, the rest of the first stays."""
    first, second = inputs
    if any(map(int.__lt__, first.shape, second.shape)):
        raise SimulatorFault(f"its second tile, {second.shape}, is longer than the first")
    box = tuple(map(slice, second.shape))
    joined = first.copy()
    joined[box] = evaluated(function, (np.ascontiguousarray(first[box]), second), fmt)
    return joined


def _expanded(values: _Values, shape: tuple[int, ...]) -> _Values:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise SimulatorFault(f"does not repeat {values.shape} to {shape}") from None


def _repeated(values: _Values, shape: tuple[int, ...]) -> _Values:
    """An operand with the extents of a result; of a column of blocks one element of each counts."""
    if values.shape == shape:
        return values
    return np.ascontiguousarray(_expanded(values[..., :1], shape))


def _scalar(step: TileStep, fmt: Format) -> _Values:
    """The number in a format; device code holds floats in FP32, rounded once."""
    assert step.scalar is not None
    if not isinstance(fmt, FloatFormat):
        try:
            return np.array(int(step.scalar), fmt.dtype)
        except OverflowError:
            raise SimulatorFault(f"{fmt} does not hold the scalar {step.scalar:g}") from None
    with float_environment.quiet():
        return np.array(step.scalar, np.float64).astype(FP32.dtype).astype(fmt.dtype)
