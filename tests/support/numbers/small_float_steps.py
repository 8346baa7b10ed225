"""An 8-bit result of FP32 is a step function: the oracle decides both ends of each step.

Between two thresholds the result stays, so that the engines are held against all codes without a
fraction for each: a block of codes at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from support.numbers import oracle
from support.numbers.small_floats import SMALL_FLOATS, Value, encode, thresholds

from simulator.numbers import elementwise
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    Conversion,
    Policy,
)
from simulator.numbers.engines import Engine
from simulator.numbers.formats import FORMATS, FP32, Codes, FloatFormat
from simulator.numbers.rounding import RoundMode

MODES: Final = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")
MODES_OF: Final = {"HF8": ("ROUND",)}
BLOCK: Final = 1 << 24
BLOCKS: Final = (1 << 31) // BLOCK
"""Of each sign."""
ENGINES: Final[tuple[Engine, ...]] = ("numpy", "auto")
"""The second has native loops where the machine has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A conversion of FP32 of one sign, as steps.

    Attributes:
        chain: the conversion.
        sign: bit 31 of its codes.
        starts: the codes without their sign at which steps begin.
        results: of each step.
    """

    chain: tuple[Conversion]
    sign: int
    starts: Codes
    results: Codes

    def faults(self, blocks: Iterable[int]) -> Iterator[str]:
        """A line for each engine and block in which a code has another result than its step."""
        for block in blocks:
            start = block * BLOCK
            codes = np.arange(start, start + BLOCK, dtype=np.uint32) | np.uint32(self.sign)
            ends = np.searchsorted(self.starts, [start, start + BLOCK - 1], side="right")
            first, last = (ends - 1).tolist()
            edges = [start, *self.starts[first + 1 : last + 1].tolist(), start + BLOCK]
            wanted = np.repeat(self.results[first : last + 1], np.diff(edges))
            for engine in ENGINES:
                found = np.empty(BLOCK, np.uint8)
                elementwise.run(self.chain, codes, found, engine=engine)
                if not np.array_equal(found, wanted):
                    (policy,) = (each.policy for each in self.chain)
                    yield f"{policy} {engine} from {start | self.sign:#x}"


def cases() -> Iterator[tuple[FloatFormat, RoundMode]]:
    """The destinations and modes of FP32."""
    for name in SMALL_FLOATS:
        if name != "E8M0":
            fmt = FORMATS[name]
            assert isinstance(fmt, FloatFormat)
            for mode in MODES_OF.get(name, MODES):
                yield fmt, RoundMode[mode]


def policies(dst: FloatFormat) -> tuple[Policy, ...]:
    """Those that differ: a format without infinity and NaN always has the largest number and 0."""
    return (INF_NAN,) if dst.nan_code is None else (INF_NAN, SATURATE, SATURATE_KEEP_NAN)


def by_fractions(codes: Codes, src: FloatFormat, name: str, mode: str, policy: Policy) -> Codes:
    """The results that the oracle gives."""
    wanted = []
    for code in codes.tolist():
        kind, negative, magnitude = oracle.decode(code, src.name)
        wanted.append(
            encode(
                Value(kind, negative, magnitude),
                name,
                mode,
                saturates=policy is not INF_NAN,
                keeps_nan=policy is SATURATE_KEEP_NAN,
            )
        )
    return np.array(wanted, np.uint8)


def steps(dst: FloatFormat, mode: RoundMode) -> Iterator[Steps]:
    """The steps of a destination and a mode, by policy and sign.

    Between two thresholds, and on each, the first and the last code have one result.
    """
    exact = np.array([float(x) for x in thresholds(dst.name)]).astype(np.float32).view(np.uint32)
    marks = np.unique(np.concatenate([exact, np.array([0, 0x7F800000], np.uint32)]))
    starts = np.unique(np.concatenate([marks, marks + np.uint32(1)]))
    ends = np.append(starts[1:] - np.uint32(1), np.uint32((1 << 31) - 1)).astype(np.uint32)
    for policy, sign in itertools.product(policies(dst), (0, 1 << 31)):
        first, last = (
            by_fractions(codes | np.uint32(sign), FP32, dst.name, mode.name, policy)
            for codes in (starts, ends)
        )
        np.testing.assert_array_equal(first, last)
        conversion = Conversion(src=FP32, dst=dst, mode=mode, policy=policy)
        yield Steps(chain=(conversion,), sign=sign, starts=starts, results=first)
