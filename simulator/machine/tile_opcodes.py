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
from simulator.numbers.formats import BF16, FP16, FP32, INT16, INT32, Format


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
    TRANSPOSE = "axes are put in another order"
    ACCUMULATE = "the sums or products of all elements up to each along an axis"
    GATHER = "elements along an axis, read by indices"
    SELECT = "slices along an axis of a tensor in GM, read by indices there"
    PUT = "rows written to a tensor in GM where indices say"
    PAGED_ROWS = "rows of a tensor in GM, read by indices and a table of its blocks there"
    SCATTER = "the elements, and others along an axis where indices name places"
    ADD_AT = "the elements, and terms times the scalar added along an axis where indices say"
    SORT32 = "elements and their numbers by turns, each 32 elements in falling order"
    MERGE = "pairs in falling order from groups of 32 that are so"
    EXTRACT = "the elements of pairs, or their numbers"
    EXTREME = "the greatest or least elements along an axis, and where they are"
    PAIR_EXTREME = "the greater or lesser elements of two tiles, and where they are"
    PATTERN = "elements along the last axis at a fixed pattern, whose number is the scalar"
    ONE_HOT = "1 at the place that each element names along a new last axis, else 0"
    TRIANGLE = "the elements on one side of a diagonal, their products with 0 on the other"
    SPACED = "numbers at a distance from each other"
    WEIGH = "a function of the elements, and of one weight for each place of the second axis"
    QUANTIZE = "elements times a number of their row, and one added, in 8 bits"
    DEQUANTIZE = "elements less a number of their row, times another"
    BLOCKS = "a block for each element of a packed column, which repeats it"
    BYTES = "the same bytes, as elements of another format along one axis"
    ALIAS = "another view of the same bytes; nothing moves"

    __hash__ = object.__hash__  # the one of Enum is Python code


