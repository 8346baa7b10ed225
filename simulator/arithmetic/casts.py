"""Casts of enclosures: both ends go through the conversions that the values go through.

Rounding, clamping and overflow are monotone, so a conversion of the ends is the end of the
conversions. Three things are not: low bits that are kept of an integer, truth, and overflow to NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simulator import corrections as corrected_casts
from simulator.arithmetic.cast_choices import ChosenRule, concerned, doubted_rules
from simulator.arithmetic.interval import (
    Bounds,
    Choices,
    Enclosure,
    Interval,
    all_same_code,
    changed,
    either,
    exactly,
    union,
    unknown,
)
from simulator.arithmetic.operation import Array
from simulator.arithmetic.total_order import (
    Bools,
    any_nan,
    greater,
    is_nan,
    lesser,
    nan_value,
    same_code,
    wrap_apart,
)
from simulator.arithmetic.trust import DEFAULT, Trust, choice_bits, own_cause
from simulator.corrections import NO_CORRECTIONS, Corrections
from simulator.numbers import float_environment, result_memory
from simulator.numbers.convert import INF_NAN, Conversion, codes_of, values_of
from simulator.numbers.engines import Engine
from simulator.numbers.formats import BOOL, INT64, FloatFormat, Format, IntFormat

Convert = Callable[[tuple[Conversion, ...], Array], Array]


def cast(
    conversions: tuple[Conversion, ...],
    operand: Enclosure,
    *,
    trust: Trust = DEFAULT,
    cause: int = 0,
    exact: bool = False,
    threads: int = 1,
    corrections: Corrections = NO_CORRECTIONS,
    engine: Engine = "auto",
) -> Enclosure:
    """Apply a chain of conversions.

    NaN, infinity, -0 and overflow become what the conversions make of them. Where NaN is possible
    besides, its result joins the interval: 0 in an integer format. An interval whose ends meet is
    certain; open elements keep their cause.

    Args:
        conversions: one or more, each from the format that the one before gives.
        operand: values of the first source format, any shape; not modified.
        trust: what is taken for granted; without one of the chosen rules of casts a result may be
            that of its other possibility too.
        cause: the caller's index of the cast, for elements that it leaves open.
        exact: take the definition instead of the fast paths.
        threads: how many threads to share the work among.
        corrections: what a measured device converts in its own way. Where greater numbers do not
            give greater results, open elements may be anything.
        engine: as for `evaluate`, of casts that wait with operations; "auto" runs all others.

    Returns:
        Values of the last destination format, C-contiguous.
    """
    from simulator.arithmetic.native import operation_nodes as native

    doubted = [doubted_rules(each, trust) for each in conversions]
    names_choices = trust.names_choices and any(doubted)
    if not ((any(doubted) and not names_choices) or exact or corrections.touch(conversions)):
        again = functools.partial(
            cast, conversions, trust=trust, cause=cause, threads=threads, engine="numpy"
        )
        waiting = native.waiting_cast(
            *(conversions, operand, again),
            names_choices=names_choices,
            engine=engine,
            threads=threads,
        )
        if waiting is not None:
            return waiting
    is_plain = operand.interval is None and not any(doubted)

    def convert(chain: tuple[Conversion, ...], values: Array) -> Array:
        dst = chain[-1].dst
        codes = result_memory.empty(values.size, dst.code_dtype)
        corrected_casts.run(chain, values, codes, corrections, exact=exact, threads=threads)
        return values_of(codes, dst).reshape(values.shape)

    values = convert(conversions, operand.values)
    if is_plain:
        return Enclosure(values=values)
    with float_environment.quiet():
        interval = operand.interval or exactly(operand.values)
        if not corrections.is_monotone(conversions):
            anything = unknown(values, conversions[-1].dst, 0)
            certain = interval.certain()
            low, high = (np.where(certain, values, end) for end in (anything.low, anything.high))
            nan = None if anything.may_be_nan is None else ~certain
            held = Interval(low=low, high=high, may_be_nan=nan, cause=interval.cause)
            return Enclosure(values=values, interval=held)
        ends = operand.bounds()
        choices = Choices(trust.names_choices)
        monotone = all(not each.policy.overflow.keeps_low_bits for each in conversions)
        if monotone and not any(doubted):
            ends = _through(conversions, ends, convert)
        else:
            for conversion, rules in zip(conversions, doubted, strict=True):
                ends = _doubtfully(conversion, rules, ends, convert, choices)
        if ends.nan is None and all_same_code(ends.low, ends.high):
            return Enclosure(values=values)
        causes = interval.cause
        if any(doubted):
            own = np.uint16(own_cause(cause, trust))
            is_open = False if operand.interval is None else ~interval.certain()
            causes = np.broadcast_to(np.where(is_open, causes, own) | choices.bits, values.shape)
        return Enclosure(values=values, interval=ends.interval(causes))


def _doubtfully(
    conversion: Conversion,
    rules: Sequence[ChosenRule],
    ends: Bounds,
    convert: Convert,
    choices: Choices,
) -> Bounds:
    """Convert ends, those that a rule concerns by its other possibility too."""
    result = _through((conversion,), ends, convert)
    if not rules:
        return result
    src = conversion.src
    special = concerned(conversion, codes_of(ends.low, src))
    if ends.high is not ends.low:
        special |= concerned(conversion, codes_of(ends.high, src))
    if ends.nan is not None:
        special |= ends.nan
    if not special.any():
        return result
    found, bits = _either_way(conversion, rules, ends.piece(special), convert, choices.are_named)
    choices.add(special, bits)
    return result.patched(special, found)


def _either_way(
    conversion: Conversion,
    rules: Sequence[ChosenRule],
    ends: Bounds,
    convert: Convert,
    are_named: bool,
) -> tuple[Bounds, Any]:
    """Convert ends by every rule and by its other possibility, and tell the choices, as bits.

    A choice is told where its other possibility alone gives something else.
    """
    choices = Choices(are_named)
    if are_named:
        alone = _through((conversion,), ends, convert)
        for rule in rules:
            read = _read_otherwise(rule, conversion, ends)
            given = _through((conversion,), read, convert)
            found = _given_otherwise(rule, conversion, read, _hull(alone, given, conversion.dst))
            choices.record(choice_bits(rule.assumption), alone, found)
    for rule in rules:
        ends = _read_otherwise(rule, conversion, ends)
    result = _through((conversion,), ends, convert)
    for rule in rules:
        result = _given_otherwise(rule, conversion, ends, result)
    return result, choices.bits


def _read_otherwise(rule: ChosenRule, conversion: Conversion, ends: Bounds) -> Bounds:
    """The sources that ends and a rule's other possibility read."""
    src = conversion.src
    low, high = (
        values_of(rule.reads(conversion, codes_of(end, src)), src) for end in (ends.low, ends.high)
    )
    return _hull(ends, Bounds(low=low, high=high, nan=ends.nan), src)


