"""The arithmetic of a device beside this package's: errors in ulp, subnormals, order of sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.checks.check_program import (
    BINARY,
    REPEAT_BYTES,
    SUM,
    UNARY,
    WIDENED,
    CheckProgram,
    arithmetic_name,
)
from pypto_cast.device.behaviour import Mask
from pypto_cast.device.cases import RANDOM_CODES, all_codes_of_32_bits
from pypto_cast.device.device_model import (
    AUTOCAST,
    OPERATION_FACTS,
    SPECIALS,
    SUBNORMALS,
    SUM_ORDER,
)
from pypto_cast.device.facts import DeviceFact, Tally
from pypto_cast.device.repetition import Layout, Observation, Places, observe
from simulator.arithmetic import DEFAULT, EXACT, OPERATIONS, Enclosure, evaluate, reduce
from simulator.arithmetic.total_order import codes_between
from simulator.machine.memory import Bytes
from simulator.numbers import float_environment
from simulator.numbers.convert import values_of
from simulator.numbers.formats import FP16, FP32, Codes, FloatFormat
from simulator.numbers.rounding import boundary_codes
from tiling.chips import Chip

CheckOnDevice = Callable[[CheckProgram], Bytes]
"""Runs a check's kernel; returns its output."""
Values = npt.NDArray[Any]

