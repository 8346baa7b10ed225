"""The chains of native casts from one format to another, and the buffers that they take in UB."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ascend_kernels.matrix import MATRIX, CastRule, CastStep, Operand, Resolution, resolve
from ascend_kernels.program import conversions
from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion
from simulator.numbers.formats import Format, IntFormat
from simulator.numbers.rounding import RoundMode

ROUTE_FORMATS: Final[tuple[Format, ...]] = (
    f.FP32,
    f.FP16,
    f.BF16,
    f.INT4,
    f.INT8,
    f.INT16,
    f.INT32,
    f.INT64,
    f.UINT8,
)
"""The formats of the matrix."""
MOST_STEPS: Final = 4
"""Casts of a chain. The number of chains grows some fifteenfold with each."""
_SOURCE: Final = "a chain of rows of the matrix"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeCast:
    """A row of the matrix in one of its modes; None where it has none."""

    rule: CastRule
    mode: RoundMode | None

    @property
    def step(self) -> CastStep:
        """The instruction, from the input to the output."""
        (step,) = resolve(self.rule.src, self.rule.dst, self.mode, strict=True).casts
        return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Native casts of which each begins with the format that the one before ends with."""

    casts: tuple[NativeCast, ...]

    @property
    def src(self) -> Format:
        return self.casts[0].rule.src

    @property
    def dst(self) -> Format:
        return self.casts[-1].rule.dst

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats on the way, both ends included."""
        return (self.src, *(cast.rule.dst for cast in self.casts))

    @property
    def modes(self) -> tuple[RoundMode | None, ...]:
        """The mode of each cast; None where the row has none."""
        return tuple(cast.mode for cast in self.casts)

    @property
    def is_roundabout(self) -> bool:
        """Comes back to a format that it has left, or rounds what is integral to integers."""
        stays = [fmt for fmt, _ in itertools.groupby(self.formats)]
        integral = [
            cast.rule.src is cast.rule.dst or isinstance(cast.rule.src, IntFormat)
            for cast in self.casts
        ]
        in_vain = any(
            cast.rule.src is cast.rule.dst and any(integral[:place])
            for place, cast in enumerate(self.casts)
        )
        return in_vain or len(set(stays)) < len(stays)

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """The chain as conversions of each element."""
        return _conversions(self)

    def __str__(self) -> str:
        words = [str(self.src)]
        for cast in self.casts:
            words.append(f"-> {cast.rule.dst}" + (f" CAST_{cast.mode}" if cast.mode else ""))
        return " ".join(words)


@functools.lru_cache(maxsize=1 << 14)
def _conversions(chain: Chain) -> tuple[Conversion, ...]:
    return conversions(resolution_of(chain))


def single_rounding(src: Format, dst: Format, mode: RoundMode) -> Conversion:
    """The one rounding that a chain is held against: saturating, by the definition's NaN rule.

    From FP32 to FP32 it rounds to integral values.
    """
    policy = SATURATE if isinstance(dst, IntFormat) else INF_NAN
    return Conversion(src=src, dst=dst, mode=mode, policy=policy)


def all_chains(src: Format, dst: Format, steps: int) -> Iterator[Chain]:
    """Yields every chain of at most `steps` native casts, shorter ones first.

    Args:
        src: source format.
        dst: destination format.
        steps: 1 to `MOST_STEPS`.
    """
    for count in range(1, steps + 1):
        for path in _paths((src,), dst, count):
            rules = [MATRIX[pair] for pair in itertools.pairwise(path)]
            for modes in itertools.product(*(rule.modes or (None,) for rule in rules)):
                casts = zip(rules, modes, strict=True)
                yield Chain(casts=tuple(NativeCast(rule=r, mode=m) for r, m in casts))


def _paths(begun: tuple[Format, ...], dst: Format, left: int) -> Iterator[tuple[Format, ...]]:
    if left == 0:
        if begun[-1] is dst:
            yield begun
        return
    for src, over in MATRIX:
        if src is begun[-1]:
            yield from _paths((*begun, over), dst, left - 1)


def chain_named(formats: tuple[Format, ...], modes: tuple[RoundMode | None, ...]) -> Chain:
    """The chain through these formats.

    Args:
        formats: both ends included.
        modes: one for each cast; None where the row has none.

    Raises:
        KeyError: the matrix lacks a pair.
    """
    pairs = zip(itertools.pairwise(formats), modes, strict=True)
    return Chain(casts=tuple(NativeCast(rule=MATRIX[pair], mode=mode) for pair, mode in pairs))


def resolution_of(chain: Chain) -> Resolution:
    """The chain as one resolved cast, all of whose steps are taken in UB.

    Results between two casts lie where there is room: in the scratch, in the input's buffer or in
    the output's. Of all ways to place them one with the narrowest scratch is taken. A cast writes
    over its own source only where its results are no wider.
    """
    inner = len(chain.casts) - 1
    placements = (
        (Operand.IN, *between, Operand.OUT)
        for between in itertools.product((Operand.TMP, Operand.IN, Operand.OUT), repeat=inner)
    )
    places = min(
        (p for p in placements if _fits(chain, p)), key=functools.partial(_tmp_bits, chain)
    )
    rule = MATRIX.get((chain.src, chain.dst)) or CastRule(
        src=chain.src, dst=chain.dst, default=None, off=(), source=_SOURCE
    )
    return Resolution(
        rule=rule,
        mode=chain.modes[-1],
        steps=tuple(
            dataclasses.replace(cast.step, source=source, target=target)
            for cast, (source, target) in zip(chain.casts, itertools.pairwise(places), strict=True)
        ),
        diagnostics=(),
    )


def _fits(chain: Chain, places: tuple[Operand, ...]) -> bool:
    room = {Operand.IN: chain.src.bits, Operand.OUT: chain.dst.bits, Operand.TMP: 64}
    held = list(zip(chain.formats, places, strict=True))
    return all(fmt.bits <= room[place] for fmt, place in held) and all(
        place is not next_place or next_fmt.bits <= fmt.bits
        for (fmt, place), (next_fmt, next_place) in itertools.pairwise(held)
    )


def _tmp_bits(chain: Chain, places: tuple[Operand, ...]) -> int:
    held = zip(chain.formats, places, strict=True)
    return max((fmt.bits for fmt, place in held if place is Operand.TMP), default=0)
