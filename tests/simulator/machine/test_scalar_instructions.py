"""Instructions with a scalar on the machine: what they may touch, and what goes along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.programs.listings import (
    copy_in,
    copy_out,
    execute_fenced,
    fault,
    memory,
    ub,
    x_at,
    y_at,
)

from simulator.machine.cast_table import CTRL_FLOAT
from simulator.machine.isa import ScalarOp, SetCtrl, VectorScalar
from simulator.numbers import formats as f


def maxs(**changes: Any) -> VectorScalar:
    fields = {"op": ScalarOp.MAXS, "dst": ub(), "src": ub(), "format": f.INT16, "scalar": 0}
    return VectorScalar(**{**fields, "count": 16, **changes})


def test_elements_are_combined_with_the_number() -> None:
    values = np.arange(-8, 8, dtype=np.int16)
    for target in (ub(), ub(64)):
        y = execute_fenced(
            copy_in(ub(), x_at(), length=32),
            maxs(dst=target),
            copy_out(y_at(), target, length=32),
            gm=memory(x=values.view(np.uint8), y_bytes=32),
        )
        assert y.view(np.int16).tolist() == [0] * 9 + list(range(1, 8))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": f.INT64, "count": 4}, "Maxs has FP32, FP16, INT32, INT16 here, not INT64"),
        ({"op": ScalarOp.MULS}, "Muls has FP32, FP16 here, not INT16"),
        (
            {"op": ScalarOp.SHIFT_LEFT, "format": f.UINT16, "scalar": 17},
            "ShiftLeft moves by 0 to 16 bits, not 17",
        ),
        ({"dst": ub(8)}, "not aligned to 32 B"),
        ({"src": ub(32), "count": 32}, "overlap in part"),
        ({"count": -1}, "count -1"),
    ],
)
def test_what_the_hardware_does_not_permit_is_a_fault(changes: dict[str, Any], text: str) -> None:
    assert text in fault(copy_in(ub(), x_at(), length=128), maxs(**changes))


def test_saturation_mode_is_not_simulated() -> None:
    text = fault(copy_in(ub(), x_at(), length=32), SetCtrl(bit=CTRL_FLOAT, value=False), maxs())
    assert "Maxs is simulated with CTRL[48] = 1 alone" in text


def test_garbage_stays_garbage() -> None:
    text = fault(
        copy_in(ub(), x_at(), length=32), maxs(count=32), copy_out(y_at(), ub(), length=64)
    )
    assert "whose byte 32 was written with garbage" in text
