"""Ranks the chains from one format to another: for each way the best modes, and its verdict.

What the committed table has is read from it, not computed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ascend_kernels.matrix import READ_OTHERWISE, CastRule, rules_of
from ascend_kernels.routing.chain_check import (
    DifferingCode,
    Evidence,
    Question,
    RouteError,
    Verdict,
    all_values,
    between_thresholds,
    enumerated,
    judge,
)
from ascend_kernels.routing.chains import (
    MOST_STEPS,
    Chain,
    Rules,
    all_chains,
    chain_named,
    function_of,
    route_estimate,
    route_formats,
    route_program,
    single_rounding,
)
from ascend_kernels.routing.value_ranks import Function, codes_at, is_nan, last_rank, ranks_of
from ascend_kernels.routing.verdict_table import TABLE_STEPS, RecordedRoute, recorded_rows
from simulator.arithmetic.cast_choices import (
    ODD_UNDERFLOW_RULE,
    OVERFLOW_RULE,
    ChosenRule,
    without_subnormals,
)
from simulator.arithmetic.trust import ASSUME_GRADUAL_UNDERFLOW
from simulator.corrections import READINGS, ElementStep, Readings, merged, value_of_reading
from simulator.machine.core import ScalarWork
from simulator.machine.isa import ScalarOp
from simulator.numbers.formats import FORMATS, FP32, Codes, FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, CHIPS, DEFAULT_CHIP, Chip

STRETCHES: Final = 128
_CODES_OF_A_STRETCH: Final = 256
FULL: Final = 100
RANKED_ELEMS: Final = 1 << 20
"""Elements of the tensor whose cycles rank chains that are equally good."""
RANKED_TILE: Final = 8192
_WAYS: Final = 8
"""Ways, the fewest differences on boundary codes first, that get a verdict."""
_FEW: Final = 3
"""Choices of modes of a way, the fewest differences on boundary codes first, that get a verdict."""
_MANY: Final = 48
"""The same where no way is exact: ties, of which boundary codes are full, say little there."""
IDENTITY_BASIS: Final = "one native cast is the single rounding"


def _multiplies(step: ElementStep) -> bool:
    return isinstance(step, ScalarWork) and step.op is ScalarOp.MULS


CHOSEN_RULES: Final = (
    ODD_UNDERFLOW_RULE,
    OVERFLOW_RULE,
    ChosenRule(
        assumption=ASSUME_GRADUAL_UNDERFLOW,
        own_statement="Muls takes and gives subnormal numbers",
        otherwise="were they zero",
        concerns=_multiplies,
        reads=lambda step, codes: without_subnormals(step.src, codes),
        gives=lambda step, _, results: without_subnormals(step.dst, results),
    ),
)
"""The chosen rules that a chain may rest on. A rule that its last cast follows too bears on the
single rounding alike, so only the casts before it are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedChain:
    """A chain with its verdict, and the cycles of 1048576 elements in tiles of 8192."""

    chain: Chain
    verdict: Verdict
    cycles: float


def check_ends(src: Format, dst: Format, steps: int, family: str = A2_A3) -> None:
    """Refuse questions that no chain can answer.

    Raises:
        RouteError: a format that the matrix lacks, equal formats, or a number of steps out of
            range.
    """
    formats = route_formats(family)
    known = ", ".join(fmt.name for fmt in formats)
    for fmt in (src, dst):
        if fmt not in formats:
            raise RouteError(
                f"no route {src} -> {dst}: {family} casts nothing from or to {fmt}; routes are "
                f"between {known}{_holder_words(fmt, formats)}"
            )
    if src is dst and src is not FP32:
        raise RouteError(f"{src} -> {dst} changes nothing and needs no route")
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MOST_STEPS:
        raise RouteError(f"steps must be 1 to {MOST_STEPS}, not {steps!r}")


def _holder_words(fmt: Format, formats: Sequence[Format]) -> str:
    """Names the narrowest format of its kind that holds every value of another one."""
    holders = [one for one in formats if _holds(one, fmt)]
    nearest = min(holders, key=lambda one: one.bits, default=None)
    return "" if nearest is None else f". {nearest} holds every value of {fmt}"


