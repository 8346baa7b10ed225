"""One number under every round mode: the kept bits, the dropped bits and the result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ascend_kernels.matrix import CastRule
from pypto_cast.cast.api import cast
from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.report.notebook import notebook_html
from pypto_cast.report.report import Report, Table, Words, columns, headed, plain, said
from pypto_cast.report.text_format import hex_code, printable
from pypto_cast.tensors.tensor import Tensor
from simulator.numbers.convert import codes_of, unpack, values_of
from simulator.numbers.formats import FloatFormat, Format, IntFormat
from simulator.numbers.literals import (
    CODE_PREFIX,
    Number,
    bits_text,
    code_named,
    nearest_code,
    number_named,
    number_of,
    short_text,
)
from tiling.plan import TileShapeWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The cut of a significand in two at a destination's last place.

    Attributes:
        kept: bits that stay, in binary, before rounding.
        dropped: bits that go, in binary; empty if the value is exact there.
        quantum: exponent of the last place that stays.
    """

    kept: str
    dropped: str
    quantum: int

    @property
    def guard(self) -> bool:
        """The first dropped bit."""
        return self.dropped[:1] == "1"

    @property
    def sticky(self) -> bool:
        """Any bit behind the guard."""
        return "1" in self.dropped[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeResult:
    """The result of one mode.

    Attributes:
        mode: its name; None where the pair has no modes.
        is_default: it is what CAST_NONE stands for.
        code: the result's bits as an integer.
        bits: the same in binary, fields apart.
        value: the same as an exact number.
        ulp_error: result minus source, in last places of the result; None if either is no number.
        note: what there is to say, such as "overflow"; may be empty.
        off: the value under SaturationMode.OFF; None where OFF does not act.
    """

    mode: str | None
    is_default: bool
    code: int
    bits: str
    value: Number
    ulp_error: Fraction | None
    note: str
    off: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A number, its bits, and its cast in every mode.

    Attributes:
        literal: as it was written.
        src: source format.
        dst: destination format.
        code: source bits as an integer.
        value: the exact value of the source.
        rounded_from: what was written, if the source format cannot hold it.
        cut: None for what is no number.
        results: one per mode of the pair.
    """

    literal: str
    src: Format
    dst: Format
    code: int
    value: Number
    rounded_from: Number | None
    cut: Cut | None
    results: tuple[ModeResult, ...]

    @property
    def bits(self) -> str:
        """The source code in binary, fields apart."""
        return bits_text(self.code, self.src)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The number and where it is cut, in words."""
        facts = [
            ("value", str(self.value)),
            ("bits", f"{self.bits}  {hex_code(self.code, self.src)}"),
        ]
        if self.rounded_from is not None:
            facts.insert(0, ("written", f"{printable(self.literal)}, which {self.src} cannot hold"))
        if self.cut is not None:
            dropped = f"{self.cut.dropped}  guard {self.cut.guard:d}, sticky {self.cut.sticky:d}"
            facts += [
                ("kept", f"{self.cut.kept} x 2^{self.cut.quantum}"),
                ("dropped", dropped if self.cut.dropped else "nothing: the value fits"),
            ]
        return tuple(facts)

    @property
    def by_mode(self) -> Table:
        """The result of each mode; the last column is there for people only where OFF acts."""
        has_off = any(result.off is not None for result in self.results)
        return Table(
            key="results",
            caption="By mode",
            columns=(
                *columns(mode="mode", code="code", bits="bits", value="value", ulp_error="error"),
                *headed(""),
                *columns(default=None, note=None),
                *columns(satmode_off="satmode OFF" if has_off else None),
            ),
            rows=[self._row(result) for result in self.results],
        )

    def _row(self, result: ModeResult) -> tuple[object, ...]:
        error = None if result.ulp_error is None else float(result.ulp_error)
        value = str(result.value)
        return (
            Words(value=result.mode, text=result.mode or "any"),
            hex_code(result.code, self.dst),
            result.bits,
            Words(value=value, text=short_text(value)),
            Words(value=error, text="" if error is None else f"{error:+.4g} ulp"),
            ", ".join(["default"] * result.is_default + [result.note] * bool(result.note)),
            result.is_default,
            result.note,
            None if result.off is None else str(result.off),
        )

    @property
    def report(self) -> Report:
        """The bits of a number, the place where they are cut, and the result of each mode."""
        parts = ("kept", "dropped", "guard", "sticky", "quantum")
        cut = None if self.cut is None else {name: getattr(self.cut, name) for name in parts}
        written = None if self.rounded_from is None else str(self.rounded_from)
        return Report(
            kind="explain",
            title=f"{printable(self.literal)}: {self.src} -> {self.dst}",
            facts=(
                *plain(literal=self.literal, src=self.src.name, dst=self.dst.name),
                *plain(value=str(self.value), rounded_from=written),
                *plain(code=hex_code(self.code, self.src), bits=self.bits, significand=cut),
                *(said(label, text) for label, text in self.facts),
            ),
            tables=(self.by_mode,),
        )

    def _repr_html_(self) -> str:
        return notebook_html(self.report)


def explain(literal: str, src: DataType, dst: DataType) -> Explanation:
    """Show the cast of one number in every mode.

    Args:
        literal: 0.1, 0x1.8p3, inf, nan, or code:0x3dcccccd for the bits of the source.
        src: dtype of the source.
        dst: dtype of the result.

    Raises:
        UnsupportedCastError: A2/A3 does not convert this pair.
        ValueError: no number, or one that an integer dtype of the source cannot hold.
    """
    if src is dst and src is not DataType.DT_FP32:
        raise ValueError(f"{src} -> {dst} changes nothing: cast returns its input")
    plan = plan_cast((2,), src, dst, CastMode.CAST_NONE, SaturationMode.ON)
    rule = plan.resolution.rule
    written: Number | None = None
    if literal.startswith(CODE_PREFIX):
        code = code_named(literal, rule.src)
    else:
        written = number_named(literal)
        code = nearest_code(written, rule.src)
    value = number_of(code, rule.src)
    exact = written is None or (written.special, written.fraction) == (
        value.special,
        value.fraction,
    )
    modes = [CastMode[f"CAST_{mode}"] for mode in rule.modes] or [CastMode.CAST_NONE]
    return Explanation(
        literal=literal,
        src=rule.src,
        dst=rule.dst,
        code=code,
        value=value,
        rounded_from=None if exact else written,
        cut=None if value.special else _cut(code, rule),
        results=tuple(_result(code, value, rule, src, dst, mode) for mode in modes),
    )


def _cut(code: int, rule: CastRule) -> Cut:
    """Split the significand at the destination's quantum, as the conversion does."""
    value = unpack(np.array([code], rule.src.code_dtype), rule.src)
    significand, exponent = int(value.significand[0]), int(value.exponent[0])
    quantum = _quantum(significand, exponent, rule)
    drop = quantum - exponent
    if drop <= 0:
        return Cut(kept=f"{significand << -drop:b}", dropped="", quantum=quantum)
    if not significand:
        return Cut(kept="0", dropped="", quantum=quantum)
    dropped = f"{significand & ((1 << drop) - 1):0{drop}b}"
    return Cut(kept=f"{significand >> drop:b}", dropped=dropped, quantum=quantum)


def _quantum(significand: int, exponent: int, rule: CastRule) -> int:
    if rule.src is rule.dst:
        return max(exponent, 0)
    if isinstance(rule.dst, FloatFormat) and not significand:
        return rule.dst.min_quantum
    return rule.dst.quantum(significand.bit_length() + exponent - 1)


def _result(
    code: int, source: Number, rule: CastRule, src: DataType, dst: DataType, mode: CastMode
) -> ModeResult:
    result = _cast_code(code, rule, src, dst, mode, SaturationMode.ON)
    value = number_of(result, rule.dst)
    off = None
    if rule.off:
        low_bits = _cast_code(code, rule, src, dst, mode, SaturationMode.OFF)
        off = number_of(low_bits, rule.dst)
    error = None
    if not source.special and not value.special:
        error = (value.fraction - source.fraction) / _last_place(result, rule)
    round_mode = mode.round_mode
    return ModeResult(
        mode=None if round_mode is None else mode.name,
        is_default=round_mode is not None and round_mode is rule.default,
        code=result,
        bits=bits_text(result, rule.dst),
        value=value,
        ulp_error=error,
        note=_note(source, value, rule.dst),
        off=off,
    )


def _cast_code(
    code: int,
    rule: CastRule,
    src: DataType,
    dst: DataType,
    mode: CastMode,
    satmode: SaturationMode,
) -> int:
    # Two elements, because 4-bit types come in pairs.
    values = values_of(np.array([code, code], rule.src.code_dtype), rule.src)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileShapeWarning)
        result = cast(Tensor(dtype=src, data=values), dst, mode, satmode)
    return int(codes_of(result.numpy(), rule.dst)[0])


def _last_place(code: int, rule: CastRule) -> Fraction:
    value = unpack(np.array([code], rule.dst.code_dtype), rule.dst)
    quantum = _quantum(int(value.significand[0]), int(value.exponent[0]), rule)
    return Fraction(2) ** quantum


def _note(source: Number, result: Number, dst: Format) -> str:
    if source.special == "nan":
        return "" if result.special == "nan" else f"NaN becomes {result}"
    if source.special == "inf":
        clamped = "infinity becomes NaN" if result.special == "nan" else "clamped"
        return "" if result.special == "inf" else clamped
    if result.special == "inf":
        return "overflow"
    if result.fraction == source.fraction:
        return "exact"
    if isinstance(dst, IntFormat):
        return "" if dst.min <= source.fraction <= dst.max else "clamped"
    if source.magnitude > number_of(dst.max_code, dst).magnitude:
        return "overflow"
    if not result.magnitude:
        return "underflow to zero"
    return "subnormal" if result.magnitude < Fraction(2) ** dst.emin else ""
