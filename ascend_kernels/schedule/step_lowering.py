"""One operation of a schedule as a step of the machine, or the reason for which it is none."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ascend_kernels.matrix import MATRIX, resolve
from ascend_kernels.program import conversions
from ascend_kernels.schedule.parts import BETWEEN_CORES, Leaf, TileOperation
from simulator.machine.isa import HardEvent, Pipe, PipeBarrier, SetFlag, WaitFlag
from simulator.machine.tile_opcodes import NO_FORMAT, NO_ROW, NUMBERED, TILE_OPCODES, TileWork
from simulator.machine.tile_steps import ROUNDED, TileBox, TileStep
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import BF16, FP16, FP32, INT8, INT16, INT32, Format
from simulator.numbers.rounding import RoundMode

_EVENTS: Final = {(event.setter, event.waiter): event for event in HardEvent}
_BETWEEN: Final[Mapping[tuple[TileWork, Format], tuple[Format, ...]]] = MappingProxyType(
    {
        (TileWork.QUANTIZE, FP32): (INT32, FP16),
        (TileWork.DEQUANTIZE, INT8): (FP16,),
        (TileWork.DEQUANTIZE, INT16): (),
    }
)
"""By work and format of the elements, the formats through which they come to the other one.

Each cast rounds to the nearest, the last one clamps (pto-isa a2a3/TQuant.hpp, TDequant.hpp).
"""


class NotExecutedError(ValueError):
    """A part of a schedule cannot be executed; the text gives the reason."""


def not_executed(leaf: Leaf, isa: str) -> str:
    """The reason for which a leaf cannot be executed; "" where it can."""
    if leaf.core == "AIC":
        return f"{leaf.name} runs on the cube"
    if any(each.opcode in BETWEEN_CORES for each in leaf.operations):
        return f"{leaf.name} waits for the cube, or the cube for it"
    missing = dict.fromkeys(
        each.opcode
        for each in leaf.operations
        if each.flag is None and each.opcode not in TILE_OPCODES
    )
    if missing:
        needed = dict.fromkeys(NO_ROW[name] for name in missing if name in NO_ROW)
        reasons = f" (it needs {'; '.join(needed)})" if needed else ""
        return f"{leaf.name} has {', '.join(missing)}, without a row{reasons}"
    for each in leaf.operations:
        row = TILE_OPCODES.get(each.opcode)
        for fmt in (x.format for x in each.inputs[:1]):
            if lacked := NO_FORMAT.get((each.opcode, fmt), ""):
                return f"{leaf.name} has {each.opcode} of {fmt} (it needs {lacked})"
        if row is not None and not row.scalars and each.scalar not in (None, 1):
            return f"{leaf.name} has {each.opcode} with the scalar {each.scalar:g}"
        if row is not None and row.scalars == 2 and each.other_scalar is None:
            return f"{leaf.name} has {each.opcode} with two numbers, which the dump lacks"
        if row is not None and row.scalars and each.scalar is None:
            return f"{leaf.name} has {each.opcode} with a number that the dump's JSON cannot hold"
        if row is not None and row.work is TileWork.SCATTER and each.function:
            return f"{leaf.name} has {each.opcode} with {each.function}, which joins elements"
        if row is not None and len(each.numbers) != (row.work in NUMBERED):
            return f"{leaf.name} has {each.opcode} with numbers {each.numbers} of its task"
        if each.opcode == "CAST" and each.inputs and each.outputs:
            pair = each.inputs[0].format, each.outputs[0].format
            if pair not in MATRIX[isa]:
                return f"{leaf.name} has CAST {pair[0]} -> {pair[1]}, which {isa} lacks"
    in_gm = dict.fromkeys(
        each.opcode
        for each in leaf.operations
        for operand in (*each.inputs, *each.outputs)
        if operand.buffer is None and operand.access is None
    )
    return f"{leaf.name} has {', '.join(in_gm)} between tensors in GM" if in_gm else ""


def sync_of(operation: TileOperation) -> SetFlag | WaitFlag | PipeBarrier:
    flag = operation.flag
    assert flag is not None
    try:
        setter, waiter = Pipe[flag.setter], Pipe[flag.waiter]
        if operation.opcode.startswith("BAR."):
            return PipeBarrier(of=setter)
        event = _EVENTS[setter, waiter]
    except KeyError:
        raise NotExecutedError(
            f"{operation.opcode} from {flag.setter} to {flag.waiter} is no event of a vector core"
        ) from None
    kind = SetFlag if operation.opcode == "SYNC_SRC" else WaitFlag
    return kind(event=event, event_id=flag.event_id)


def step_of(
    operation: TileOperation,
    isa: str,
    inputs: tuple[TileBox, ...],
    outputs: tuple[TileBox, ...],
) -> TileStep:
    row = TILE_OPCODES[operation.opcode]
    chain: tuple[Conversion, ...] = ()
    if row.work is TileWork.CAST and inputs:
        pair = inputs[0].format, outputs[0].format
        chain = conversions(resolve(isa, *pair, operation.mode, saturate=operation.saturate))
    between = _BETWEEN.get((row.work, inputs[0].format)) if inputs else None
    if between is not None:
        way = inputs[0].format, *between, outputs[0].format
        chain = tuple(
            each
            for pair in itertools.pairwise(way)
            for each in conversions(resolve(isa, *pair, RoundMode.RINT, saturate=True))
        )
    if operation.function == ROUNDED:
        pairs = (FP32, BF16), (BF16, FP32)
        chain = tuple(each for pair in pairs for each in conversions(resolve(isa, *pair)))
    return TileStep(
        opcode=row,
        inputs=inputs,
        outputs=outputs,
        scalar=operation.scalar if row.scalars else None,
        other_scalar=operation.other_scalar if row.scalars == 2 else None,
        scalar_first=operation.scalar_first,
        step=operation.step,
        function=operation.function,
        axis=operation.axis,
        axes=operation.axes,
        conversions=chain,
    )