def _holds(wider: Format, fmt: Format) -> bool:
    if isinstance(wider, IntFormat) and isinstance(fmt, IntFormat):
        return wider.min <= fmt.min and fmt.max <= wider.max
    if isinstance(wider, IntFormat) or isinstance(fmt, IntFormat) or wider.dots or fmt.dots:
        return False
    return wider.man_bits >= fmt.man_bits and wider.emin <= fmt.emin and _top(wider) >= _top(fmt)


def _top(fmt: FloatFormat) -> int:
    """The exponent of the largest number."""
    return (fmt.max_code >> fmt.man_bits) - fmt.bias


def ranked_chains(
    question: Question, mode: RoundMode, steps: int, *, exhaustive: bool = False
) -> tuple[RankedChain, ...]:
    """The ways over formats, each with the best modes; eight at most, the best first.

    Exact ones come first, then those with the fewest differing codes, then those that rest on no
    chosen rule, then a cast alone, then the fewest cycles. A roundabout way is left out, unless
    such alone are exact.

    Args:
        question: formats and sources.
        mode: of the single rounding.
        steps: native casts of a chain, at most.
        exhaustive: show that the best one is exact on every code of a 32-bit source.

    Raises:
        RouteError: the thresholds of the best one and its codes do not agree, under `exhaustive`.
    """
    src, dst, family = question.src, question.dst, question.family
    readings = question.readings
    single = function_of((single_rounding(src, dst, mode, family, readings),), readings)
    chains = list(all_chains(src, dst, steps, family=family, readings=readings))
    counts = _boundary_counts(question, chains, single)
    by_formats: dict[tuple[Format, ...], list[Chain]] = {}
    for chain in chains:
        by_formats.setdefault(chain.formats, []).append(chain)
    least = {formats: min(map(counts.__getitem__, way)) for formats, way in by_formats.items()}
    ways = sorted(by_formats.values(), key=lambda way: least[way[0].formats])
    is_native = bool(ways) and len(ways[0][0].casts) == 1 and not least[ways[0][0].formats]
    if is_native and not question.has_few_results:
        # The row itself does it; that others do too could be seen by every code alone.
        ways = [ways[0], *(way for way in ways[1:] if least[way[0].formats])]
    straight = ([way for way in ways if not way[0].is_roundabout] or ways)[:_WAYS]
    round_about = [way for way in ways if way[0].is_roundabout and not least[way[0].formats]]
    found = _best_of_each(question, straight, counts, mode, _FEW)
    if not any(one.verdict.is_exact for one in found):
        found = _best_of_each(question, straight, counts, mode, _MANY)
        found += _scaled_chains(question, mode, steps, single)
        again = _best_of_each(question, round_about, counts, mode, _FEW)
        found += [best for best in again if best.verdict.is_exact]
    found.sort(key=_rank)
    if exhaustive and found and question.is_enumerable:
        found[0] = _shown(question, found[0], single)
    return tuple(found)


def _scaled_chains(
    question: Question, mode: RoundMode, steps: int, single: Function
) -> list[RankedChain]:
    """The best of the chains with a scaled step."""
    ends = question.src, question.dst
    family, readings = question.family, question.readings
    chains = list(all_chains(*ends, steps, scaled=True, family=family, readings=readings))
    counts = _boundary_counts(question, chains, single)
    ways: dict[tuple[Format, ...], list[Chain]] = {}
    for chain in sorted(chains, key=counts.__getitem__):
        ways.setdefault(chain.formats, []).append(chain)
    return _best_of_each(question, list(ways.values())[:_WAYS], counts, mode, _FEW)


def _shown(question: Question, judged: RankedChain, single: Function) -> RankedChain:
    """The chain with a verdict by every code, where it was proved to be exact."""
    before = judged.verdict
    if before.standing is not Evidence.PROVED or before.basis == IDENTITY_BASIS:
        return judged
    function = function_of(judged.chain.conversions, question.readings)
    verdict = enumerated(question, function, single)
    if not verdict.is_exact:
        raise RouteError(f"{judged.chain} {before} by its thresholds, and {verdict} by every code")
    shown = dataclasses.replace(verdict, rests_on=before.rests_on)
    return dataclasses.replace(judged, verdict=shown)


