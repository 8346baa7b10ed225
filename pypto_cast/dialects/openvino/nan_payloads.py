"""Carries NaNs over as OpenVINO does: always the sign, and as much of the payload as fits."""

from __future__ import annotations

import enum

import numpy as np

from simulator.numbers.formats import Codes, FloatFormat


class Payload(enum.Enum):
    """The fraction bits of a NaN that are kept. Measured with openvino 2026.4.1 on x86-64."""

    CUT = "the upper bits, in software: where they are zero, that is infinity"
    QUIET = "the upper bits and the quiet bit, as the processor's instructions do"
    NONE = "the quiet bit alone"


def has_nan(codes: Codes, fmt: FloatFormat) -> bool:
    """Tells whether any code is a NaN; two reductions.

    As signed integers only positive floats are positive, as unsigned ones negative floats are the
    largest; both orders follow the magnitude.
    """
    least = _last_number(fmt) + 1
    signed = codes.view(f"i{codes.itemsize}")
    return codes.size > 0 and bool(
        np.maximum.reduce(signed) >= least or np.maximum.reduce(codes) >= fmt.sign_code + least
    )


def carry_nan(
    codes: Codes, src: FloatFormat, out: Codes, dst: FloatFormat, payload: Payload
) -> None:
    """Rewrite the NaNs of a conversion's result as OpenVINO writes them.

    Args:
        codes: source codes, 1-D.
        src: their format.
        out: destination codes, changed where the source is a NaN.
        dst: their format, one with infinities.
        payload: what is kept of the fraction.
    """
    if not has_nan(codes, src):
        return
    where = np.flatnonzero((codes & codes.dtype.type(src.sign_code - 1)) > _last_number(src))
    nans = codes[where].astype(np.uint64)
    negative = nans & np.uint64(src.sign_code) != 0
    fraction = nans & np.uint64((1 << src.man_bits) - 1)
    narrowing = src.man_bits - dst.man_bits
    if narrowing > 0:
        fraction >>= np.uint64(narrowing)
    else:
        fraction <<= np.uint64(-narrowing)
    quiet = np.uint64(1 << (dst.man_bits - 1))
    if payload is Payload.NONE:
        fraction = np.full_like(fraction, quiet)
    elif payload is Payload.QUIET:
        fraction |= quiet
    exponent = np.uint64((1 << dst.exp_bits) - 1 << dst.man_bits)
    sign = np.where(negative, np.uint64(dst.sign_code), np.uint64(0))
    out[where] = (sign | exponent | fraction).astype(out.dtype)


def _last_number(fmt: FloatFormat) -> int:
    """The magnitude above which codes are NaNs."""
    return fmt.max_code if fmt.inf_code is None else fmt.inf_code