def _given_otherwise(
    rule: ChosenRule, conversion: Conversion, ends: Bounds, result: Bounds
) -> Bounds:
    """The results that a conversion of ends and a rule's other possibility give."""
    src, dst = conversion.src, conversion.dst
    low, high = (
        values_of(rule.gives(conversion, codes_of(end, src), codes_of(got, dst)), dst)
        for end, got in ((ends.low, result.low), (ends.high, result.high))
    )
    other = Bounds(low=low, high=high, nan=result.nan)
    if ends.nan is not None and isinstance(src, FloatFormat) and isinstance(dst, FloatFormat):
        source = codes_of(nan_value(src).reshape(1), src)
        has_nan = dst.nan_code is not None
        got = codes_of(nan_value(dst).reshape(1), dst) if has_nan else conversion.reference(source)
        of_nan = rule.gives(conversion, source, got)
        other = _with_number(other, ends.nan, values_of(of_nan, dst), dst)
    return _hull(result, other, dst)


def _with_number(ends: Bounds, where: Bools, number: Array, fmt: Format) -> Bounds:
    """Let some elements be a number besides; a NaN is none."""
    if is_nan(number, fmt).all():
        return ends
    one = np.broadcast_to(number, ends.low.shape)
    both = union(ends, Bounds(low=one, high=one), fmt)
    low, high = np.where(where, both.low, ends.low), np.where(where, both.high, ends.high)
    return Bounds(low=low, high=high, nan=ends.nan)


def _hull(ends: Bounds, other: Bounds, fmt: Format) -> Bounds:
    """Bounds of both, with open bits where both are NaN and not the same one."""
    differs = changed(ends, other)
    if not differs.any():
        return ends
    hull = union(ends, other, fmt)
    if not any_nan(ends.low, fmt):
        return hull
    other_bits = differs & is_nan(ends.low, fmt) & is_nan(other.low, fmt)
    return Bounds(low=hull.low, high=hull.high, nan=either(hull.nan, other_bits))


def _through(chain: tuple[Conversion, ...], ends: Bounds, convert: Convert) -> Bounds:
    first, dst = chain[0], chain[-1].dst
    low = convert(chain, ends.low)
    high = low if ends.high is ends.low else convert(chain, ends.high)
    if dst is BOOL:
        contains_zero = (ends.low <= 0) & (ends.high >= 0)
        low, high = low & high & ~contains_zero, low | high
    elif first.policy.overflow.keeps_low_bits:
        low, high = _low_bits(first, ends, low, high, convert)
    lost = None
    if any_nan(low, dst) or (high is not low and any_nan(high, dst)):
        # Overflow became NaN, or both ends have always been.
        lost = is_nan(low, dst) | is_nan(high, dst)
        lost &= ~is_nan(ends.low, first.src) & ~same_code(ends.low, ends.high)
        low, high = _anything(dst, lost, low, high)
        lost = lost if lost.any() else None
    if ends.nan is None:
        return Bounds(low=low, high=high, nan=lost)
    assert isinstance(first.src, FloatFormat)
    of_nan = convert(chain, nan_value(first.src).reshape(1))
    if is_nan(of_nan, dst).all():
        return Bounds(low=low, high=high, nan=either(ends.nan, lost))
    low = np.where(ends.nan, lesser(low, of_nan, dst), low)
    high = np.where(ends.nan, greater(high, of_nan, dst), high)
    return Bounds(low=low, high=high, nan=lost)


def _low_bits(
    conversion: Conversion, ends: Bounds, low: Array, high: Array, convert: Convert
) -> tuple[Array, Array]:
    """Keep the order of low bits where both ends lie in one window of 2**bits, or are one value."""
    dst = conversion.dst
    assert isinstance(dst, IntFormat)
    whole = replace(conversion, dst=INT64, policy=INF_NAN)
    least, most = (convert((whole,), end) for end in (ends.low, ends.high))
    apart = wrap_apart(least, most, dst) & ~same_code(ends.low, ends.high)
    least, most = (np.array(end, dst.dtype) for end in (dst.min, dst.max))
    return np.where(apart, least, low), np.where(apart, most, high)


def _anything(dst: Format, where: Bools, low: Array, high: Array) -> tuple[Array, Array]:
    if not isinstance(dst, FloatFormat):
        return low, high
    most = dst.max_code
    least = 0 if dst.is_scale else most | dst.sign_code
    ends = values_of(np.array([least, most], dst.code_dtype), dst)
    return np.where(where, ends[0], low), np.where(where, ends[1], high)