def _rank(one: RankedChain) -> tuple[bool, int, bool, bool, float]:
    verdict = one.verdict
    is_chain = len(one.chain.casts) > 1
    return not verdict.is_exact, verdict.differing, bool(verdict.rests_on), is_chain, one.cycles


def _boundary_counts(
    question: Question, chains: Sequence[Chain], single: Function
) -> dict[Chain, int]:
    """The number of boundary codes on which each chain differs from the single rounding."""
    codes = question.boundaries()
    wanted = single(codes)

    # Chains that begin alike follow each other; their common beginning is converted once.
    @functools.lru_cache(maxsize=256)
    def converted(begun: tuple[ElementStep, ...]) -> Codes:
        before = converted(begun[:-1]) if len(begun) > 1 else codes
        return function_of(begun[-1:], question.readings)(before)

    return {
        chain: int(np.count_nonzero(converted(chain.conversions) != wanted)) for chain in chains
    }


def _best_of_each(
    question: Question,
    ways: Iterable[Iterable[Chain]],
    counts: dict[Chain, int],
    mode: RoundMode,
    most: int,
) -> list[RankedChain]:
    judged = (_best(question, way, counts, mode, most) for way in ways)
    return [best for best in judged if best is not None]


def _best(
    question: Question,
    way: Iterable[Chain],
    counts: dict[Chain, int],
    mode: RoundMode,
    most: int,
) -> RankedChain | None:
    """The best modes of a way, and the verdict; None where there is no verdict."""
    order = sorted(way, key=lambda chain: (counts[chain], _foreign_modes(chain, mode)))
    judged: list[RankedChain] = []
    for chain in order:
        if len(judged) >= most and counts[chain]:
            break
        verdict = chain_verdict(question, chain, mode)
        if verdict is None:
            continue
        judged.append(RankedChain(chain=chain, verdict=verdict, cycles=cycles_of(chain)))
        if verdict.is_exact and not verdict.rests_on:
            break
    return min(judged, key=_rank, default=None)


def _foreign_modes(chain: Chain, mode: RoundMode) -> int:
    """Modes that are not the one asked for: of equally good chains the plainest is taken."""
    return sum(one not in (None, mode) for one in chain.modes)


def chain_verdict(question: Question, chain: Chain, mode: RoundMode) -> Verdict | None:
    """The verdict on one chain, and the chosen rules and readings that it rests on.

    Args:
        question: which sources.
        chain: from the question's source to its destination.
        mode: of the single rounding.

    Returns:
        None where there is none; see `judge`.
    """
    once = single_rounding(chain.src, chain.dst, mode, chain.family, question.readings)
    conversions = chain.conversions
    if conversions == (once,):
        return Verdict(
            standing=Evidence.PROVED,
            codes=question.codes,
            differing=0,
            basis=IDENTITY_BASIS,
            exact_range=question.ends,
            rests_on=_readings_behind(chain, question.readings),
        )
    single = function_of((once,), question.readings)
    verdict = judge(question, function_of(conversions, question.readings), single)
    if verdict is None or not verdict.is_exact:
        return verdict
    rests = (_rest(question, conversions, rule, single) for rule in CHOSEN_RULES)
    texts = (*(text for text in rests if text), *_readings_behind(chain, question.readings))
    return dataclasses.replace(verdict, rests_on=texts)


def _readings_behind(chain: Chain, readings: Readings) -> tuple[str, ...]:
    """The words for the readings without which a cast of a chain would not be there."""
    return tuple(
        f"{cast} is there by the reading {name}={value}, and not by {name}={other}"
        for name, value, other, rules in _other_rules(chain.family, readings)
        for cast in chain.casts
        if isinstance(cast.rule, CastRule) and not cast.is_among(rules)
    )


@functools.lru_cache(maxsize=64)
def _other_rules(family: str, readings: Readings) -> tuple[tuple[str, str, str, Rules], ...]:
    """The name of each reading of a family, its value, the other one, and the rows under that."""
    found = []
    for name in dict.fromkeys(name for name, _ in READ_OTHERWISE.get(family, ())):
        value = value_of_reading(READINGS[name], readings)
        other = READINGS[name].other(value)
        found.append((name, value, other, rules_of(family, merged(readings, {name: other}))))
    return tuple(found)