REDUCTIONS: Final = frozenset((TileWork.REDUCE, TileWork.REDUCE_LINES))
FROM_GM: Final = frozenset((TileWork.SELECT, TileWork.PAGED_ROWS))
"""Works that read their inputs where these are, in GM."""
TO_GM: Final = frozenset((TileWork.PUT,))
"""Works that change a tensor in GM: an input there, in whose place the result is."""
OVER_FIRST: Final = frozenset((TileWork.SCATTER, TileWork.ADD_AT))
"""Works that change elements of their first input, which lies where their result does."""
NUMBERED: Final = frozenset((TileWork.TRIANGLE, TileWork.SPACED))
"""Works with a number that follows from the place of the tile."""
UNBOUND: Final = frozenset((TileWork.ALIAS, TileWork.EXTRACT, TileWork.FILL, TileWork.SPACED))
"""Works whose operands do not fix the extents of the result: its readers do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOpcode:
    """One tile opcode.

    Attributes:
        name: upstream's.
        work: what it does.
        pipe: the queue that it runs in.
        begins: the queue that waits for its operands, where it is another.
        function: what gives its values, for `tile_functions.evaluated`; "" where elements are only
            moved or converted.
        inputs: how many tiles it reads.
        scalars: how many numbers are operands too, at most two; a second one follows the first.
        scalar_at: the place of the first among the operands; None: the last one, unless the
            operation says that it is the first.
        results: the outputs that hold results.
        has_scratch: the outputs behind these are scratch memory, garbage afterwards.
        is_late: it fills scratch memory, and writes its result behind a barrier inside of it
            (tileop/arch32/dynamic/vector_dyn.h:2855; pto-isa a2a3/TTrans.hpp).
        in_place: an output may be written over an input.
        takes_blocks: an operand may be a column of blocks, each of which repeats an element.
        moves_whole: a tile that its elements fill is moved instead (vector/pad.cpp:23).
        in_repeats: formats that it reads in whole repeats of 256 B, rows beyond the last too.
        inside: the instructions inside, each once, in the order in which the sources name them;
            which of them run depends on formats and shapes. Masks, flags and barriers are left out.
    """

    name: str
    work: TileWork
    pipe: Pipe = Pipe.V
    begins: Pipe | None = None
    function: str = ""
    inputs: int = 1
    scalars: int = 0
    scalar_at: int | None = None
    results: int = 1
    has_scratch: bool = False
    is_late: bool = False
    in_place: bool = False
    takes_blocks: bool = False
    moves_whole: bool = False
    in_repeats: frozenset[Format] = frozenset()
    inside: tuple[str, ...]

    @property
    def waits_in(self) -> Pipe:
        """The queue that waits for its operands."""
        return self.pipe if self.begins is None else self.begins


_elements = partial(TileOpcode, work=TileWork.ELEMENTS, in_place=True)
_binary = partial(_elements, inputs=2)
_scalar = partial(_elements, scalars=1)
_special = partial(_elements, has_scratch=True)
_add_at = partial(
    TileOpcode, work=TileWork.ADD_AT, inputs=3, scalars=1, has_scratch=True, in_place=True
)
_extreme = partial(
    TileOpcode,
    work=TileWork.EXTREME,
    results=2,
    has_scratch=True,
    inside=("vcmax", "vcmin", "vcmpv", "vsel"),
)
_pair_extreme = partial(
    TileOpcode, work=TileWork.PAIR_EXTREME, inputs=4, results=2, inside=("vcmpv", "vsel")
)
_reduce = partial(TileOpcode, work=TileWork.REDUCE, has_scratch=True)
_lines = partial(_reduce, work=TileWork.REDUCE_LINES, in_place=True)
_FLOATS: Final = frozenset((FP32, FP16, BF16))
_compare = partial(
    TileOpcode,
    work=TileWork.COMPARE,
    has_scratch=True,
    in_place=True,
    in_repeats=_FLOATS | {INT32, INT16},
)
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
    TileOpcode(name="VEC_DUP", work=TileWork.FILL, inputs=0, scalars=1,
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
    _scalar(name="ROUND", function="integral", has_scratch=True, in_place=False,
            inside=("vconv", "vmuls", "vector_dup", "vdiv")),
    _elements(name="CEIL", function="ceil", inside=("vconv",)),
    _elements(name="FLOOR", function="floor", inside=("vconv",)),
    _elements(name="TRUNC", function="trunc", inside=("vconv",)),
    _elements(name="LOGICALNOT", function="logical_not", has_scratch=True, in_repeats=_FLOATS,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _elements(name="EXP2", function="exp2", has_scratch=True,
            inside=("vconv", "vector_dup", "vln", "vmul", "vexp")),
    _elements(name="EXPM1", function="expm1", has_scratch=True, inside=("vconv", "vexp", "vadds")),
    _elements(name="SIGN", function="sign", has_scratch=True,
            inside=("vconv", "vmins", "vmaxs", "vmuls")),
    _binary(name="COPYSIGN", function="copysign", has_scratch=True,
            inside=("vector_dup", "vand", "vor")),
    _special(name="TANH", function="tanh", in_place=False,
            inside=("vmul", "vmuls", "vadds", "vmins", "vexp", "vadd", "vdiv", "vabs", "vcmpvs",
                    "vsel")),
    _special(name="SINH", function="sinh", in_place=False,
            inside=("vabs", "vmul", "vmuls", "vadds", "vexp", "vsub", "vcmpvs", "vsel")),
    _special(name="COSH", function="cosh", in_place=False,
            inside=("vabs", "vmuls", "vexp", "vadd", "vmul")),
    _special(name="SIN", function="sin", in_place=False,
            inside=("vmuls", "vadd", "vconv", "vsub", "vadds", "vmul")),
    _special(name="COS", function="cos", in_place=False,
            inside=("vmuls", "vadd", "vadds", "vconv", "vsub", "vmul")),
    _special(name="TAN", function="tan",
            inside=("vmuls", "vconv", "vsub", "vadds", "vmul", "vdiv")),
    _special(name="ERF", function="erf", in_place=False,
            inside=("vmins", "vmaxs", "vmul", "vmuls", "vadds", "vdiv")),
    _special(name="ERFC", function="erfc", in_place=False,
            inside=("vmins", "vmaxs", "vabs", "vadds", "vdiv", "vmul", "vmuls", "vexp", "vadd")),
    _special(name="ASIN", function="asin", in_place=False,
            inside=("vabs", "vmul", "vmuls", "vadds", "vsqrt", "vcmpvs", "vsel")),
    _special(name="ACOS", function="acos", in_place=False,
            inside=("vabs", "vmul", "vmuls", "vadds", "vsqrt", "vcmpvs", "vsel")),
    _special(name="ATAN", function="atan", in_place=False,
            inside=("vabs", "vcmpvs", "vdiv", "vsel", "vmul", "vmuls", "vadds", "vadd")),
    _special(name="ATAN2", function="atan2", inputs=2, in_place=False,
            inside=("vdiv", "vcmpv", "vsel", "vabs", "vmul", "vmuls", "vadds", "vadd", "vcmpvs")),
    _special(name="ASINH", function="asinh", in_place=False,
            inside=("vabs", "vdiv", "vmul", "vadds", "vsqrt", "vadd", "vln", "vmaxs", "vmins",
                    "vmin", "vcmpvs", "vsel")),
    _special(name="ACOSH", function="acosh", in_place=False,
            inside=("vadds", "vadd", "vmul", "vsqrt", "vln", "vmaxs", "vmins", "vdiv", "vmin")),
    _special(name="ATANH", function="atanh", in_place=False,
            inside=("vabs", "vmuls", "vadds", "vdiv", "vmins", "vln", "vmul", "vcmpvs", "vsel")),
    _special(name="HYPOT", function="hypot", inputs=2,
            inside=("vabs", "vmax", "vmin", "vadds", "vdiv", "vmul", "vsqrt")),
    _special(name="POW", function="pow", inputs=2, in_place=False,
            inside=("vabs", "vln", "vmul", "vexp", "vconv", "vcmpv", "vcmpvs", "vsel", _UNIT_S)),
    _binary(name="REM", function="remainder", in_place=False,
            inside=("vdiv", "vconv", "vmul", "vsub", "vcmpvs", "vadd", "vsel")),
    _scalar(name="REMS", function="remainder", in_place=False,
            inside=("vdiv", "vconv", "vmuls", "vsub", "vcmpvs", "vadds", "vsel")),
    _binary(name="MOD", function="fmod", in_place=False,
            inside=("vdiv", "vconv", "vmul", "vsub")),
    _scalar(name="MODS", function="fmod", in_place=False,
            inside=("vdiv", "vconv", "vmuls", "vsub")),
    _special(name="FLOORDIV", function="floor_div", inputs=2, in_place=False,
            inside=("vdiv", "vconv", "vmul", "vsub", "vcmpvs", "vsel")),
    _special(name="FLOORDIVS", function="floor_div", scalars=1, in_place=False,
            inside=("vdiv", "vconv", "vmuls", "vsub", "vcmpvs", "vsel")),
    _scalar(name="LReLU", function="lrelu", inside=("vlrelu",)),
    TileOpcode(name="PRELU", work=TileWork.WEIGH, function="lrelu", inputs=2, has_scratch=True,
            in_repeats=_FLOATS, inside=("vcmpvs", "vmul", "vsel", "vlrelu")),
    _special(name="SIGNBIT", function="signbit", inside=("vshr", "vconv")),
    _special(name="ISNAN", function="isnan", inside=("vcmpv", "vsel", "vconv")),
    _special(name="ISFINITE", function="isfinite",
            inside=("vand", "vadds", "vmaxs", "vmuls", "vconv")),
    _binary(name="GCD", function="gcd", inside=(_UNIT_S,)),
    _scalar(name="GCDS", function="gcd", inside=(_UNIT_S,)),
    _binary(name="EXPANDEXPDIF", function="expand_exp_dif", takes_blocks=True,
            inside=("vsub", "vexp")),
    TileOpcode(name="QUANTIZE_SYM", work=TileWork.QUANTIZE, inputs=2, has_scratch=True,
            inside=("vbrcb", "vmul", "vconv")),
    TileOpcode(name="QUANTIZE_ASYM", work=TileWork.QUANTIZE, inputs=3, has_scratch=True,
            inside=("vbrcb", "vmul", "vadd", "vconv")),
    TileOpcode(name="DEQUANTIZE", work=TileWork.DEQUANTIZE, inputs=3,
            inside=("vconv", _UNIT_S, "vadds", "vmuls")),
    TileOpcode(name="BRCB", work=TileWork.BLOCKS, in_place=True, inside=("vbrcb",)),
    _scalar(name="AXPY", function="axpy", inputs=2, inside=("vaxpy",)),
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
    _compare(name="CMPS", scalars=1,
            inside=("vcmpvs", "vnot", "vector_dup", "vsel", "vconv")),
    _elements(name="WHERE_TT", function="where", inputs=3, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _scalar(name="WHERE_TS", function="where", inputs=2, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _scalar(name="WHERE_ST", function="where", inputs=2, scalar_at=1, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    _scalar(name="WHERE_SS", function="where", scalars=2, has_scratch=True,
            inside=("vconv", "vector_dup", "vcmpv", "vsel")),
    TileOpcode(name="TRIUL", work=TileWork.TRIANGLE, inside=("vector_dup", "vmul", _UNIT_S)),
    TileOpcode(name="RANGE", work=TileWork.SPACED, inputs=0, scalars=1,
            inside=(_UNIT_S, "vadds")),
    TileOpcode(name="GATHER_MASK", work=TileWork.PATTERN, scalars=1,
            inside=("vreducev2",)),
    TileOpcode(name="ONEHOT", work=TileWork.ONE_HOT, inside=("vector_dup", _UNIT_S)),
    TileOpcode(name="PAD", work=TileWork.PAD, scalars=1, moves_whole=True,
            inside=("vcopy", "vector_dup")),
    TileOpcode(name="FILLPAD", work=TileWork.PAD, scalars=1, inside=("vcopy", "vector_dup")),
    TileOpcode(name="PACK", work=TileWork.BYTES, in_place=True, inside=(_WITHIN,)),
    TileOpcode(name="UNPACK", work=TileWork.BYTES, inside=(_WITHIN,)),
    _transpose(name="TRANSPOSE_VNCHWCONV", has_scratch=True, is_late=True,
            inside=("scatter_vnchwconv", _WITHIN, "vcopy")),
    _transpose(name="TRANSPOSE_MOVEIN", pipe=Pipe.MTE2, inside=(_IN,)),
    _transpose(name="PERMUTE", pipe=Pipe.MTE2, begins=Pipe.S, inside=(_UNIT_S, _IN)),
    _transpose(name="TRANSPOSE_MOVEOUT", pipe=Pipe.MTE3, inside=(_OUT,)),
    TileOpcode(name="CUM_SUM", work=TileWork.ACCUMULATE, function="add", inside=(_WITHIN, "vadd")),
    TileOpcode(name="CUM_PROD", work=TileWork.ACCUMULATE, function="mul",
            inside=(_WITHIN, "vmul", "vadds")),
    TileOpcode(name="GATHER_ELEMENT", work=TileWork.GATHER, inputs=2, has_scratch=True,
            inside=(_UNIT_S, "vmuls", "vgather")),
    TileOpcode(name="GATHER", work=TileWork.SELECT, pipe=Pipe.MTE2, begins=Pipe.S, inputs=2,
            inside=(_UNIT_S, _IN)),
    TileOpcode(name="GATHER_IN_UB", work=TileWork.PAGED_ROWS, pipe=Pipe.MTE2, inputs=3, scalars=1,
            inside=(_UNIT_S, _IN)),
    TileOpcode(name="INDEX_OUTCAST", work=TileWork.PUT, pipe=Pipe.MTE3, inputs=3,
            in_place=True, inside=(_UNIT_S, _OUT)),
    TileOpcode(name="INDEX_PUT", work=TileWork.PUT, pipe=Pipe.MTE3, inputs=3, in_place=True,
            inside=(_UNIT_S, _OUT)),
    TileOpcode(name="SCATTER_ELEMENT", work=TileWork.SCATTER, pipe=Pipe.S, inputs=2,
            scalars=1, in_place=True, inside=(_UNIT_S,)),
    TileOpcode(name="SCATTER", work=TileWork.SCATTER, pipe=Pipe.S, inputs=3, has_scratch=True,
            in_place=True, inside=(_UNIT_S,)),
    TileOpcode(name="BITSORT", work=TileWork.SORT32, begins=Pipe.S, scalars=1,
            has_scratch=True, inside=(_UNIT_S, "vadds", "vbitsort")),
    TileOpcode(name="MRGSORT", work=TileWork.MERGE, has_scratch=True, in_place=True,
            inside=("vmrgsort4", _WITHIN)),
    TileOpcode(name="EXTRACT", work=TileWork.EXTRACT, inside=("vreducev2", "vadds")),
    _extreme(name="ROWARGMAXWITHVALUE_SINGLE"),
    _extreme(name="ROWARGMAXWITHVALUE_LINE"),
    _extreme(name="ROWARGMINWITHVALUE_SINGLE"),
    _extreme(name="ROWARGMINWITHVALUE_LINE"),
    _pair_extreme(name="PAIRARGMAX"),
    _pair_extreme(name="PAIRARGMIN"),
    _add_at(name="INDEX_ADD", inside=("vmuls", "vconv", "vadd", _UNIT_S)),
    _add_at(name="INDEX_ADD_UB", inside=("vmuls", "vconv", "vadd", _UNIT_S)),
    _reduce(name="ROWSUM_SINGLE", function="sum", inside=("vector_dup", "vadd", "vcgadd", "vcadd")),
    _reduce(name="ROWMAX_SINGLE", function="amax",
            inside=("vector_dup", "vmax", "vcgmax", "vcmax")),
    _reduce(name="ROWMIN_SINGLE", function="amin",
            inside=("vector_dup", "vmin", "vcgmin", "vcmin")),
    _reduce(name="ROWPROD_SINGLE", function="prod", inside=("vector_dup", "vmul", _UNIT_S)),
    _lines(name="ROWPRODLINE", function="prod", has_scratch=False, inside=(_WITHIN, "vmul")),
    _lines(name="ROWSUMLINE", function="sum", inside=(_WITHIN, "vadd")),
    _lines(name="ROWMAXLINE", function="amax", has_scratch=False, inside=(_WITHIN, "vmax")),
    _lines(name="ROWMINLINE", function="amin", has_scratch=False, inside=(_WITHIN, "vmin")),
    _pair(name="PAIRSUM", function="add", inside=(_WITHIN, "vadd")),
    _pair(name="PAIRPROD", function="mul", inside=(_WITHIN, "vmul")),
    _pair(name="PAIRMAX", function="maximum", inside=(_WITHIN, "vmax")),
    _pair(name="PAIRMIN", function="minimum", inside=(_WITHIN, "vmin")),
)})
# fmt: on

PAIRED: Final[Mapping[str, str]] = MappingProxyType(
    {f"ROW{name}_SINGLE": f"PAIR{name}" for name in ("SUM", "MAX", "MIN", "PROD")}
)
"""By a reduction, the opcode that joins two of its tiles."""
ADDED_IN_GM: Final = "additions in GM by several tasks, whose order is not public"
NO_ROW: Final[Mapping[str, str]] = MappingProxyType(
    {
        "TILEDMRGSORT": "pairs of several tiles, whose merging is not modelled",
        **dict.fromkeys(("A_MUL_B", "GATHER_IN_L1"), "the cube's memories, which are not modelled"),
        "POWS": "a number that chooses among several functions",
        "REMRS": "a number before its tile, which the dump puts behind it",
        "ATOMIC_RMW": ADDED_IN_GM,
    }
)
"""Opcodes that occur in kernels and have no row, each with the reason."""
NO_FORMAT: Final[Mapping[tuple[str, Format], str]] = MappingProxyType(
    {("ISFINITE", FP32): "a cast to FP16 over its own operand, whose overflow is not public"}
)
"""Rows that a format of the first operand has no values of, each with the reason."""


def instructions_inside(opcode: str) -> str:
    """The names of the instructions inside an opcode, of one without a row too."""
    row = TILE_OPCODES.get(opcode)
    return "not known" if row is None else ", ".join(row.inside) or "none, for nothing moves"
