"""The picture of a chain: where along the source's values it differs from one rounding."""

from __future__ import annotations

from typing import Final

import numpy as np

from ascend_kernels.routing.chain_ranking import function_of
from ascend_kernels.routing.chains import Chain, single_rounding
from ascend_kernels.routing.code_order import codes_at, is_nan, last_rank, ranks_of
from ascend_kernels.routing.judging import whole
from simulator.numbers.formats import Format
from simulator.numbers.rounding import RoundMode

STRETCHES: Final = 128
_CODES_OF_A_STRETCH: Final = 256
FULL: Final = 100


def differing_shares(chain: Chain, mode: RoundMode) -> list[int]:
    """The share of differing codes on each of 128 equal stretches of the source's codes, in
    percent; the codes are in the order of their values, NaN is left out.

    Of each stretch 256 evenly spaced codes are tried; where none of them differs but a boundary
    code does, the share is 1.
    """
    question = whole(chain.src, chain.dst)
    function = function_of(chain.conversions)
    single = function_of((single_rounding(chain.src, chain.dst, mode),))
    count = STRETCHES * _CODES_OF_A_STRETCH
    last = last_rank(chain.src)
    places = np.arange(count) * (last / (count - 1))
    codes = codes_at(np.minimum(places, np.nextafter(last, 0)).astype(np.uint64), chain.src)
    tried = (function(codes) != single(codes)).reshape(STRETCHES, -1)
    shares = np.ceil(FULL * tried.mean(axis=1)).astype(np.int64)
    boundaries = question.boundaries()
    boundaries = boundaries[~is_nan(boundaries, chain.src)]
    different = boundaries[function(boundaries) != single(boundaries)]
    stretches = ranks_of(different, chain.src).astype(np.float64) / (last + 1) * STRETCHES
    some = np.minimum(stretches.astype(np.int64), STRETCHES - 1)
    shares[some] = np.maximum(shares[some], 1)
    return [int(share) for share in shares]


def stretch_codes(fmt: Format, parts: int) -> list[int]:
    """The codes at the ends of equal parts of a format's values, in their order."""
    last = last_rank(fmt)
    ranks = np.array([last * part // parts for part in range(parts + 1)], np.uint64)
    return [int(code) for code in codes_at(ranks, fmt)]
