"""Steps of work on each element, and casts of a measured device: corrected where it gives others.

A thin layer above `simulator.numbers`, which stays as it is proved. Fast paths, instructions and
intervals all come through here; conversions without corrections go straight on.

Results of the Ascend 950 that public texts give differently are readings, all in one table here.
One of the Cast instruction corrects its conversions; one of the pairs and modes on offer changes
rows of `ascend_kernels.matrix`; that of nibbles is the order in `simulator.machine.memory`.
"""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import (
    INF_NAN,
    SATURATE,
    SATURATE_KEEP_NAN,
    Conversion,
    codes_of,
    unpack,
    values_of,
)
from simulator.numbers.engines import Engine
from simulator.numbers.formats import (
    BF16,
    E2M1,
    E8M0,
    FORMATS,
    FP16,
    Codes,
    FloatFormat,
    Format,
)
from simulator.numbers.rounding import RoundMode, boundary_codes

_PIECE_ELEMS: Final = 1 << 15


class ElementStep(Protocol):
    """Work on each element: a conversion, or an instruction with a number."""

    @property
    def src(self) -> Format: ...

    @property
    def dst(self) -> Format: ...

    def reference(self, codes: Codes) -> Codes:
        """Give the codes of the results."""
        ...

    def __hash__(self) -> int: ...


