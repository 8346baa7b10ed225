"""The vector operations around a cast: their values, and the results a device may give.

An array travels as a `Enclosure`: values of its format's numpy dtype and, where some element is not
certain, an `Interval` of lower and upper ends in the total order (-0 below +0), a flag *may be NaN*
and a small index of the cause. An exact array carries no interval and takes none of its paths.

    OPERATIONS: Mapping[str, Operation]
        The one table. A row says formats, instruction, function, interval rule, vendor's tables,
        bound, assumptions, fidelity, source. Elementwise: add, sub, mul, neg, maximum, minimum,
        relu, clip (x, least, most), abs, where (condition, a, b), eq, ne, lt, le, gt, ge,
        logical_and, logical_not, bitwise_and, _or, _xor, _not, _left_shift, _right_shift, round,
        floor, ceil, trunc, div, reciprocal, sqrt, exp, log, rsqrt. Reductions: amax, amin, sum.
    evaluate(operation, operands, fmt, *, trust=DEFAULT, inf_nan_mode=True, cause=0) -> Enclosure
        An elementwise operation; operands broadcast. `fmt` is the format the instruction runs in:
        widening BF16 or FP16 operands to FP32, and rounding what comes back, is the caller's. A
        scalar is a Enclosure of a 0-dimensional array of `fmt`'s dtype. One Enclosure given twice
        is one unknown (x * x is never negative).
    reduce(operation, operand, fmt, *, axis, trust=DEFAULT, inf_nan_mode=True, cause=0) -> Enclosure
        One axis of one tile, or of tiles that lie side by side on the other axes; the axis stays,
        with one element. The length of the axis decides the order of a sum, and so does whether it
        is the last one; a caller who cuts the axis into tiles reduces each and joins the results
        by `evaluate` in the order in which the framework does.
    matmul(a, b, fmt, *, bias=None, trust=DEFAULT, cause=0) -> Enclosure
        The cube's product of matrices, in FP32 or INT32, with the interval of every order.
    cast(conversions, operand, *, exact=False, threads=1) -> Enclosure
        A chain of `simulator.numbers.convert.Conversion`s, on values and ends.
    join_arrays(move, parts), Enclosure.map(move), Enclosure[index], Enclosure.reshape(shape)
        Movement: the same rearrangement of values, ends, flags and causes.
    Enclosure.certain() -> bools; Interval.contains(values, fmt) -> bools
    DEFAULT, DOCUMENTED, IEEE, TRUSTS[name]; trust.without(ASSUME_...), trust.also(...)
        Choices of what to take for granted of a device; EXACT: everything, so that no interval
        arises.

`cause` is any index up to 65535 that the caller gives an operation (and keeps the table of); where
two causes meet the wider interval's wins, at a tie the lower index. Elements that are certain have
no meaning in `Interval.cause`. Functions raise ValueError on operands that a row does not take and
RuntimeError where this thread's floating-point unit is not in its default mode; none modifies its
operands.
"""

from simulator.arithmetic.casts import cast as cast
from simulator.arithmetic.evaluation import evaluate as evaluate
from simulator.arithmetic.interval import Enclosure as Enclosure
from simulator.arithmetic.interval import Interval as Interval
from simulator.arithmetic.interval import join_arrays as join_arrays
from simulator.arithmetic.operation import Fidelity as Fidelity
from simulator.arithmetic.operation import Operation as Operation
from simulator.arithmetic.reduction import reduce as reduce
from simulator.arithmetic.reduction import reduce_tiles as reduce_tiles
from simulator.arithmetic.reduction_order import Tiles as Tiles
from simulator.arithmetic.table import OPERATIONS as OPERATIONS
from simulator.arithmetic.trust import ASSUME_CUBE_HF32 as ASSUME_CUBE_HF32
from simulator.arithmetic.trust import ASSUME_CUBE_RNE as ASSUME_CUBE_RNE
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW as ASSUME_GRADUAL_UNDERFLOW
from simulator.arithmetic.trust import ASSUME_RNE as ASSUME_RNE
from simulator.arithmetic.trust import ASSUME_STABLE_SORT as ASSUME_STABLE_SORT
from simulator.arithmetic.trust import ASSUME_SUM_ORDER as ASSUME_SUM_ORDER
from simulator.arithmetic.trust import CHOICES as CHOICES
from simulator.arithmetic.trust import DEFAULT as DEFAULT
from simulator.arithmetic.trust import DOCUMENTED as DOCUMENTED
from simulator.arithmetic.trust import EXACT as EXACT
from simulator.arithmetic.trust import IEEE as IEEE
from simulator.arithmetic.trust import TRUSTS as TRUSTS
from simulator.arithmetic.trust import Trust as Trust
from simulator.arithmetic.trust import stated_for as stated_for
