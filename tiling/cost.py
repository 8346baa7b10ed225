"""Computes the cycles of a cast's instructions from a named set of figures.

None of these figures was measured by this project, and nothing computed from them is the time of a
device. A set says where each of its figures comes from; whoever shows a result names the set.
"""

from __future__ import annotations

import enum

from tiling.cost_file import read_cost_set
from tiling.cost_sets import (
    COST_SETS,
    DEFAULT_COST_SET,
    NOT_MEASURED,
    STARTUP_RULE,
    CostParameters,
    cost_set,
    figure_names,
)

__all__ = [
    "COST_SETS",
    "DEFAULT_COST_SET",
    "NOT_MEASURED",
    "STARTUP_RULE",
    "CostParameters",
    "Direction",
    "bitwise_cycles",
    "cast_cycles",
    "cost_set",
    "dma_cycles",
    "dma_startup_cycles",
    "figure_names",
    "gm_share_cycles",
    "read_cost_set",
]


class Direction(enum.Enum):
    """The direction of a copy."""

    READ = "GM to UB"
    WRITE = "UB to GM"


def dma_startup_cycles(parameters: CostParameters, direction: Direction) -> float:
    """Cycles from the start of a copy to its first byte."""
    if direction is Direction.READ:
        return parameters.read_startup_cycles
    return parameters.write_startup_cycles


def gm_share_cycles(parameters: CostParameters, size_bytes: float, busy_cores: int) -> float:
    """Cycles that `size_bytes` take of one core's share of the chip's GM bandwidth.

    Raises:
        ValueError: a negative size, or no busy core.
    """
    if size_bytes < 0:
        raise ValueError(f"a copy has 0 bytes or more, not {size_bytes}")
    if busy_cores < 1:
        raise ValueError(f"a copy runs on at least 1 busy core, not {busy_cores}")
    return size_bytes * busy_cores * parameters.clock_hz / parameters.gm_bytes_per_second


def dma_cycles(
    parameters: CostParameters, direction: Direction, size_bytes: float, busy_cores: int = 1
) -> float:
    """Cycles of one copy instruction that has its core's share of GM to itself.

    Args:
        parameters: the figures.
        direction: which way.
        size_bytes: bytes it moves, without padding, with what they lose off the lines of GM; a
            copy of none does nothing.
        busy_cores: cores that use GM at the same time.

    Raises:
        ValueError: a negative size, or no busy core.
    """
    shared = gm_share_cycles(parameters, size_bytes, busy_cores)
    if size_bytes == 0:
        return 0.0
    is_read = direction is Direction.READ
    rate = parameters.read_bytes_per_cycle if is_read else parameters.write_bytes_per_cycle
    return dma_startup_cycles(parameters, direction) + max(size_bytes / rate, shared)


def cast_cycles(parameters: CostParameters, repeats: int, *, starts_stream: bool) -> float:
    """Cycles of one Cast; one of no repeats does nothing.

    Args:
        parameters: the figures.
        repeats: stretches of 256 B of the wider type, the last one whole or not.
        starts_stream: no vector instruction came before it since the last flag or barrier.

    Raises:
        ValueError: negative repeats.
    """
    return _vector_cycles(parameters, parameters.cast_cycles_per_repeat, repeats, starts_stream)


def bitwise_cycles(parameters: CostParameters, repeats: int, *, starts_stream: bool) -> float:
    """Cycles of one And or Duplicate, as for `cast_cycles`."""
    return _vector_cycles(parameters, parameters.bitwise_cycles_per_repeat, repeats, starts_stream)


def _vector_cycles(
    parameters: CostParameters, per_repeat: float, repeats: int, starts_stream: bool
) -> float:
    if repeats < 0:
        raise ValueError(f"a vector instruction has 0 repeats or more, not {repeats}")
    if repeats == 0:
        return 0.0
    pays = starts_stream or not parameters.is_startup_per_stream
    return per_repeat * repeats + (parameters.vector_startup_cycles if pays else 0.0)
