"""Chains of casts and vector instructions by exact fractions, one step after the other."""

from __future__ import annotations

from functools import lru_cache

from support.numbers.oracle import ROW_OF, expected, rounded_once, with_scalar

from ascend_kernels.matrix import CastStep, ScalarStep, Step
from ascend_kernels.routing.chains import Chain

once = lru_cache(maxsize=1 << 20)(rounded_once)
_EXPECTED = lru_cache(maxsize=1 << 20)(expected)
_WITH_SCALAR = lru_cache(maxsize=1 << 20)(with_scalar)


def by_oracle(code: int, chain: Chain) -> int:
    """The code that a chain leads to."""
    return along([code], chain)[0]


def along(codes: list[int], chain: Chain) -> list[int]:
    """`by_oracle` of every code."""
    for step in chain.work:
        following = {code: _after(code, step) for code in dict.fromkeys(codes)}
        codes = [following[code] for code in codes]
    return codes


def _after(code: int, step: Step) -> int:
    if isinstance(step, ScalarStep):
        return _WITH_SCALAR(code, step.op.value, step.format.name, step.scalar)
    assert isinstance(step, CastStep)
    src, dst = step.src.name, step.dst.name
    mode = step.mode.name if step.mode else ROW_OF[src, dst].default
    return _EXPECTED(code, src, dst, mode, satmode="OFF" if step.truncates else "ON")
