"""Tile opcodes: the operations of a fused kernel's tile program, one row each.

One tile operation is one step of the machine: the instructions that it has inside are not executed.
Its values are those of the row's function in `simulator.arithmetic`, of a reduction in the order of
its own instruction. Sources: upstream pypto at tag r0.2.0, framework/src/interface/operation:
opcode.cpp (pipes, `excludeBufferReuse`), vector/ (operands); pto-isa a2a3/TPart*.hpp.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from simulator.machine.isa import Pipe


class TileWork(enum.Enum):
    """The kinds of work that a tile operation does on its operands."""

    COPY = "the valid elements move between GM and UB"
    ELEMENTS = "a function of the elements, and of the scalar if there is one"
    PAIR = "a function of two tiles; where the second is shorter, the rest of the first stays"
    REDUCE = "a reduction of the last axis"
    COMPARE = "a comparison of the elements, which the operation names"
    REDUCE_LINES = "a reduction of another axis"
    CAST = "conversions, element by element"
    EXPAND = "an axis of one element is repeated"
    FILL = "the scalar, everywhere"
    ALIAS = "another view of the same bytes; nothing moves"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOpcode:
    """One tile opcode.

    Attributes:
        name: upstream's.
        work: what it does.
        pipe: the queue that it runs in.
        function: the row of `OPERATIONS` that gives its values; "" where elements are only moved
            or converted.
        inputs: how many tiles it reads.
        has_scalar: a number is an operand too.
        has_scratch: the outputs behind the first are scratch memory, garbage afterwards.
        in_place: an output may be written over an input.
    """

    name: str
    work: TileWork
    pipe: Pipe = Pipe.V
    function: str = ""
    inputs: int = 1
    has_scalar: bool = False
    has_scratch: bool = False
    in_place: bool = False


_elements = partial(TileOpcode, work=TileWork.ELEMENTS, in_place=True)
_binary = partial(_elements, inputs=2)
_scalar = partial(_elements, has_scalar=True)
_reduce = partial(TileOpcode, work=TileWork.REDUCE, has_scratch=True)
_lines = partial(_reduce, work=TileWork.REDUCE_LINES, in_place=True)
_compare = partial(TileOpcode, work=TileWork.COMPARE, has_scratch=True, in_place=True)
_pair = partial(TileOpcode, work=TileWork.PAIR, inputs=2)

# fmt: off
TILE_OPCODES: Final[Mapping[str, TileOpcode]] = MappingProxyType({row.name: row for row in (
    TileOpcode(name="COPY_IN", work=TileWork.COPY, pipe=Pipe.MTE2),
    TileOpcode(name="COPY_OUT", work=TileWork.COPY, pipe=Pipe.MTE3),
    TileOpcode(name="CAST", work=TileWork.CAST, in_place=True),
    TileOpcode(name="EXPAND", work=TileWork.EXPAND, in_place=True),
    TileOpcode(name="VEC_DUP", work=TileWork.FILL, inputs=0, has_scalar=True),
    TileOpcode(name="VIEW", work=TileWork.ALIAS, in_place=True),
    TileOpcode(name="RESHAPE", work=TileWork.ALIAS, in_place=True),
    TileOpcode(name="ASSEMBLE", work=TileWork.ALIAS, in_place=True),
    _binary(name="ADD", function="add"),
    _binary(name="SUB", function="sub"),
    _binary(name="MUL", function="mul"),
    _binary(name="DIV", function="div"),
    _binary(name="MAXIMUM", function="maximum"),
    _binary(name="MINIMUM", function="minimum"),
    _binary(name="LOGICALAND", function="logical_and", has_scratch=True),
    _scalar(name="ADDS", function="add"),
    _scalar(name="SUBS", function="sub"),
    _scalar(name="MULS", function="mul"),
    _scalar(name="DIVS", function="div", in_place=False),
    _scalar(name="MAXS", function="maximum"),
    _scalar(name="MINS", function="minimum"),
    _elements(name="ABS", function="abs"),
    _elements(name="EXP", function="exp"),
    _elements(name="LN", function="log"),
    _elements(name="SQRT", function="sqrt"),
    _elements(name="RELU", function="relu"),
    _elements(name="RECIPROCAL", function="reciprocal", in_place=False),
    _elements(name="ROUND", function="round", has_scratch=True, in_place=False),
    _elements(name="CEIL", function="ceil"),
    _elements(name="FLOOR", function="floor"),
    _elements(name="TRUNC", function="trunc"),
    _elements(name="LOGICALNOT", function="logical_not", has_scratch=True),
    _compare(name="CMP", inputs=2),
    _compare(name="CMPS", has_scalar=True),
    _elements(name="WHERE_TT", function="where", inputs=3, has_scratch=True),
    _reduce(name="ROWSUM_SINGLE", function="sum"),
    _reduce(name="ROWMAX_SINGLE", function="amax"),
    _reduce(name="ROWMIN_SINGLE", function="amin"),
    _lines(name="ROWSUMLINE", function="sum"),
    _lines(name="ROWMAXLINE", function="amax", has_scratch=False),
    _lines(name="ROWMINLINE", function="amin", has_scratch=False),
    _pair(name="PAIRSUM", function="add"),
    _pair(name="PAIRMAX", function="maximum"),
    _pair(name="PAIRMIN", function="minimum"),
)})
# fmt: on
