"""One vector core that runs tile operations over its UB, under the guards of the instructions.

A step reads and writes tiles: boxes of elements in a tensor of UB or GM. Every address is checked
against its buffer and its tensor, every byte that is read must have been written since its buffer
was allocated, and no output may lie over an input but where the opcode allows it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.arithmetic import OPERATIONS
from simulator.machine.core import Registers
from simulator.machine.isa import Pipe
from simulator.machine.memory import (
    UB,
    Effect,
    GlobalMemory,
    Lives,
    Region,
    SimulatorFault,
    UbRange,
    VectorMemory,
)
from simulator.machine.tile_opcodes import (
    FROM_GM,
    OVER_FIRST,
    REDUCTIONS,
    TO_GM,
    UNBOUND,
    TileOpcode,
    TileWork,
)
from simulator.machine.tile_steps import TileBox, TileStep, changed_input, step_results
from tiling.chips import Chip
from tiling.grid import Shape
from tiling.ub import round_up

_Values = npt.NDArray[Any]
_COPIED: Final = {Pipe.MTE2: (False, True), Pipe.MTE3: (True, False)}
"""The pipes that copy, with the place of source and target: True in UB."""
_LINE_ELEMS: Final = 8
"""The scratch of a reduction of lines has lines of a multiple of so many elements."""


class TileCore:
    """The UB of one core and the meaning of each tile operation.

    Args:
        number: the task that it runs, by which GM knows who touches what.
        chip: sizes and limits.
        gm: global memory, shared by all tasks.
    """

    def __init__(self, number: int, chip: Chip, gm: GlobalMemory) -> None:
        self._number = number
        self._chip = chip
        self._gm = gm
        self._ub = VectorMemory(chip.ub_bytes)

    def effect(self, step: TileStep) -> Effect:
        """Check the form and the addresses of a step, and return the bytes that it touches.

        Raises:
            SimulatorFault: the hardware does not permit it.
        """
        return step.effect(self._chip, functools.partial(self._effect, step))

    def _effect(self, step: TileStep) -> Effect:
        row = step.opcode
        more = len(step.outputs) - row.results
        if len(step.inputs) != row.inputs or more < 0 or (more and not row.has_scratch):
            raise SimulatorFault(
                f"reads {len(step.inputs)} and writes {len(step.outputs)} tiles; {row.name} reads "
                f"{row.inputs} and writes {row.results}{', and scratch' if row.has_scratch else ''}"
            )
        if row.scalars and step.scalar is None:
            raise SimulatorFault("has no scalar")
        if row.scalars == 2 and step.other_scalar is None:
            raise SimulatorFault("has no second scalar")
        if row.work is TileWork.COMPARE and step.function not in OPERATIONS:
            raise SimulatorFault(f"names no comparison, but {step.function!r}")
        tiles = *step.inputs, *step.outputs
        for tile in tiles:
            self._check(tile)
        if row.work in _ALONG_AXES:
            _check_axes(step)
        if row.work in REDUCTIONS:
            self._check_scratch(step)
        if row.work is TileWork.ALIAS:
            _check_alias(step)
            return Effect()
        for tile in tiles:
            self._check_rows(tile)
        if row.work in FROM_GM:
            _check_from_gm(step)
        elif row.work in TO_GM:
            _check_to_gm(step)
        elif row.pipe in _COPIED:
            _check_copy(step)
        reads = tuple(region for tile in step.inputs for region in tile.regions())
        results, scratch = step.outputs[: row.results], step.outputs[row.results :]
        writes = tuple(map(_whole, (*scratch, *spoiled(step))))
        _check_overlap(step)
        written = tuple(region for tile in results for region in tile.regions())
        if row.is_late:
            return Effect(reads=reads, writes=writes, late_writes=written)
        return Effect(reads=reads, writes=(*written, *writes))

    def apply(
        self, index: int, step: TileStep, effect: Effect, registers: Registers, lives: Lives
    ) -> None:
        """Execute a step whose effect was checked; see `VectorCore.apply`.

        Raises:
            SimulatorFault: it reads garbage, or GM is not this task's to touch.
        """
        if step.opcode.work is TileWork.ALIAS:
            return
        self._ub.begin(index, lives)
        count = step.opcode.results
        results, scratch = step.outputs[:count], step.outputs[count:]
        if 0 in results[0].shape:
            return
        inputs = [self._read(tile, lives) for tile in step.inputs]
        try:
            found = step_results(step, inputs, self._chip.isa)
        except (ValueError, IndexError) as error:  # operands that the operation does not take
            raise SimulatorFault(str(error)) from None
        for values, result in zip(found, results, strict=True):
            if values.shape != result.shape:
                raise SimulatorFault(
                    f"gives {'x'.join(map(str, values.shape))} valid elements, and its output has "
                    f"{'x'.join(map(str, result.shape))}"
                )
            if values.dtype != result.format.dtype:
                raise SimulatorFault(f"gives {values.dtype}, and its output is {result.format}")
        for values, result in zip(found, results, strict=True):
            self._write(result, values)
        for tile in (*scratch, *spoiled(step)):
            region = _whole(tile)
            self._ub.note(region, np.zeros((region.count, region.width), np.bool_))

    def _check(self, tile: TileBox) -> None:
        for axis, (offset, extent, whole) in enumerate(
            zip(tile.offset, tile.shape, tile.tensor_shape, strict=True)
        ):
            if min(offset, extent) < 0 or (offset + extent > whole and 0 not in tile.shape):
                raise SimulatorFault(
                    f"{tile.space}: elements {offset} to {offset + extent} of axis {axis} are "
                    f"outside the {whole} that the tensor has there",
                    (tile.space, tile.first_byte),
                )
        if tile.space != UB:
            size_bytes = self._gm.size_bytes(tile.space.removeprefix("gm."))
            if tile.start_bytes < 0 or tile.stop_bytes > size_bytes:
                raise SimulatorFault(
                    f"{tile.space}: bytes {tile.start_bytes} to {tile.stop_bytes} are outside the "
                    f"{size_bytes} B there are",
                    (tile.space, tile.start_bytes),
                )
            return
        line = self._chip.block_bytes
        at = UB, tile.start_bytes
        if tile.buffer is None:
            raise SimulatorFault(f"{tile} lies in no buffer", at)
        if tile.start_bytes % line:
            raise SimulatorFault(f"{tile} is not aligned to {line} B", at)
        if tile.start_bytes < tile.buffer.offset_bytes or tile.stop_bytes > tile.buffer.stop:
            raise SimulatorFault(
                f"ub+{tile.start_bytes}..{tile.stop_bytes} leaves buffer {tile.buffer.name}, "
                f"ub+{tile.buffer.offset_bytes}..{tile.buffer.stop}",
                at,
            )
        if not 0 <= tile.buffer.offset_bytes <= tile.buffer.stop <= self._chip.ub_bytes:
            raise SimulatorFault(
                f"buffer {tile.buffer.name}, ub+{tile.buffer.offset_bytes}..{tile.buffer.stop}, "
                f"does not fit the {self._chip.ub_bytes} B of UB",
                at,
            )

    def _check_rows(self, tile: TileBox) -> None:
        line = self._chip.block_bytes
        if tile.space != UB or len(tile.shape) < 2 or tile.shape[-2] < 2:
            return
        if tile.strides_bytes[-2] % line:
            at = UB, tile.start_bytes
            raise SimulatorFault(f"rows of {tile} are not aligned to {line} B", at)

    def _check_scratch(self, step: TileStep) -> None:
        """Refuse scratch of a reduction that has fewer bytes than its input needs there."""
        source = step.inputs[0]
        axis = step.axis % len(source.shape)
        needed = reduction_scratch(step.opcode, source.shape, axis, source.elem_bytes, self._chip)
        if needed is None or 0 in source.shape:
            return
        needed_bytes = math.prod(needed) * source.elem_bytes
        held_bytes = sum(tile.stop_bytes - tile.start_bytes for tile in step.outputs[1:])
        if held_bytes < needed_bytes:
            raise SimulatorFault(
                f"{step.opcode.name} of {source} works in {needed_bytes} B of scratch memory, and "
                f"has {held_bytes} B"
            )

    def _read(self, tile: TileBox, lives: Lives) -> _Values:
        """A copy of a tile's elements; in GM, of those that this task may read."""
        if tile.buffer is not None:
            life = tile.buffer.name, lives[tile.buffer]
            for region in tile.regions():
                self._ub.check_written(region, life)
            return tile.view(self._ub.bytes).copy()
        for region in tile.regions():
            self._gm.read(region, self._number)
        return tile.view(self._gm.tensors[tile.space.removeprefix("gm.")]).copy()

    def _write(self, tile: TileBox, values: _Values) -> None:
        if tile.buffer is not None:
            tile.view(self._ub.bytes)[...] = values
            for region in tile.regions():
                self._ub.note(region)
            return
        rows = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        start = 0
        for region in tile.regions():
            stop = start + region.count * region.width
            self._gm.write(
                region, rows[start:stop].reshape(region.count, region.width), self._number
            )
            start = stop


