"""The work of the vector unit on a tile, as far as its cost goes: steps, widths, streams."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tiling.ub import ElementBits


class VectorKind(enum.Enum):
    """Instructions that differ in cycles per repeat."""

    CAST = "cast"
    BITWISE = "bitwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStep:
    """One pass of the vector unit over a part of a tile in UB.

    Attributes:
        kind: of instruction.
        bits: width of the wider type, of which a repeat covers 256 B.
        goes_by_rows: takes several instructions where input and output rows lie differently far
            apart in elements; otherwise one spans all rows with their padding.
        is_one_block: covers 32 B, whatever the part; otherwise all of its rows.
        takes_rest: whole repeats are one instruction, and what is left is another.
        pays_startup: every instruction pays the start-up, wherever it stands in a stream.
        follows_barrier: a PipeBarrier comes before it and ends the stream.
    """

    kind: VectorKind
    bits: int
    goes_by_rows: bool = False
    is_one_block: bool = False
    takes_rest: bool = False
    pays_startup: bool = False
    follows_barrier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWork:
    """The vector steps that are executed on every part of a tile between its copies.

    Attributes:
        steps: in order.
        part_barriers: PipeBarriers between one part and the next.
        part_scalars: registers set within a part.
        set_up_scalars: registers set before the first.
    """

    steps: tuple[VectorStep, ...]
    part_barriers: int = 0
    part_scalars: int = 0
    set_up_scalars: int = 2


def one_cast(bits: ElementBits) -> VectorWork:
    """The work of a cast that is one Cast instruction from the input to the output."""
    wider = max(bits.src, bits.dst)
    step = VectorStep(kind=VectorKind.CAST, bits=wider, goes_by_rows=True)
    return VectorWork(steps=(step,))