def _rest(
    question: Question, conversions: tuple[ElementStep, ...], rule: ChosenRule, single: Function
) -> str | None:
    """The words for a rule that an exact chain rests on."""
    if not any(rule.concerns(conversion) for conversion in conversions[:-1]):
        return None

    def otherwise(codes: Codes) -> Codes:
        for conversion in conversions[:-1]:
            if rule.concerns(conversion):
                codes = rule.changed(conversion, codes)
            else:
                codes = function_of((conversion,), question.readings)(codes)
        return function_of(conversions[-1:], question.readings)(codes)

    compare = between_thresholds if question.has_few_results else enumerated
    verdict = compare(question, otherwise, single)
    if verdict.is_exact:
        return None
    return f"{rule.rule}; {rule.otherwise}, {verdict.differing:,} codes would differ"


@functools.cache
def ranked_chip(family: str) -> Chip:
    """The default chip, or the first of another family."""
    chips = (DEFAULT_CHIP, *CHIPS.values())
    return next(chip for chip in chips if chip.isa == family)


@functools.lru_cache(maxsize=1 << 12)
def cycles_of(chain: Chain) -> float:
    """Estimated cycles of 1048576 elements in tiles of 8192 on the family's default chip."""
    program = route_program(chain, (RANKED_ELEMS,), (RANKED_TILE,), ranked_chip(chain.family))
    return route_estimate(program).cycles


def differing_shares(chain: Chain, mode: RoundMode) -> list[int]:
    """The share of differing codes on each of 128 equal stretches of the source's codes, in
    percent; the codes are in the order of their values, NaN is left out.

    Of each stretch 256 evenly spaced codes are tried; where none of them differs but a boundary
    code does, the share is 1.
    """
    question = all_values(chain.src, chain.dst)
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


_ALWAYS: Final = ("standing", "codes", "basis")


def lookup(
    question: Question, mode: RoundMode, steps: int, *, exhaustive: bool = False
) -> tuple[RankedChain, ...]:
    """The ranked chains: from the table where it has them, else computed now.

    Args:
        question: formats and sources.
        mode: of the single rounding.
        steps: native casts of a chain, at most.
        exhaustive: compute, and show that the best one is exact on every code.
    """
    src, dst = question.src, question.dst
    family = question.family
    if steps == TABLE_STEPS and not exhaustive and question == all_values(src, dst, family):
        rows = recorded_rows(family).get((src.name, dst.name, mode.name), ())
        if rows:
            return tuple(map(_ranked, rows))
    return ranked_chains(question, mode, steps, exhaustive=exhaustive)


def route_row(ranked: RankedChain) -> dict[str, Any]:
    """The row of the table for a chain, without the fields that have their usual values."""
    verdict = ranked.verdict
    fields = {
        field.name: getattr(verdict, field.name)
        for field in dataclasses.fields(Verdict)
        if field.name in _ALWAYS or getattr(verdict, field.name) != field.default
    }
    fields["standing"] = verdict.standing.name
    if verdict.first:
        fields["first"] = [[d.code, d.found, d.wanted] for d in verdict.first]
    return {"route": str(ranked.chain), **fields}


def _ranked(row: RecordedRoute) -> RankedChain:
    fields = dict(row.verdict)
    first = [DifferingCode(code=c, found=f, wanted=w) for c, f, w in fields.get("first", ())]
    ends = fields.get("exact_range")
    verdict = Verdict(
        **{
            **fields,
            "standing": Evidence[fields["standing"]],
            "first": tuple(first),
            "exact_range": None if ends is None else (ends[0], ends[1]),
            "rests_on": tuple(fields.get("rests_on", ())),
        }
    )
    chain = chain_of_text(row.route)
    return RankedChain(chain=chain, verdict=verdict, cycles=cycles_of(chain))


def chain_of_text(text: str) -> Chain:
    """The chain that a text such as "FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT" spells."""
    formats, modes = [], []
    for word in text.split(" -> "):
        name, _, mode = word.partition(" ")
        formats.append(FORMATS[name])
        modes.append(mode)
    return chain_named(tuple(formats), tuple(modes[1:]))
