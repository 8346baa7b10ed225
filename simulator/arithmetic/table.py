"""The table of operations: everything that is known of an operation is in its row."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from simulator.arithmetic import computed, elementary, total_order
from simulator.arithmetic.operation import Array, Fidelity, IntervalRule, Operation
from simulator.arithmetic.total_order import Bools
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_CASTS,
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_RNE,
    ASSUME_SUM_ORDER,
    DIV_BOUND,
    EXP_BOUND,
    LOG_BOUND,
    RSQRT_BOUND,
    SQRT_BOUND,
)
from simulator.numbers.formats import (
    BF16,
    BOOL,
    FORMATS,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    FloatFormat,
)

_FLOATS: Final = (FP32, FP16)
_NUMBERS: Final = (FP32, FP16, INT32, INT16)
_ADDED: Final = (*_NUMBERS, INT8, UINT8)
_INTEGERS: Final = (INT8, UINT8, INT16, UINT16, INT32, UINT32)
_ANY: Final = (*_FLOATS, *_INTEGERS)
_TABLES: Final = "asc-devkit, boundary values of the memory vector interfaces"
_TILEOP: Final = "pypto framework/src/interface/tileop/vector"
_PTO_ISA: Final = "pto-isa include/pto/npu/a2a3"


def _far_beyond(x: Array, fmt: FloatFormat) -> Bools:
    """True where e**x lies ten binades or more outside the range of positive numbers."""
    most = (12 - fmt.emin) * np.log(2)
    least = (fmt.min_quantum - 10) * np.log(2)
    x = x.astype(np.float32, copy=False)
    far: Bools = (x > most) | (x < least)
    return far


_arithmetic = partial(
    Operation,
    operands=2,
    formats=_NUMBERS,
    fidelity=Fidelity.ASSUMED,
    assumes=(ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW),
    saturates=True,
    source=f"{_TABLES}: specials as IEEE 754; integers wrap, in saturation mode they clamp",
)
_extreme = partial(
    Operation,
    operands=2,
    formats=_ANY,
    rule=IntervalRule.MONOTONE,
    directions=(1, 1),
    fidelity=Fidelity.EXACT,
    source=f"{_TABLES}: -0 is less than +0; NaN wins",
)
_comparison = partial(
    Operation,
    operands=2,
    formats=_ANY,
    rule=IntervalRule.MONOTONE,
    fidelity=Fidelity.EXACT,
    tables=(30, 31),
    gives_truth=True,
    source=f"{_TABLES}: no comparison with NaN is true, not even `not equal`",
)
_bitwise = partial(
    Operation,
    operands=2,
    formats=_INTEGERS,
    rule=IntervalRule.MEMBERS,
    fidelity=Fidelity.EXACT,
    source=f"{_PTO_ISA}: TAnd, TOr, TXor, TShl, TShr",
)
_shift = partial(
    _bitwise,
    source=f"{_TILEOP}/bitwise_shift.h: a count below 0 or above the width shifts every bit out",
)
_scalars = partial(
    _bitwise,
    instruction="scalar unit",
    formats=(INT8, UINT8, INT16, INT32),
)
_rounded = partial(
    Operation,
    formats=_NUMBERS,
    rule=IntervalRule.MONOTONE,
    directions=(1,),
    fidelity=Fidelity.EXACT,
    tables=(32,),
    source=f"{_TILEOP}/unary.h: the Cast instruction; {_TABLES}; integers are moved",
)
_bounded = partial(
    Operation,
    formats=_FLOATS,
    rule=IntervalRule.MONOTONE,
    directions=(1,),
    fidelity=Fidelity.BOUNDED,
    assumes=(ASSUME_GRADUAL_UNDERFLOW,),
    keeps_specials=True,
    source=f"{_TABLES}: specials as IEEE 754; no error bound for A2/A3",
)
_reduction = partial(
    Operation,
    formats=_NUMBERS,
    rule=IntervalRule.FOLD,
    fidelity=Fidelity.EXACT,
    source=f"{_PTO_ISA}/TRowReduceOps.hpp, TColReduceOps.hpp; {_TABLES}",
)

# fmt: off
OPERATIONS: Final = MappingProxyType({row.name: row for row in (
    _arithmetic(name="add", instruction="vadd", function=np.add, unrounded=computed.unrounded_sum,
                formats=_ADDED, rule=IntervalRule.MONOTONE, directions=(1, 1), tables=(9, 15)),
    _arithmetic(name="sub", instruction="vsub", function=np.subtract,
                unrounded=computed.unrounded_difference, formats=_ADDED,
                rule=IntervalRule.MONOTONE, directions=(1, -1), tables=(10,)),
    _arithmetic(name="mul", instruction="vmul", function=np.multiply,
                unrounded=computed.unrounded_product,
                rule=IntervalRule.CORNERS, tables=(11, 16)),
    _arithmetic(name="neg", operands=1, instruction="vmuls -1", function=np.negative,
                rule=IntervalRule.MONOTONE, directions=(-1,), assumes=(ASSUME_GRADUAL_UNDERFLOW,),
                tables=(16,), source=f"{_PTO_ISA}/TUnaryOp.hpp: a product with -1; {_TABLES}"),
    _extreme(name="maximum", instruction="vmax", function=total_order.maximum, tables=(13, 17)),
    _extreme(name="minimum", instruction="vmin", function=total_order.minimum, tables=(14, 18)),
    _extreme(name="relu", operands=1, instruction="vmaxs 0", function=computed.relu,
             directions=(1,), tables=(8,), source=f"{_TILEOP}/unary.h; {_TABLES}"),
    _extreme(name="clip", operands=3, instruction="vmaxs, vmins", function=computed.clip,
             directions=(1, 1, 1), tables=(17, 18),
             source=f"pypto-clip.md: min(max(x, min), max); {_TABLES}"),
    _extreme(name="abs", operands=1, instruction="vabs", function=np.abs,
             rule=IntervalRule.EVEN, directions=(), tables=(4,), source=_TABLES),
    Operation(name="where", operands=3, instruction="vsel", function=computed.select,
              formats=tuple(FORMATS.values()), rule=IntervalRule.SELECT, fidelity=Fidelity.EXACT,
              copies=True, source=f"{_PTO_ISA}/TSel.hpp"),
    _comparison(name="eq", instruction="vcmp EQ", function=np.equal, rule=IntervalRule.EQUAL),
    _comparison(name="ne", instruction="vcmp NE", function=computed.unequal,
                rule=IntervalRule.UNEQUAL),
    _comparison(name="lt", instruction="vcmp LT", function=np.less, directions=(-1, 1)),
    _comparison(name="le", instruction="vcmp LE", function=np.less_equal, directions=(-1, 1)),
    _comparison(name="gt", instruction="vcmp GT", function=np.greater, directions=(1, -1)),
    _comparison(name="ge", instruction="vcmp GE", function=np.greater_equal, directions=(1, -1)),
    _comparison(name="signbit", operands=1, instruction="vshr, vconv", function=computed.signbit,
                formats=(*_ANY, BF16), directions=(-1,), tables=(),
                source=f"{_TILEOP}/signbit.h: the first bit; pypto-signbit.md: NaN has none"),
    _comparison(name="logical_and", instruction="vcmp, vsel, vmin", function=np.logical_and,
                formats=(*_ANY, BOOL), rule=IntervalRule.TRUTH, directions=(1, 1),
                source=f"{_TILEOP}/logicaland.h: compared with 0, so NaN is true; {_TABLES}"),
    _comparison(name="logical_not", operands=1, instruction="vcmp, vsel",
                function=np.logical_not, formats=(*_ANY, BOOL), rule=IntervalRule.TRUTH,
                directions=(-1,),
                source=f"{_TILEOP}/logicalnot.h: compared with 0, so NaN is true; {_TABLES}"),
    _bitwise(name="bitwise_and", instruction="vand", function=np.bitwise_and),
    _bitwise(name="bitwise_or", instruction="vor", function=np.bitwise_or),
    _bitwise(name="bitwise_xor", instruction="vor, vand, vnot", function=np.bitwise_xor),
    _bitwise(name="bitwise_not", operands=1, instruction="vnot", function=np.invert,
             rule=IntervalRule.MONOTONE, directions=(-1,)),
    _shift(name="bitwise_left_shift", instruction="vshl", function=np.left_shift),
    _shift(name="bitwise_right_shift", instruction="vshr", function=np.right_shift),
    _scalars(name="gcd", function=computed.gcd, source=f"{_TILEOP}/binary.h: TGcd"),
    _scalars(name="pow", function=computed.power, formats=(INT8, UINT8, INT16, INT32),
             source=f"{_PTO_ISA}/TPow.hpp: TPowICore, in C++'s int"),
    _scalars(name="floor_div", instruction="a quotient, corrected", formats=(INT16, INT32),
             function=computed.floor_div,
             source=f"{_TILEOP}/binary.h: FloorDivV220Int32Compute; of a divisor 0 chosen"),
    _rounded(name="round", instruction="vconv RINT", function=computed.integral(np.rint)),
    _rounded(name="floor", instruction="vconv FLOOR", function=computed.integral(np.floor),
             fidelity=Fidelity.ASSUMED, assumes=(ASSUME_GRADUAL_CASTS,)),
    _rounded(name="ceil", instruction="vconv CEIL", function=computed.integral(np.ceil),
             fidelity=Fidelity.ASSUMED, assumes=(ASSUME_GRADUAL_CASTS,)),
    _rounded(name="trunc", instruction="vconv TRUNC", function=computed.integral(np.trunc)),
    _bounded(name="div", operands=2, instruction="vdiv", function=np.divide,
             rule=IntervalRule.QUOTIENT, directions=(), bound=DIV_BOUND, tables=(12,)),
    _bounded(name="reciprocal", instruction="vector_dup 1, vdiv", function=computed.reciprocal,
             rule=IntervalRule.QUOTIENT, directions=(), bound=DIV_BOUND, tables=(5,)),
    _bounded(name="sqrt", instruction="vsqrt", function=np.sqrt, least_operand=-0.0,
             bound=SQRT_BOUND, tables=(1, 6)),
    _bounded(name="exp", instruction="vexp", function=elementary.exp, bound=EXP_BOUND,
             keeps_specials=False, settled=_far_beyond, tables=(2,)),
    _bounded(name="log", instruction="vln", function=elementary.log, least_operand=-0.0,
             bound=LOG_BOUND, tables=(1, 3)),
    _bounded(name="rsqrt", instruction="vrsqrt", function=computed.rsqrt, rule=IntervalRule.POLE,
             directions=(-1,), least_operand=-0.0, fidelity=Fidelity.UNKNOWN, bound=RSQRT_BOUND,
             tables=(1, 7),
             source=f"asc-devkit Rsqrt.md; {_TABLES}: of 0 inf, of -0 -inf, below 0 NaN"),
    _reduction(name="amax", instruction="vmax, vcmax", function=total_order.maximum,
               formats=_ADDED, tables=(33, 36, 39)),
    _reduction(name="amin", instruction="vmin, vcmin", function=total_order.minimum,
               formats=_ADDED,
               tables=(34, 37, 40)),
    _reduction(name="sum", instruction="vadd, vcadd", function=np.add, tables=(35, 38, 41),
               fidelity=Fidelity.ASSUMED, saturates=True,
               assumes=(ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW, ASSUME_SUM_ORDER),
               source=f"{_PTO_ISA}/TRowSum.hpp, TRowReduceOps.hpp, TColSum.hpp; {_TABLES}"),
    _reduction(name="prod", instruction="vmul, scalar unit", function=np.multiply,
               formats=(FP32, INT32, INT16), tables=(11,), fidelity=Fidelity.ASSUMED,
               saturates=True,
               assumes=(ASSUME_RNE, ASSUME_GRADUAL_UNDERFLOW, ASSUME_SUM_ORDER),
               source=f"{_PTO_ISA}/TRowProd.hpp, TColProd.hpp; {_TABLES}"),
)})
# fmt: on
