"""Numbers that no instruction has: a SimulatorFault, never an error of the machine's own code."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest
from support.programs.listings import (
    cast,
    copy_in,
    copy_out,
    execute,
    fenced,
    memory,
    ub,
    x_at,
    y_at,
)

from simulator.machine.isa import (
    And,
    AndRepeat,
    CastRepeat,
    DataCopy,
    Duplicate,
    GmAddress,
    HardEvent,
    Instruction,
    ScalarOp,
    SetCtrl,
    SetDeqScale,
    SetFlag,
    UbAddress,
    VectorScalar,
    WaitFlag,
)
from simulator.machine.memory import SimulatorFault
from simulator.numbers import formats as f
from simulator.numbers.rounding import RoundMode

REPEATED = CastRepeat(
    dst=ub(1024), src=ub(), dst_format=f.FP16, src_format=f.FP32, mode=RoundMode.RINT, mask=8,
    repeat_times=1,
)  # fmt: skip
PADDED = dataclasses.replace(
    copy_in(ub(), x_at(), elem=2), is_pad=True, left_padding=1, right_padding=1
)
INSTRUCTIONS: tuple[Instruction, ...] = (
    PADDED,
    copy_out(y_at(), ub(), elem=4),
    DataCopy(dst=ub(), src=x_at(), size_bytes=64, elem_bytes=2),
    DataCopy(dst=y_at(), src=ub(), size_bytes=64, elem_bytes=8),
    cast(f.FP16, f.INT4, None, count=4),
    REPEATED,
    dataclasses.replace(REPEATED, mask=(3, 0), src_format=f.FP16, dst_format=f.INT4),
    Duplicate(dst=ub(), value=1, count=4),
    And(dst=ub(64), src0=ub(), src1=ub(), count=16),
    AndRepeat(dst=ub(512), src0=ub(), src1=ub(), mask=16, repeat_times=1),
    *(
        VectorScalar(op=op, dst=ub(64), src=ub(), format=fmt, scalar=1, count=8)
        for op, fmt in ((ScalarOp.MAXS, f.INT16), (ScalarOp.MULS, f.FP16))
    ),
    VectorScalar(op=ScalarOp.SHIFT_LEFT, dst=ub(64), src=ub(), format=f.UINT16, scalar=1, count=8),
    SetCtrl(bit=48, value=True),
    SetDeqScale(scale=1.0),
    SetFlag(event=HardEvent.MTE2_V, event_id=0),
    WaitFlag(event=HardEvent.MTE2_V, event_id=0),
)
WHOLE = (
    0,
    -1,
    1,
    3,
    7,
    33,
    255,
    256,
    65535,
    65536,
    70000,
    -(1 << 15) - 1,
    1 << 31,
    -(1 << 40),
    1 << 64,
)
NUMBERS = (*WHOLE, 0.5, math.nan, math.inf, -math.inf, 1e39)


def values_for(value: Any, name: str) -> list[Any]:
    if isinstance(value, bool):
        return []
    if isinstance(value, (UbAddress, GmAddress)):
        return [dataclasses.replace(value, offset_bytes=number) for number in WHOLE]
    if name == "mask":
        words = [(one, other) for one in WHOLE for other in (0, 1, -1, 1 << 64)]
        return [*WHOLE, *words]
    if name in ("scalar", "scale"):
        return list(NUMBERS)
    return list(WHOLE) if isinstance(value, int) else []


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda each: str(each)[:24])
def test_every_number_is_carried_out_or_refused(instruction: Instruction) -> None:
    refused = []
    for field in dataclasses.fields(instruction):
        for value in values_for(getattr(instruction, field.name), field.name):
            other = dataclasses.replace(instruction, **{field.name: value})
            gm = memory(x=np.zeros(256, np.uint8))
            try:
                execute(*fenced(copy_in(ub(), x_at(), length=256), other), gm=gm)
            except SimulatorFault as fault:
                refused.append(str(fault))
    assert all(re.match(r"core 0, instruction \d \(", text) for text in refused)
    assert refused or isinstance(instruction, SetDeqScale)


@pytest.mark.parametrize("size", [0, 3, -1, 16])
def test_an_element_has_1_2_4_or_8_bytes(size: int) -> None:
    for one in (
        PADDED,
        copy_out(y_at(), ub()),
        *(i for i in INSTRUCTIONS if isinstance(i, DataCopy)),
    ):
        with pytest.raises(SimulatorFault, match=f"an element has 1, 2, 4 or 8 B, not {size}"):
            execute(dataclasses.replace(one, elem_bytes=size))