Correct = Callable[[Codes, Codes], None]
"""Called with source codes and the definition's results, 1-D, which it corrects in place."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrections:
    """The conversions that a device carries out in its own way.

    Attributes:
        by_conversion: what corrects the results of each.
    """

    by_conversion: Mapping[Conversion, Correct] = field(default_factory=lambda: _NOTHING)

    def touch(self, conversions: tuple[Conversion, ...]) -> bool:
        """True if any of the conversions is corrected."""
        return bool(self.by_conversion) and any(c in self.by_conversion for c in conversions)

    def is_monotone(self, conversions: tuple[Conversion, ...]) -> bool:
        """True if greater numbers still give greater results, or equal ones.

        Boundary codes decide: a correction depends on the sign and the class of a number alone.
        """
        return all(_is_monotone(c, self) for c in conversions if c in self.by_conversion)


_NOTHING: Final[Mapping[Conversion, Correct]] = MappingProxyType({})
NO_CORRECTIONS: Final = Corrections()


def loop(
    steps: tuple[ElementStep, ...],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    exact: bool = False,
    engine: Engine = "auto",
) -> elementwise.Loop:
    """The path of a chain of steps: neighbouring conversions together, if none is corrected.

    Args:
        steps: applied in order.
        corrections: what a measured device converts in its own way.
        exact: take the definition of conversions instead of the fast paths.
        engine: as for `simulator.numbers.elementwise.loop`.
    """
    stages: list[tuple[elementwise.Loop, np.dtype[Any]]] = []
    for _, group in itertools.groupby(steps, lambda step: isinstance(step, Conversion)):
        alike = tuple(group)
        untouched = _untouched(alike, corrections)
        if untouched is not None:
            path = elementwise.loop(untouched, exact=exact, engine=engine)
            stages.append((path, alike[-1].dst.code_dtype))
            continue
        for step in alike:
            path = _scalar_loop(step)
            if isinstance(step, Conversion):
                path = elementwise.loop((step,), exact=exact, engine=engine)
                path = _corrected(path, corrections.by_conversion.get(step))
            stages.append((path, step.dst.code_dtype))
    if len(stages) == 1:
        return stages[0][0]

    def run_stages(codes: Codes, out: Codes) -> None:
        for start in range(0, codes.size, _PIECE_ELEMS):
            piece = codes[start : start + _PIECE_ELEMS]
            for path, dtype in stages:
                made = np.empty(piece.size, dtype)
                path(piece, made)
                piece = made
            out[start : start + _PIECE_ELEMS] = piece

    return run_stages


def _untouched(
    steps: tuple[ElementStep, ...], corrections: Corrections
) -> tuple[Conversion, ...] | None:
    """The steps as conversions, if all are and none is corrected."""
    chain = tuple(step for step in steps if isinstance(step, Conversion))
    return None if len(chain) < len(steps) or corrections.touch(chain) else chain


def _corrected(path: elementwise.Loop, correct: Correct | None) -> elementwise.Loop:
    if correct is None:
        return path

    def convert(codes: Codes, out: Codes) -> None:
        path(codes, out)
        correct(codes, out)

    return convert


def _scalar_loop(step: ElementStep) -> elementwise.Loop:
    if step.src is FP16:
        # numpy computes halves in software, one after another.
        def look_up(codes: Codes, out: Codes) -> None:
            np.take(_table(step), codes, out=out, mode="clip")

        return look_up

    def run_scalar(codes: Codes, out: Codes) -> None:
        out[:] = step.reference(codes)

    return run_scalar


@functools.lru_cache(maxsize=16)
def _table(step: ElementStep) -> Codes:
    """The results of all codes of 16 bits."""
    codes: Codes = np.arange(1 << 16, dtype=np.uint16)
    return step.reference(codes)


def run(
    steps: tuple[ElementStep, ...],
    values: npt.NDArray[Any],
    out: Codes,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    exact: bool = False,
    engine: Engine = "auto",
    threads: int = 1,
) -> None:
    """Take an array of any strides and byte order through steps.

    Args:
        steps, corrections, exact, engine: as for `loop`.
        values: source codes or values of the first format, any shape; not modified.
        out: destination codes, 1-D and contiguous, as many elements, in row-major order.
        threads: how many threads to share the work among.

    Warns:
        EngineWarning: see `native_for`.
    """
    untouched = _untouched(steps, corrections)
    if untouched is not None:
        elementwise.run(untouched, values, out, exact=exact, engine=engine, threads=threads)
        return
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False).reshape(-1)
    codes = codes_of(native, steps[0].src)
    path = loop(steps, corrections, exact=exact, engine=engine)
    elementwise.share(lambda span: path(codes[span], out[span]), codes.size, threads)


@functools.lru_cache(maxsize=256)
def _is_monotone(conversion: Conversion, corrections: Corrections) -> bool:
    codes = boundary_codes(conversion.src)
    out = np.empty(codes.size, conversion.dst.code_dtype)
    loop((conversion,), corrections)(codes, out)
    before, after = values_of(codes, conversion.src), values_of(out, conversion.dst)
    with float_environment.quiet():
        before, after = (x.astype(np.longdouble) for x in (before, after))
    numbers = ~np.isnan(before)
    after = after[numbers][np.argsort(before[numbers], kind="stable")]
    return bool(np.all(after[1:] >= after[:-1]))


# --- Readings of public texts of the 950 ----------------------------------------------------------


Readings = tuple[tuple[str, str], ...]
"""Names and values of the readings that are not the default ones, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A result that two public texts give differently.

    Attributes:
        name: of the option.
        subject: the result in question.
        values: by value, the rule and the text that has it; the first is the default.
    """

    name: str
    subject: str
    values: Mapping[str, str]

    @property
    def default(self) -> str:
        """The value that holds where none is chosen."""
        return next(iter(self.values))

    def __str__(self) -> str:
        return "; ".join(self.values.values())

    def other(self, value: str) -> str:
        """The value beside one."""
        return next(each for each in self.values if each != value)


def _reading(name: str, subject: str, **values: str) -> Reading:
    return Reading(name=name, subject=subject, values=MappingProxyType(values))


FP8_MODES: Final = _reading(
    "fp32-fp8-modes",
    "round modes of FP32 to E4M3FN and E5M2",
    five="RINT, ROUND, FLOOR, CEIL and TRUNC (upstream pypto 883e7dfb0, pypto-cast document; "
    "pto-isa a5 hands them to the instruction)",
    rint="RINT alone (CANN asc-devkit 82b89a15, Cast of the Reg and of the memory vector API)",
)
FP4_MODES: Final = _reading(
    "bf16-fp4-modes",
    "round modes of BF16 to E2M1 and E1M2",
    none="none to choose, RINT where bits are lost (upstream pypto 883e7dfb0, pypto-cast document)",
    five="RINT, ROUND, FLOOR, CEIL and TRUNC (CANN asc-devkit 82b89a15, Cast of the Reg and of the "
    "memory vector API)",
)
INT32_FP16: Final = _reading(
    "int32-fp16",
    "INT32 to FP16",
    scaled="converted with the deq scale (upstream pypto 883e7dfb0, pypto-cast document; memory "
    "vector API of CANN asc-devkit 82b89a15)",
    none="no such pair (pto-isa 3186c381, TCVT: A5 has none)",
)
E8M0_INFINITY: Final = _reading(
    "bf16-inf-e8m0",
    "infinity of BF16 to E8M0",
    max="the largest number, 0xFE (CANN asc-devkit 82b89a15, Cast of the Reg vector API)",
    nan="NaN, 0xFF (the same, boundary values of the Reg vector API, table 34)",
)
NIBBLES: Final = _reading(
    "fp4-nibbles",
    "order of two FP4 elements in a byte",
    low="the first in the low nibble (upstream pypto 883e7dfb0, golden of quant_mx; pto-isa, "
    "TQUANT)",
    high="the first in the high nibble (upstream pypto 883e7dfb0, test_interp_type_convert.cpp)",
)
E2M1_NAN: Final = _reading(
    "nan-e2m1",
    "NaN to E2M1",
    zero="+0 (CANN asc-devkit 82b89a15, Cast of the Reg vector API)",
    max="code 7, the largest number (upstream pypto 883e7dfb0, golden of quant_mx)",
)
READINGS: Final[Mapping[str, Reading]] = MappingProxyType(
    {
        each.name: each
        for each in (FP8_MODES, FP4_MODES, INT32_FP16, E8M0_INFINITY, NIBBLES, E2M1_NAN)
    }
)
"""By name, in the order of the bits that stand for them."""


def merged(before: Readings, given: Mapping[str, str]) -> Readings:
    """Readings with others in their place; those at their default are left out.

    Raises:
        TypeError: not a mapping of names to values.
        ValueError: an unknown name or value; names the nearest one.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"option readings must be a dict of names and values, not {given!r}")
    chosen = dict(before)
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(
                f"option readings maps names to values, both str, not {name!r}: {value!r}"
            )
        if name not in READINGS:
            raise ValueError(_unknown("option readings has no name", name, READINGS))
        if value not in READINGS[name].values:
            text = f"reading {name!r} has no value"
            raise ValueError(_unknown(text, value, READINGS[name].values))
        chosen[name] = value
    return tuple(sorted((k, v) for k, v in chosen.items() if v != READINGS[k].default))