def reduction_scratch(
    row: TileOpcode, tile: Shape, axis: int, elem_bytes: int, chip: Chip
) -> Shape | None:
    """The scratch of a reduction as upstream's compiler makes it, in elements of its input.

    Documented by upstream pypto at tag r0.2.0, framework/src (interface/operation/vector/
    reduction.cpp).

    Args:
        row: a reduction, of the last axis or of lines.
        tile: the extents that it reads.
        axis: the axis, 0 or more.
        elem_bytes: of an element.
        chip: for its block and its repeat.

    Returns:
        Its extents; None without scratch.
    """
    if not row.has_scratch:
        return None
    if row.work is TileWork.REDUCE_LINES:
        return (tile[axis] + 1) // 2, round_up(tile[-1], _LINE_ELEMS)
    if row.function == "prod":
        return tile
    row_bytes, repeat_elems = tile[-1] * elem_bytes, chip.repeat_bytes // elem_bytes
    if row_bytes <= chip.repeat_bytes:
        rows, elems = 1, chip.block_bytes // elem_bytes
    else:
        pairs = max(1, row_bytes // chip.repeat_bytes // 2)
        rows, elems = (1, *tile)[-2], pairs * repeat_elems
    return (rows, elems)[-len(tile) :]


def _whole(tile: TileBox) -> Region:
    """The bytes of the tensor that holds a tile."""
    return Region(
        space=tile.space, start=tile.start_bytes, width=tile.stop_bytes - tile.start_bytes
    )


_BY_INDEX: Final = frozenset((TileWork.GATHER, TileWork.SCATTER))
"""Works whose second input names places along an axis."""
_ALONG_AXES: Final = (
    REDUCTIONS
    | _BY_INDEX
    | {TileWork.ACCUMULATE, TileWork.EXTREME, TileWork.ADD_AT, TileWork.EXPAND, TileWork.TRANSPOSE}
    | {TileWork.SELECT}
)
"""Works that go along axes of their first input."""


def spoiled(step: TileStep) -> tuple[TileBox, ...]:
    """The inputs that are other numbers afterwards, and no output.

    Those of `changed_input`, and pairs that are merged (sort.h:200).
    """
    work = step.opcode.work
    if work is TileWork.MERGE and step.inputs[0].first_byte != step.outputs[0].first_byte:
        return step.inputs
    place = changed_input(work, step.scalar, step.function)
    return () if place is None else (step.inputs[place],)


def _check_copy(step: TileStep) -> None:
    (source,), (target,) = step.inputs, step.outputs
    if (source.space == UB, target.space == UB) != _COPIED[step.pipe]:
        raise SimulatorFault(f"copies from {source.space} to {target.space}")
    if source.format is not target.format:
        raise SimulatorFault(f"copies {source.format} to {target.format}")


def _check_from_gm(step: TileStep) -> None:
    for tile in step.inputs:
        if tile.space == UB:
            raise SimulatorFault(f"reads {tile}, and {step.opcode.name} reads GM")
    if step.outputs[0].space != UB:
        raise SimulatorFault(f"writes {step.outputs[0]}, and {step.opcode.name} writes UB")


def _check_to_gm(step: TileStep) -> None:
    """Refuse any but one input in GM, in whose place the result is."""
    (result,) = step.outputs
    in_gm = [tile for tile in step.inputs if tile.space != UB]
    if result.space == UB or in_gm != [result]:
        raise SimulatorFault(
            f"writes {result} over {', '.join(map(str, in_gm)) or 'nothing in GM'}, which is no "
            "place in GM that it reads too"
        )


def _check_axes(step: TileStep) -> None:
    """Refuse axes that the input lacks, and another than the last where the instruction has one."""
    row, tile = step.opcode, step.inputs[0]
    dims = len(tile.shape)
    axes = step.axes if row.work is TileWork.TRANSPOSE else (step.axis,)
    is_one_missing = any(not -dims <= each < dims for each in axes)
    is_order = len(axes) == 2 or sorted(axes) == [*range(dims)]
    if is_one_missing or (row.work is TileWork.TRANSPOSE and not is_order):
        raise SimulatorFault(f"names {list(axes)} as axes of {tile}", (tile.space, tile.first_byte))
    if row.work is TileWork.REDUCE and axes[0] not in (-1, dims - 1):
        raise SimulatorFault(f"reduces the last of {dims} axes, not axis {axes[0]}")
    if row.work is TileWork.EXPAND:
        shape = step.outputs[0].shape
        pairs = enumerate(itertools.zip_longest(tile.shape, shape))
        differ = {axis for axis, (one, many) in pairs if one != many}
        if differ - {axes[0] % dims} and 0 not in shape:
            raise SimulatorFault(f"repeats axis {axes[0]} of {tile.shape}, which gives no {shape}")
    if row.work in _BY_INDEX:
        index = step.inputs[1].shape
        others = set(range(dims)) - {axes[0] % dims}
        if len(index) != dims or any(index[each] > tile.shape[each] for each in others):
            does = "gathers" if row.work is TileWork.GATHER else "scatters"
            raise SimulatorFault(f"{does} {index} elements along axis {axes[0]} of {tile.shape}")
    if row.work is TileWork.ADD_AT:
        terms, index = (each.shape for each in step.inputs[1:])
        axis = axes[0] % dims
        if terms != (*tile.shape[:axis], *index[:1], *tile.shape[axis + 1 :]) or len(index) != 1:
            raise SimulatorFault(
                f"adds {terms} elements at {index} places along axis {axes[0]} of {tile.shape}"
            )


def _check_alias(step: TileStep) -> None:
    source, target = step.inputs[0], step.outputs[0]
    if source.space != target.space or source.buffer != target.buffer:
        raise SimulatorFault(f"is no view: {source} and {target} are in different places")


def taken_otherwise(program: Sequence[object]) -> Iterator[tuple[int, str]]:
    """Steps with a result of any extents, of which all readers take other extents.

    As a view of a tile, whose source may hold the elements beyond, and a tile that is filled; these
    elements show in no result. Each is given by its place among the instructions, with the reason,
    the last first.
    """
    taken: dict[object, set[Shape]] = {}
    for place, step in reversed([*enumerate(program)]):
        if not isinstance(step, TileStep):
            continue
        for tile in step.outputs:
            found = taken.get(_place(tile), set())
            if step.opcode.work in UNBOUND and found and tile.shape not in found:
                others = " and ".join(str(list(shape)) for shape in sorted(found))
                yield place, f"gives {list(tile.shape)}, and what reads it takes {others}"
            if step.opcode.work is not TileWork.ALIAS:
                taken.pop(_place(tile), None)
        for tile in step.inputs:
            taken.setdefault(_place(tile), set()).add(tile.shape)


def _place(tile: TileBox) -> object:
    return tile.space, tile.first_byte, tile.tensor_shape, tile.format


def _check_overlap(step: TileStep) -> None:
    """Refuse an output over an input, but in place, and outputs over each other.

    A scatter, and an addition by index, write elements of their first input, while they read the
    others one by one.
    """
    result, *scratch = step.outputs
    is_scatter = step.opcode.work in OVER_FIRST
    for place, tile in enumerate(step.inputs):
        alike = (result.first_byte, result.strides_bytes, result.elem_bytes) == (
            tile.first_byte,
            tile.strides_bytes,
            tile.elem_bytes,
        )
        is_over = alike and result.space == tile.space
        if is_scatter and not (place or is_over):
            raise SimulatorFault(
                f"its output, {result}, does not lie over its first input, {tile}, of which it "
                "moves no element",
                (result.space, result.first_byte),
            )
        if step.opcode.in_place and is_over and not (is_scatter and place):
            continue
        _refuse(tile.regions(), result.regions(), "its output lies over its input")
    for tile in scratch:  # and a second result, which has no place of an input's either
        for other in (*step.inputs, result):
            _refuse(other.regions(), (_whole(tile),), "its scratch memory lies over an operand")


def _refuse(first: Sequence[Region], second: Sequence[Region], what: str) -> None:
    for a, b in itertools.product(first, second):
        if a.touches(b):
            raise SimulatorFault(f"{what}: {b} and {a}", a.shared(b))


def overlapping(
    buffers: Sequence[tuple[UbRange, int, int]],
) -> Iterator[tuple[UbRange, UbRange, int]]:
    """Finds buffers that share bytes while both are alive.

    Args:
        buffers: each with its first and its last operation, in the order of the program.

    Yields:
        Two buffers, and the first operation in which both are alive.
    """
    for (one, first, last), (other, begin, end) in itertools.combinations(buffers, 2):
        both = max(first, begin)
        if (
            both <= min(last, end)
            and one.offset_bytes < other.stop
            and (other.offset_bytes < one.stop)
        ):
            yield one, other, both
