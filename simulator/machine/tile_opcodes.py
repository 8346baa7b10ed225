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
    PAD = "the elements, and the scalar in the rest"
    TRANSPOSE = "two axes are exchanged"
    ACCUMULATE = "the sums of all elements up to each along an axis"
    GATHER = "elements along an axis, read by indices"
    ALIAS = "another view of the same bytes; nothing moves"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOpcode:
    """One tile opcode.

    Attributes:
        name: upstream's.
        work: what it does.
        pipe: the queue that it runs in.
        function: what gives its values, for `tile_functions.evaluated`; "" where elements are only
            moved or converted.
        inputs: how many tiles it reads.
        has_scalar: a number is an operand too.
        scalar_at: its place among the operands; None: the last one, unless the operation says that
            it is the first.
        has_scratch: the outputs behind the first are scratch memory, garbage afterwards.
        in_place: an output may be written over an input.
    """

    name: str
    work: TileWork
    pipe: Pipe = Pipe.V
    function: str = ""
    inputs: int = 1
    has_scalar: bool = False
    scalar_at: int | None = None
    has_scratch: bool = False
    in_place: bool = False


_elements = partial(TileOpcode, work=TileWork.ELEMENTS, in_place=True)
_binary = partial(_elements, inputs=2)
_scalar = partial(_elements, has_scalar=True)
_reduce = partial(TileOpcode, work=TileWork.REDUCE, has_scratch=True)
_lines = partial(_reduce, work=TileWork.REDUCE_LINES, in_place=True)
_compare = partial(TileOpcode, work=TileWork.COMPARE, has_scratch=True, in_place=True)
_pair = partial(TileOpcode, work=TileWork.PAIR, inputs=2)
_transpose = partial(TileOpcode, work=TileWork.TRANSPOSE)

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
    _elements(name="ROUND", function="integral", has_scratch=True, in_place=False),
    _elements(name="CEIL", function="ceil"),
    _elements(name="FLOOR", function="floor"),
    _elements(name="TRUNC", function="trunc"),
    _elements(name="LOGICALNOT", function="logical_not", has_scratch=True),
    _elements(name="EXP2", function="exp2", has_scratch=True),
    _elements(name="EXPM1", function="expm1", has_scratch=True),
    _elements(name="SIGN", function="sign", has_scratch=True),
    _binary(name="COPYSIGN", function="copysign", has_scratch=True),
    _elements(name="BITWISENOT", function="bitwise_not"),
    _binary(name="BITWISEAND", function="bitwise_and"),
    _binary(name="BITWISEOR", function="bitwise_or"),
    _binary(name="BITWISEXOR", function="bitwise_xor", has_scratch=True),
    _scalar(name="BITWISEANDS", function="bitwise_and", in_place=False),
    _scalar(name="BITWISEORS", function="bitwise_or", in_place=False),
    _scalar(name="BITWISEXORS", function="bitwise_xor", has_scratch=True, in_place=False),
    _binary(name="BITWISELEFTSHIFT", function="bitwise_left_shift", has_scratch=True,
            in_place=False),
    _binary(name="BITWISERIGHTSHIFT", function="bitwise_right_shift", has_scratch=True,
            in_place=False),
    _scalar(name="BITWISELEFTSHIFTS", function="bitwise_left_shift"),
    _scalar(name="BITWISERIGHTSHIFTS", function="bitwise_right_shift"),
    _scalar(name="SBITWISELEFTSHIFT", function="bitwise_left_shift", scalar_at=0,
            has_scratch=True, in_place=False),
    _scalar(name="SBITWISERIGHTSHIFT", function="bitwise_right_shift", scalar_at=0,
            has_scratch=True, in_place=False),
    _compare(name="CMP", inputs=2),
    _compare(name="CMPS", has_scalar=True),
    _elements(name="WHERE_TT", function="where", inputs=3, has_scratch=True),
    _scalar(name="WHERE_TS", function="where", inputs=2, has_scratch=True),
    _scalar(name="WHERE_ST", function="where", inputs=2, scalar_at=1, has_scratch=True),
    TileOpcode(name="PAD", work=TileWork.PAD, has_scalar=True),
    TileOpcode(name="FILLPAD", work=TileWork.PAD, has_scalar=True),
    _transpose(name="TRANSPOSE_VNCHWCONV", has_scratch=True),
    _transpose(name="TRANSPOSE_MOVEIN", pipe=Pipe.MTE2),
    _transpose(name="TRANSPOSE_MOVEOUT", pipe=Pipe.MTE3),
    TileOpcode(name="CUM_SUM", work=TileWork.ACCUMULATE),
    TileOpcode(name="GATHER_ELEMENT", work=TileWork.GATHER, inputs=2, has_scratch=True),
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

_SORTED: Final = "sorted pairs of value and index, whose layout is not modelled"
_SCALAR: Final = "work of the scalar unit, whose accesses to UB are not modelled"
_BY_GM: Final = "elements of GM by indices that are data"
NO_ROW: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("BITSORT", "MRGSORT", "TILEDMRGSORT", "EXTRACT"), _SORTED),
        **dict.fromkeys(("GATHER", "GATHER_IN_UB", "INDEX_OUTCAST", "INDEX_PUT"), _BY_GM),
        **dict.fromkeys(("SCATTER", "SCATTER_ELEMENT"), _SCALAR),
        **dict.fromkeys(("POW", "REM", "MOD"), "values that no operation of the table gives"),
        "ISFINITE": "the overflow of a cast inside it, which is not public",
        "BRCB": "a packed column, whose layout is not modelled",
        "RANGE": "a first number that the dump's JSON lacks",
        "WHERE_SS": "two numbers that the dump lacks",
    }
)
"""Opcodes that occur in kernels and have no row, each with the reason."""