def value_of_reading(reading: Reading, readings: Readings) -> str:
    """The value that a reading has."""
    return dict(readings).get(reading.name, reading.default)


def corrections_of(readings: Readings, others: Corrections = NO_CORRECTIONS) -> Corrections:
    """The conversions of the Cast instruction that readings change.

    Args:
        readings: those that are not the default ones.
        others: corrections that come before those of readings.
    """
    of_readings = [_CORRECTED[each] for each in readings if each in _CORRECTED]
    return _joined(tuple(of_readings), others) if of_readings else others


@functools.lru_cache(maxsize=64)
def _joined(first: tuple[Corrections, ...], last: Corrections) -> Corrections:
    found: dict[Conversion, Correct] = {}
    for each in (*first, last):
        found.update(each.by_conversion)
    return Corrections(by_conversion=MappingProxyType(found))


def concerns_instruction(reading: Reading, src: Format, dst: Format) -> bool:
    """True if the Cast instruction gives another code of some number, by a value of the reading."""
    return any(
        reading.name == name and (src, dst) == (each.src, each.dst)
        for (name, _), corrections in _CORRECTED.items()
        for each in corrections.by_conversion
    )


def _unknown(text: str, word: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(word, known, 1, 0)
    meant = f"; the nearest is {near[0]!r}" if near else ""
    return f"{text} {word!r}: it has {', '.join(known)}{meant}"


def _nan_is_largest(src: Format, codes: Codes, results: Codes) -> None:
    results[unpack(codes, src).nan] = E2M1.max_code


def _infinity_is_nan(codes: Codes, results: Codes) -> None:
    results[unpack(codes, BF16).inf] = E8M0.sign_code - 1


def _conversions(src: Format, dst: Format) -> Iterator[Conversion]:
    for mode in RoundMode:
        for policy in (SATURATE, SATURATE_KEEP_NAN, INF_NAN):
            yield Conversion(src=src, dst=dst, mode=mode, policy=policy)


def _corrections(src: Format, dst: Format, correct: Correct) -> Corrections:
    by_conversion = dict.fromkeys(_conversions(src, dst), correct)
    return Corrections(by_conversion=MappingProxyType(by_conversion))


_FLOATS: Final = tuple(fmt for fmt in FORMATS.values() if isinstance(fmt, FloatFormat))
"""Beside the sources of the Cast instruction those of `quant_mx`, and of a route's one rounding."""
_CORRECTED: Final[Mapping[tuple[str, str], Corrections]] = {
    (E2M1_NAN.name, "max"): _joined(
        tuple(_corrections(src, E2M1, functools.partial(_nan_is_largest, src)) for src in _FLOATS),
        NO_CORRECTIONS,
    ),
    (E8M0_INFINITY.name, "nan"): _corrections(BF16, E8M0, _infinity_is_nan),
}
"""By name and value, the conversions that come out differently than by default."""
