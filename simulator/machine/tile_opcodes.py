"""Tile opcodes: the operations of a fused kernel's tile program, one row each.

One tile operation is one step of the machine: the instructions that it has inside are not executed.
Its values are those of the row's function in `simulator.arithmetic`, of a reduction in the order of
its own instruction. Sources: upstream pypto at tag r0.2.0, framework/src/interface/operation:
opcode.cpp (pipes, `excludeBufferReuse`), vector/ (operands); pto-isa a2a3/TPart*.hpp. Of the
instructions inside: framework/src/interface/tileop/vector there, and what that calls of pto-isa at
revision dd3cb0fb, include/pto/npu/a2a3; read, not measured.
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
        inside: the instructions inside, each once, in the order in which the sources name them;
            which of them run depends on formats and shapes. Masks, flags and barriers are left out.
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
    inside: tuple[str, ...]


_elements = partial(TileOpcode, work=TileWork.ELEMENTS, in_place=True)
_binary = partial(_elements, inputs=2)
_scalar = partial(_elements, has_scalar=True)
_reduce = partial(TileOpcode, work=TileWork.REDUCE, has_scratch=True)
_lines = partial(_reduce, work=TileWork.REDUCE_LINES, in_place=True)
_compare = partial(TileOpcode, work=TileWork.COMPARE, has_scratch=True, in_place=True)
_pair = partial(TileOpcode, work=TileWork.PAIR, inputs=2)
_transpose = partial(TileOpcode, work=TileWork.TRANSPOSE)
_IN: Final = "copy_gm_to_ubuf_align"
_OUT: Final = "copy_ubuf_to_gm_align"
_WITHIN: Final = "copy_ubuf_to_ubuf"
_UNIT_S: Final = "scalar unit"
_SHIFTED: Final = ("vector_dup", "vsub", "vor", "vshr", "vnot", "vand", _UNIT_S)

# fmt: off
TILE_OPCODES: Final[Mapping[str, TileOpcode]] = MappingProxyType({row.name: row for row in (
    TileOpcode(name="COPY_IN", work=TileWork.COPY, pipe=Pipe.MTE2, inside=(_IN,)),
    TileOpcode(name="COPY_OUT", work=TileWork.COPY, pipe=Pipe.MTE3, inside=(_OUT,)),
    TileOpcode(name="CAST", work=TileWork.CAST, in_place=True,
            inside=("vconv", "vector_dup", "vand")),
    TileOpcode(name="EXPAND", work=TileWork.EXPAND, in_place=True,
            inside=("vector_dup", "vbrcb", _WITHIN)),
    TileOpcode(name="VEC_DUP", work=TileWork.FILL, inputs=0, has_scalar=True,
            inside=("vector_dup",)),
    TileOpcode(name="VIEW", work=TileWork.ALIAS, in_place=True, inside=()),
    TileOpcode(name="RESHAPE", work=TileWork.ALIAS, in_place=True, inside=()),
    TileOpcode(name="ASSEMBLE", work=TileWork.ALIAS, in_place=True, inside=()),
    _binary(name="ADD", function="add", inside=("vadd",)),
    _binary(name="SUB", function="sub", inside=("vsub",)),
    _binary(name="MUL", function="mul", inside=("vmul",)),
    _binary(name="DIV", function="div", inside=("vdiv",)),
    _binary(name="MAXIMUM", function="maximum", inside=("vmax",)),
    _binary(name="MINIMUM", function="minimum", inside=("vmin",)),
    _binary(name="LOGICALAND", function="logical_and", has_scratch=True,
            inside=("vector_dup", "vconv", "vcmpv", "vsel", "vmin")),
    _scalar(name="ADDS", function="add", inside=("vadds",)),
    _scalar(name="SUBS", function="sub", inside=("vadds",)),
    _scalar(name="MULS", function="mul", inside=("vmuls",)),
    _scalar(name="DIVS", function="div", in_place=False,
            inside=("vconv", "vector_dup", "vdiv", "vmuls")),
    _scalar(name="MAXS", function="maximum", inside=("vmaxs",)),
    _scalar(name="MINS", function="minimum", inside=("vmins",)),
    _elements(name="ABS", function="abs", inside=("vabs",)),
    _elements(name="EXP", function="exp", inside=("vexp",)),
    _elements(name="LN", function="log", inside=("vln",)),
    _elements(name="SQRT", function="sqrt", inside=("vsqrt",)),
    _elements(name="RELU", function="relu", inside=("vmaxs",)),
    _elements(name="RECIPROCAL", function="reciprocal", in_place=False,
            inside=("vector_dup", "vdiv")),
    _elements(name="ROUND", function="integral", has_scratch=True, in_place=False,
            inside=("vconv", "vmuls", "vector_dup", "vdiv")),
    _elements(name="CEIL", function="ceil", inside=("vconv",)),
    _elements(name="FLOOR", function="floor", inside=("vconv",)),
    _elements(name="TRUNC", function="trunc", inside=("vconv",)),
    _elements(name="LOGICALNOT", function="logical_not", has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _elements(name="EXP2", function="exp2", has_scratch=True,
            inside=("vconv", "vector_dup", "vln", "vmul", "vexp")),
    _elements(name="EXPM1", function="expm1", has_scratch=True, inside=("vconv", "vexp", "vadds")),
    _elements(name="SIGN", function="sign", has_scratch=True,
            inside=("vconv", "vmins", "vmaxs", "vmuls")),
    _binary(name="COPYSIGN", function="copysign", has_scratch=True,
            inside=("vector_dup", "vand", "vor")),
    _elements(name="BITWISENOT", function="bitwise_not", inside=("vnot",)),
    _binary(name="BITWISEAND", function="bitwise_and", inside=("vand",)),
    _binary(name="BITWISEOR", function="bitwise_or", inside=("vor",)),
    _binary(name="BITWISEXOR", function="bitwise_xor", has_scratch=True,
            inside=("vor", "vand", "vnot")),
    _scalar(name="BITWISEANDS", function="bitwise_and", in_place=False,
            inside=("vector_dup", "vand")),
    _scalar(name="BITWISEORS", function="bitwise_or", in_place=False, inside=("vector_dup", "vor")),
    _scalar(name="BITWISEXORS", function="bitwise_xor", has_scratch=True, in_place=False,
            inside=("vector_dup", "vor", "vand", "vnot")),
    _binary(name="BITWISELEFTSHIFT", function="bitwise_left_shift", has_scratch=True,
            in_place=False, inside=_SHIFTED),
    _binary(name="BITWISERIGHTSHIFT", function="bitwise_right_shift", has_scratch=True,
            in_place=False, inside=_SHIFTED),
    _scalar(name="BITWISELEFTSHIFTS", function="bitwise_left_shift", inside=("vshl",)),
    _scalar(name="BITWISERIGHTSHIFTS", function="bitwise_right_shift", inside=("vshr",)),
    _scalar(name="SBITWISELEFTSHIFT", function="bitwise_left_shift", scalar_at=0,
            has_scratch=True, in_place=False, inside=_SHIFTED),
    _scalar(name="SBITWISERIGHTSHIFT", function="bitwise_right_shift", scalar_at=0,
            has_scratch=True, in_place=False, inside=_SHIFTED),
    _compare(name="CMP", inputs=2, inside=("vcmpv", "vnot", "vector_dup", "vsel", "vconv")),
    _compare(name="CMPS", has_scalar=True,
            inside=("vcmpvs", "vnot", "vector_dup", "vsel", "vconv")),
    _elements(name="WHERE_TT", function="where", inputs=3, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _scalar(name="WHERE_TS", function="where", inputs=2, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _scalar(name="WHERE_ST", function="where", inputs=2, scalar_at=1, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    TileOpcode(name="PAD", work=TileWork.PAD, has_scalar=True, inside=("vcopy", "vector_dup")),
    TileOpcode(name="FILLPAD", work=TileWork.PAD, has_scalar=True, inside=("vcopy", "vector_dup")),
    _transpose(name="TRANSPOSE_VNCHWCONV", has_scratch=True,
            inside=("scatter_vnchwconv", _WITHIN, "vcopy")),
    _transpose(name="TRANSPOSE_MOVEIN", pipe=Pipe.MTE2, inside=(_IN,)),
    _transpose(name="TRANSPOSE_MOVEOUT", pipe=Pipe.MTE3, inside=(_OUT,)),
    TileOpcode(name="CUM_SUM", work=TileWork.ACCUMULATE, inside=(_WITHIN, "vadd")),
    TileOpcode(name="GATHER_ELEMENT", work=TileWork.GATHER, inputs=2, has_scratch=True,
            inside=(_UNIT_S, "vmuls", "vgather")),
    _reduce(name="ROWSUM_SINGLE", function="sum", inside=("vector_dup", "vadd", "vcgadd", "vcadd")),
    _reduce(name="ROWMAX_SINGLE", function="amax",
            inside=("vector_dup", "vmax", "vcgmax", "vcmax")),
    _reduce(name="ROWMIN_SINGLE", function="amin",
            inside=("vector_dup", "vmin", "vcgmin", "vcmin")),
    _lines(name="ROWSUMLINE", function="sum", inside=(_WITHIN, "vadd")),
    _lines(name="ROWMAXLINE", function="amax", has_scratch=False, inside=(_WITHIN, "vmax")),
    _lines(name="ROWMINLINE", function="amin", has_scratch=False, inside=(_WITHIN, "vmin")),
    _pair(name="PAIRSUM", function="add", inside=(_WITHIN, "vadd")),
    _pair(name="PAIRMAX", function="maximum", inside=(_WITHIN, "vmax")),
    _pair(name="PAIRMIN", function="minimum", inside=(_WITHIN, "vmin")),
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


def instructions_inside(opcode: str) -> str:
    """The names of the instructions inside an opcode, of one without a row too."""
    row = TILE_OPCODES.get(opcode)
    return "not known" if row is None else ", ".join(row.inside) or "none, for nothing moves"
