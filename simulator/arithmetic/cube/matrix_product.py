"""The product of matrices, and the interval of every order in which a device may add.

Floats: products and partial sums are taken as FP32 operations in any order, fused or not, each off
by a relative u, 2**-23 (which truncation keeps) or, under ASSUME_CUBE_RNE, 2**-24. After d of them
a term is off by at most (1 + u)**d - 1 (Higham, Accuracy and Stability of Numerical Algorithms,
3.1). The accumulator starts at +0 or at the bias (asc-devkit Mmad.md, cmatrixInitVal), so a sum
that is exactly zero is +0. A sum of multiples of one power of two that stays below 2**24 of it is
exact in every order.

Integers: exact while the sum of magnitudes is below 2**31; beyond it nothing public says whether
the accumulator wraps or clamps.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.arithmetic.cause_codes import own_cause
from simulator.arithmetic.cube.float_product import multiply_floats
from simulator.arithmetic.cube.integer_product import multiply_integers
from simulator.arithmetic.cube.product_blocks import ProductResult
from simulator.arithmetic.evaluation import require_default_environment
from simulator.arithmetic.interval import Quantity, with_open_nans
from simulator.arithmetic.trust import (
    ASSUME_GRADUAL_UNDERFLOW,
    ASSUME_NAN_PATTERN,
    CHOICES,
    DEFAULT,
    Trust,
)
from simulator.numbers import float_environment
from simulator.numbers.formats import BF16, FP16, FP32, INT8, INT32, FloatFormat, Format

_FORMATS: Final[tuple[Format, ...]] = (INT8, FP16, BF16, FP32)
_ASSUMED_OF_FLOATS: Final = {*CHOICES.values(), ASSUME_GRADUAL_UNDERFLOW}


@float_environment.quiet()
def matmul(
    a: Quantity,
    b: Quantity,
    fmt: Format,
    *,
    bias: Quantity | None = None,
    trust: Trust = DEFAULT,
    cause: int = 0,
) -> Quantity:
    """Multiply matrices as the cube does.

    Infinities and NaN give what IEEE 754 gives in every order; where a sum of magnitudes can exceed
    the largest FP32 number, anything is possible. INT32 values wrap.

    Args:
        a: [..., M, K]; any strides.
        b: [..., K, N]; leading axes broadcast.
        fmt: of both: INT8, FP16, BF16 or FP32.
        bias: INT32 for INT8, else FP32, of a shape that broadcasts to [..., 1, N]; the sum starts
            with it.
        trust: ASSUME_CUBE_RNE, ASSUME_CUBE_HF32 and ASSUME_GRADUAL_UNDERFLOW count.
        cause: the caller's index of this operation.

    Returns:
        [..., M, N] in INT32 for INT8, else in FP32.

    Raises:
        ValueError: another format, or shapes that do not fit.
        RuntimeError: this thread does not round to nearest or flushes subnormal numbers.
    """
    require_default_environment()
    out = INT32 if fmt is INT8 else FP32
    _check(a, b, fmt, bias, out)
    (rows, terms), columns = a.shape[-2:], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide_a, wide_b = (
        _spread_over(a, (*batch, rows, terms)),
        _spread_over(b, (*batch, terms, columns)),
    )
    wide_bias = None if bias is None else _spread_over(bias, (*batch, 1, columns))
    if isinstance(fmt, FloatFormat):
        cause = own_cause(cause, trust, *_ASSUMED_OF_FLOATS)
    result = ProductResult((*batch, rows, columns), out.dtype, cause)
    for index in np.ndindex(batch):
        added = None if wide_bias is None else wide_bias[index]
        if isinstance(fmt, FloatFormat):
            multiply_floats(result, index, wide_a[index], wide_b[index], added, fmt, trust, cause)
        else:
            multiply_integers(result, index, wide_a[index], wide_b[index], added, trust, cause)
    product = result.quantity()
    if isinstance(out, FloatFormat) and ASSUME_NAN_PATTERN not in trust.assumed:
        product = with_open_nans(product, out, trust, cause)
    return product


def _spread_over(x: Quantity, shape: tuple[int, ...]) -> Quantity:
    return x.map(lambda array: np.broadcast_to(array, shape))


def _check(a: Quantity, b: Quantity, fmt: Format, bias: Quantity | None, out: Format) -> None:
    if fmt not in _FORMATS:
        raise ValueError(f"matmul takes {', '.join(map(str, _FORMATS))}, not {fmt}")
    for x, wanted in ((a, fmt), (b, fmt), *(() if bias is None else ((bias, out),))):
        if x.values.dtype != wanted.dtype:
            raise ValueError(f"an operand of matmul has dtype {x.values.dtype}, not {wanted.dtype}")
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"matmul takes [..., M, K] and [..., K, N], not {list(a.shape)} and {list(b.shape)}"
        )