CHECKED_FORMATS: Final = (FP32, FP16)
_PASS_BYTES: Final = 1 << 15
_SEED: Final = 20261123
_SUMS: Final = 1 << 12
_WIDE: Final[dict[str, Callable[[Values], Values]]] = {
    "vexp": np.exp,
    "vln": np.log,
    "vrsqrt": lambda x: 1 / np.sqrt(x),
}
"""Functions whose exact results float64 holds nearly; the others it rounds correctly."""
_NEAR: Final = 2.0**-50
_INFINITY: Final = 0x7F800000
"""Its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticCase:
    """Operands of one instruction.

    Attributes:
        instruction: such as vadd.
        fmt: of operands and results.
        operands: each 1-D, as long as the others.
        is_whole: together with others of its instruction and format these are all operands.
        is_once: it runs once where all its results are as assumed.
    """

    instruction: str
    fmt: FloatFormat
    operands: tuple[Values, ...]
    is_whole: bool = False
    is_once: bool = False

    @property
    def lanes(self) -> int:
        """Operands of one result: those of a sum fill 256 B."""
        return REPEAT_BYTES * 8 // self.fmt.bits if self.instruction == SUM else 1

    @property
    def pass_elems(self) -> int:
        """Operands that a core takes at once; those that are widened need UB for that."""
        return _PASS_BYTES * 8 // self.fmt.bits // (4 if self.instruction in WIDENED else 1)

    def ordered(self, order: Places) -> ArithmeticCase:
        """The same results in another order."""
        rows = (x.reshape(-1, self.lanes)[order].reshape(-1) for x in self.operands)
        return dataclasses.replace(self, operands=tuple(rows))

    def layout(self, chip: Chip) -> Layout:
        """The cores and positions of its results."""
        count, elems = (x // self.lanes for x in (self.operands[0].size, self.pass_elems))
        return Layout.of_passes(count, elems, min(-(-count // elems), chip.vector_cores))


def arithmetic_cases(
    *, exhaustive: bool = False, random_codes: int = RANDOM_CODES, only: str | None = None
) -> Iterator[ArithmeticCase]:
    """Boundaries and random operands; of one operand in FP16, or exhaustively once, all there are.

    The operands of an instruction are the same, whether it is asked for alone or with the others.
    """
    for fmt in CHECKED_FORMATS:
        random = np.random.default_rng([_SEED, fmt.bits])
        edges = boundary_codes(fmt)
        words = random.bytes(2 * random_codes * fmt.code_dtype.itemsize)
        drawn = np.frombuffer(words, fmt.code_dtype).reshape(2, -1)
        for name in _asked(UNARY, only):
            codes = edges if fmt.bits == 16 else np.concatenate([edges, drawn[0]])
            yield _case(name, fmt, codes, is_whole=fmt.bits == 16)
            if fmt.bits == 32 and exhaustive:
                for codes in all_codes_of_32_bits():
                    found = _case(name, fmt, codes, is_whole=True)
                    yield dataclasses.replace(found, is_once=True)
        sparse = edges[:: max(1, edges.size // 600)]
        few = np.concatenate([_special_codes(fmt), sparse])
        one, other = (x.reshape(-1) for x in np.meshgrid(few, few))
        near = drawn[0] ^ (drawn[1] & fmt.code_dtype.type(0x1F))  # sums that cancel
        left, right = [one, drawn[0], drawn[0]], [other, drawn[1], near]
        for name in _asked(BINARY, only):
            yield _case(name, fmt, np.concatenate(left), np.concatenate(right))
        for name in _asked(tuple(WIDENED), only) if fmt is FP16 else ():
            if WIDENED[name] in UNARY:
                yield _case(name, fmt, edges, is_whole=True)
            else:
                yield _case(name, fmt, np.concatenate(left), np.concatenate(right))
        if not _asked((SUM,), only):
            continue
        lanes = REPEAT_BYTES * 8 // fmt.bits
        scales = random.integers(-8, 9, (_SUMS, lanes))
        terms = np.ldexp(random.uniform(-1, 1, (_SUMS, lanes)), scales).astype(fmt.dtype)
        yield ArithmeticCase(instruction=SUM, fmt=fmt, operands=(terms.reshape(-1),))


def _asked(names: tuple[str, ...], only: str | None) -> tuple[str, ...]:
    return tuple(name for name in names if only in (None, name))


def facts_of_instruction(name: str) -> tuple[str, ...]:
    """The facts that cases of an instruction tell."""
    if name in WIDENED:
        return (AUTOCAST,)
    return (SUM_ORDER,) if name == SUM else (name, SUBNORMALS, SPECIALS)


def check_arithmetic(
    device: CheckOnDevice, cases: Iterable[ArithmeticCase], chip: Chip
) -> tuple[DeviceFact, ...]:
    """Compare a device's arithmetic with this package's.

    Args:
        device: runs a kernel.
        cases: what is computed.
        chip: whose cores share the work.

    Returns:
        A fact for each instruction, for subnormal numbers, for special values, for the order of
        sums.
    """
    tallies = {
        name: _UlpTally(name=name, assumed=assumed_arithmetic(name)) for name in ARITHMETIC_FACTS
    }
    for case in cases:
        expected = _expected(case)
        run = partial(_codes, device, case, chip)
        is_enough = partial(_is_as_assumed, case, expected)
        layout_of = partial(case.layout, chip)
        seen = observe(run, layout_of, expected.view(case.fmt.code_dtype), is_enough)
        if case.instruction == SUM:
            _judge_sums(case, expected, seen, tallies[SUM_ORDER])
        elif case.instruction in WIDENED:
            _judge_widened(case, expected, seen, tallies[AUTOCAST])
        else:
            _judge(case, expected, seen, tallies)
    return tuple(tally.judged() for tally in tallies.values())


def _codes(device: CheckOnDevice, case: ArithmeticCase, chip: Chip, order: Places) -> Codes:
    found: Codes = run_arithmetic(device, case.ordered(order), chip).view(case.fmt.code_dtype)
    return found


def run_arithmetic(device: CheckOnDevice, case: ArithmeticCase, chip: Chip) -> Values:
    """The device's results, one an element or one for 256 B of a sum."""
    lanes, elems = case.lanes, case.pass_elems
    count = case.operands[0].size
    passes = -(-count // elems)
    padded = [np.resize(x, passes * elems).reshape(passes, elems) for x in case.operands]
    x = np.stack(padded, axis=1).reshape(-1)
    program = CheckProgram(
        kernel=arithmetic_name(case.instruction, case.fmt),
        x=x.view(np.uint8),
        result_bytes=passes * elems // lanes * case.fmt.bits // 8,
        cores=min(passes, chip.vector_cores),
        tiling={"passes": passes, "pass_elems": elems, "result_elems": elems // lanes},
    )
    return device(program).view(case.fmt.dtype)[: count // lanes]


def _case(name: str, fmt: FloatFormat, *codes: Values, is_whole: bool = False) -> ArithmeticCase:
    operands = tuple(values_of(np.ascontiguousarray(x), fmt) for x in codes)
    return ArithmeticCase(instruction=name, fmt=fmt, operands=operands, is_whole=is_whole)


def _special_codes(fmt: FloatFormat) -> Values:
    assert fmt.inf_code is not None
    assert fmt.nan_code is not None
    one = fmt.bias << fmt.man_bits
    least = 1 << fmt.man_bits
    positive = [0, 1, least - 1, least, one, fmt.max_code, fmt.inf_code, fmt.nan_code]
    return np.array([*positive, *(code | fmt.sign_code for code in positive)], fmt.code_dtype)


# --- Judging -------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _UlpTally(Tally):
    """Findings about arithmetic, with the largest error of each format."""

    ulps: dict[str, int] = field(default_factory=dict)
    is_whole: dict[str, bool] = field(default_factory=dict)

    def judged(self) -> DeviceFact:
        exhausted = [fmt for fmt, is_whole in self.is_whole.items() if is_whole]
        return self.fact(ulps=self.ulps, exhausted=exhausted)


def assumed_arithmetic(name: str) -> str:
    """The assumption of this package that a fact about arithmetic is beside."""
    if name in OPERATION_FACTS:
        row = OPERATIONS[OPERATION_FACTS[name]]
        return ", ".join(f"{row.ulps(fmt, DEFAULT)} ulp in {fmt}" for fmt in CHECKED_FORMATS)
    return {
        SUBNORMALS: "kept as operands and as results",
        SPECIALS: "as IEEE 754 has them",
        SUM_ORDER: "pairs of neighbours, then pairs of sums",
        AUTOCAST: "computed in FP32 with its bounds of errors, then rounded to nearest even",
    }[name]


ARITHMETIC_FACTS: Final = (*OPERATION_FACTS, SUBNORMALS, SPECIALS, SUM_ORDER, AUTOCAST)


def _expected(case: ArithmeticCase) -> Values:
    """The exact results, rounded once; sums in the order that is assumed."""
    if case.instruction == SUM:
        terms = Enclosure(values=case.operands[0].reshape(-1, case.lanes))
        sums = reduce(OPERATIONS["sum"], terms, case.fmt, axis=-1, trust=EXACT)
        return np.ascontiguousarray(sums.values.reshape(-1))
    if case.instruction in WIDENED:
        with float_environment.quiet():
            return _expected(_widened(case)).astype(case.fmt.dtype)
    operands = [Enclosure(values=x) for x in case.operands]
    row = OPERATIONS[OPERATION_FACTS[case.instruction]]
    return evaluate(row, operands, case.fmt, trust=EXACT).values


def _widened(case: ArithmeticCase) -> ArithmeticCase:
    """The instruction of FP32 that a case of AutoCast is made of, on the same numbers."""
    with float_environment.quiet():
        operands = tuple(x.astype(FP32.dtype) for x in case.operands)
    return ArithmeticCase(instruction=WIDENED[case.instruction], fmt=FP32, operands=operands)


def _judge_widened(case: ArithmeticCase, expected: Values, seen: Observation, tally: Tally) -> None:
    """Refuse results beyond those that the ends of FP32's errors round to."""
    wide = _widened(case)
    exact = _expected(wide)
    bound = OPERATIONS[OPERATION_FACTS[wide.instruction]].ulps(FP32, DEFAULT)
    with float_environment.quiet():
        ends = [_moved(exact, by * bound).astype(case.fmt.dtype) for by in (-1, 1)]
        low, high = np.minimum(*ends), np.maximum(*ends)
        runs = [codes.view(case.fmt.dtype) for codes in seen.distinct]
        wrong = np.array(
            [
                ~((low <= measured) & (measured <= high)) & ~(np.isnan(exact) & np.isnan(measured))
                for measured in runs
            ]
        )
    distances = wrong.astype(np.int64)
    example = partial(_example, case, expected, runs, distances)
    everywhere = np.ones(expected.size, np.bool_)
    pair = f"{case.instruction} {case.fmt}"
    tally.add(pair, everywhere, np.logical_or.reduce(wrong), example, seen)


def _moved(values: Values, codes: int) -> Values:
    """Finite numbers so many codes away, at most at infinity."""
    keys = values.view(np.int32).astype(np.int64)
    order = np.where(keys < 0, -(keys & 0x7FFFFFFF), keys)
    moved = np.clip(order + codes, -_INFINITY, _INFINITY)
    found = np.where(moved < 0, -moved | 1 << 31, moved).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(values), found, values)


def _judge(
    case: ArithmeticCase, expected: Values, seen: Observation, tallies: dict[str, _UlpTally]
) -> None:
    runs = [codes.view(case.fmt.dtype) for codes in seen.distinct]
    distances = np.array([_distance(case, expected, measured) for measured in runs])
    distance = distances.max(axis=0)
    for name, here, limit in _limits(case, expected):
        tally = tallies[name]
        example = partial(_example, case, expected, runs, distances)
        tally.add(f"{case.instruction} {case.fmt}", here, distance > limit, example, seen)
        if name == case.instruction:
            fmt = case.fmt.name
            most = int(distance[here].max(initial=0))
            tally.ulps[fmt] = max(tally.ulps.get(fmt, 0), most)
            tally.is_whole[fmt] = case.is_whole


def _limits(case: ArithmeticCase, expected: Values) -> Iterator[tuple[str, Mask, int]]:
    """The facts that results are about, which of them, and the codes that they may be off."""
    bound = OPERATIONS[OPERATION_FACTS[case.instruction]].ulps(case.fmt, DEFAULT)
    is_special = np.isnan(expected)
    is_tiny = _is_subnormal(expected, case.fmt)
    for x in case.operands:
        is_special |= ~np.isfinite(x) | (x == 0)
        is_tiny |= _is_subnormal(x, case.fmt)
    is_tiny &= ~is_special
    yield SPECIALS, is_special, 0
    yield SUBNORMALS, is_tiny, max(bound, 1)  # one code is a matter of rounding
    yield case.instruction, ~is_special & ~is_tiny, bound


def _is_as_assumed(case: ArithmeticCase, expected: Values, codes: Codes) -> bool:
    """True of a case that runs once, and whose results are all within their bounds."""
    if not case.is_once:
        return False
    distance = _distance(case, expected, codes.view(case.fmt.dtype))
    limits = _limits(case, expected)
    return not any((here & (distance > limit)).any() for _, here, limit in limits)


def _distance(case: ArithmeticCase, expected: Values, measured: Values) -> npt.NDArray[np.int64]:
    """Codes between the device's result and the exact one rounded once; NaN is one code.

    Of a function that float64 does not round correctly, the nearer of the two results that the
    exact one may round to counts.
    """
    distance = _codes_between(expected, measured, case.fmt)
    wide = _WIDE.get(case.instruction)
    if wide is not None:
        with float_environment.quiet():
            exact = wide(case.operands[0].astype(np.float64))
            for edge in (exact * (1 - _NEAR), exact * (1 + _NEAR)):
                other = _codes_between(edge.astype(case.fmt.dtype), measured, case.fmt)
                distance = np.minimum(distance, other)
    return distance


def _codes_between(a: Values, b: Values, fmt: FloatFormat) -> npt.NDArray[np.int64]:
    """Codes between two numbers; between a number and NaN at least all of one sign."""
    is_nan, other_is = np.isnan(a), np.isnan(b)
    distance = codes_between(a, b, fmt).view(np.int64)
    distance = np.where(is_nan != other_is, np.maximum(distance, fmt.sign_code), distance)
    return np.where(is_nan & other_is, 0, distance)


def _is_subnormal(values: Values, fmt: FloatFormat) -> Mask:
    found: Mask = (values != 0) & (np.abs(values) < np.ldexp(1.0, fmt.emin))
    return found


def _judge_sums(case: ArithmeticCase, expected: Values, seen: Observation, tally: Tally) -> None:
    terms = case.operands[0].reshape(seen.codes.size, -1)
    runs = [codes.view(case.fmt.dtype) for codes in seen.distinct]
    wrong = np.array([_codes_between(expected, sums, case.fmt) > 0 for sums in runs])

    def example(row: int) -> str:
        for words, order in _ORDERS.items():
            if (_codes_between(order(terms), runs[0], case.fmt) == 0).all():
                return words
        return f"row {row}: {runs[int(wrong[:, row].argmax())][row]!r}, assumed {expected[row]!r}"

    everywhere = np.ones(expected.size, np.bool_)
    tally.add(f"{SUM} {case.fmt}", everywhere, np.logical_or.reduce(wrong), example, seen)


def _one_by_one(terms: Values) -> Values:
    total = terms[:, 0].copy()
    for column in range(1, terms.shape[1]):
        total = total + terms[:, column]
    return total


def _by_halves(terms: Values) -> Values:
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        terms = terms[:, :half] + terms[:, half:]
    found: Values = terms[:, 0]
    return found


_ORDERS: Final[dict[str, Callable[[Values], Values]]] = {
    "one after another": _one_by_one,
    "the lower half to the upper half, then again": _by_halves,
}
"""Orders that are tried where sums differ."""


def _example(
    case: ArithmeticCase,
    expected: Values,
    runs: list[Values],
    distances: npt.NDArray[np.int64],
    place: int,
) -> str:
    digits = case.fmt.bits // 4
    measured = runs[int(distances[:, place].argmax())]
    operands, result, assumed = (
        ", ".join(
            f"0x{int(x[place : place + 1].view(case.fmt.code_dtype)[0]):0{digits}X}" for x in group
        )
        for group in (case.operands, (measured,), (expected,))
    )
    return f"{case.instruction} in {case.fmt} of {operands} gives {result}, exact is {assumed}"
