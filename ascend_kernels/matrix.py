"""The conversion matrix: pypto's rules for the pairs and modes of the Cast instruction.

One row per pair: the mode that CAST_NONE stands for, and the steps of SaturationMode.OFF where it
acts. Legality and modes come from `simulator.machine.cast_table`. Sources: the pypto.cast document,
constraints 1 to 3 (22 pairs); upstream pypto's newer document (FP32 -> FP32, FP16 <-> INT4, the
six pairs of SaturationMode.OFF); pto-isa a2a3 for the OFF sequences.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from simulator.machine.cast_table import CAST_TABLE
from simulator.machine.isa import ScalarOp
from simulator.numbers import formats as f
from simulator.numbers.formats import FloatFormat, Format, IntFormat
from simulator.numbers.rounding import RoundMode


class UnsupportedCastError(TypeError):
    """A pair of dtypes that A2/A3 does not convert."""


class CastModeError(ValueError):
    """A round or saturation mode that the pair does not have, under strict options."""


class CastModeWarning(UserWarning):
    """A round mode that the pair does not have; its default was taken."""


class SaturationModeWarning(UserWarning):
    """SaturationMode.OFF for a pair on which it does not act; the result is clamped."""


class Operand(enum.Enum):
    """The UB buffers that a step reads or writes."""

    IN = "in"
    TMP = "tmp"
    OUT = "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastStep:
    """One Cast over the elements in UB.

    Attributes:
        src: source format.
        dst: destination format.
        mode: round mode of the instruction; None is AscendC's CAST_NONE.
        takes_mode: the caller's mode replaces `mode` when the rule is resolved.
        truncates: run with the control bit that keeps low bits instead of clamping.
        source: buffer read.
        target: buffer written; may be `source` where both formats are equally wide.
    """

    src: Format
    dst: Format
    mode: RoundMode | None = None
    takes_mode: bool = False
    truncates: bool = False
    source: Operand = Operand.IN
    target: Operand = Operand.OUT

    @property
    def is_scaled(self) -> bool:
        """The instruction multiplies by a register that must be set before (pto-isa, TCVT)."""
        return (self.src, self.dst) == (f.INT32, f.FP16)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowByteStep:
    """Keep the low byte of every INT16 in `operand`, by a bitwise and with a mask in `scratch`."""

    operand: Operand
    scratch: Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarStep:
    """Combine the elements in UB with one number; where formats are equally wide, codes are read
    as those of `format`.

    Attributes:
        op: the instruction.
        format: as which elements are read and written.
        scalar: a number of the format, or the bits of a shift.
        source: buffer read.
        target: buffer written.
    """

    op: ScalarOp
    format: Format
    scalar: float
    source: Operand = Operand.IN
    target: Operand = Operand.IN


Step = CastStep | LowByteStep | ScalarStep


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRule:
    """A row of the matrix.

    Attributes:
        src: source format.
        dst: destination format.
        default: what CAST_NONE means; None where no mode applies.
        off: the steps of SaturationMode.OFF; empty where OFF does not act.
        source: where the row comes from.
    """

    src: Format
    dst: Format
    default: RoundMode | None
    off: tuple[Step, ...]
    source: str

    @property
    def modes(self) -> tuple[RoundMode, ...]:
        """The modes a caller can choose from; none where nothing is rounded."""
        modes = CAST_TABLE[self.src, self.dst].modes
        return modes if modes or self.default is None else (self.default,)

    @property
    def is_exact(self) -> bool:
        """Every source value is representable: no rounding, no overflow."""
        return self.default is None and not self.clamps

    @property
    def clamps(self) -> bool:
        """Values beyond the destination's range become its limits."""
        return isinstance(self.dst, IntFormat) and (
            isinstance(self.src, FloatFormat)
            or self.src.min < self.dst.min
            or self.src.max > self.dst.max
        )

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}"


_SEED: Final = "pypto.cast document, constraint 2"
_SEED_DEFAULTS: Final = "pypto.cast document, constraint 3.5"
_UPSTREAM: Final = "upstream pypto, newer pypto-cast document"

_LOW_BITS: Final[Mapping[tuple[Format, Format], tuple[Step, ...]]] = {
    (f.FP16, f.UINT8): (CastStep(src=f.FP16, dst=f.UINT8, takes_mode=True, truncates=True),),
    (f.INT64, f.INT32): (CastStep(src=f.INT64, dst=f.INT32, truncates=True),),
    (f.INT32, f.INT16): (CastStep(src=f.INT32, dst=f.INT16, truncates=True),),
    (f.FP32, f.INT16): (
        CastStep(src=f.FP32, dst=f.INT32, takes_mode=True, target=Operand.IN),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True),
    ),
    (f.FP16, f.INT16): (
        CastStep(src=f.FP16, dst=f.INT32, takes_mode=True, target=Operand.TMP),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True, source=Operand.TMP),
    ),
    (f.FP16, f.INT8): (
        CastStep(src=f.FP16, dst=f.INT32, takes_mode=True, target=Operand.TMP),
        CastStep(src=f.INT32, dst=f.INT16, truncates=True, source=Operand.TMP, target=Operand.IN),
        LowByteStep(operand=Operand.IN, scratch=Operand.TMP),
        CastStep(src=f.INT16, dst=f.FP16, mode=RoundMode.RINT, target=Operand.IN),
        CastStep(src=f.FP16, dst=f.INT8, mode=RoundMode.TRUNC, truncates=True),
    ),
}
"""SaturationMode.OFF, pair by pair (pto-isa a2a3, the sequences with and without scratch)."""


def _rule(src: Format, dst: Format, default: RoundMode | None, source: str) -> CastRule:
    return CastRule(
        src=src, dst=dst, default=default, off=_LOW_BITS.get((src, dst), ()), source=source
    )


_RINT, _TRUNC = RoundMode.RINT, RoundMode.TRUNC

MATRIX: Final[Mapping[tuple[Format, Format], CastRule]] = MappingProxyType(
    {
        (rule.src, rule.dst): rule
        for rule in (
            _rule(f.FP32, f.FP16, _RINT, _SEED),
            _rule(f.FP32, f.BF16, _RINT, _SEED),
            _rule(f.FP32, f.FP32, _RINT, _UPSTREAM),
            _rule(f.FP32, f.INT16, _TRUNC, _SEED),
            _rule(f.FP32, f.INT32, _TRUNC, _SEED),
            _rule(f.FP32, f.INT64, _TRUNC, _SEED),
            _rule(f.FP16, f.FP32, None, _SEED),
            _rule(f.FP16, f.INT32, _TRUNC, _SEED),
            _rule(f.FP16, f.INT16, _TRUNC, _SEED),
            _rule(f.FP16, f.INT8, _TRUNC, _SEED),
            _rule(f.FP16, f.UINT8, _TRUNC, _SEED),
            _rule(f.FP16, f.INT4, _TRUNC, _UPSTREAM),
            _rule(f.BF16, f.FP32, None, _SEED),
            _rule(f.BF16, f.INT32, _TRUNC, _SEED),
            _rule(f.INT32, f.FP32, _RINT, _SEED),
            _rule(f.INT32, f.FP16, _RINT, _SEED_DEFAULTS),
            _rule(f.INT32, f.INT16, None, _SEED),
            _rule(f.INT32, f.INT64, None, _SEED),
            _rule(f.INT16, f.FP32, None, _SEED),
            _rule(f.INT16, f.FP16, _RINT, _SEED),
            _rule(f.INT64, f.FP32, _RINT, _SEED),
            _rule(f.INT64, f.INT32, None, _SEED),
            _rule(f.UINT8, f.FP16, None, _SEED),
            _rule(f.INT8, f.FP16, None, _SEED),
            _rule(f.INT4, f.FP16, None, _UPSTREAM),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A cast, decided: its steps on the elements in UB, and its warnings.

    Attributes:
        rule: the row of the matrix.
        mode: the round mode that applies; None where nothing is rounded.
        steps: vector work on the elements in UB, in order.
        diagnostics: category and text of each warning.
    """

    rule: CastRule
    mode: RoundMode | None
    steps: tuple[Step, ...]
    diagnostics: tuple[tuple[type[UserWarning], str], ...]

    @property
    def casts(self) -> tuple[CastStep, ...]:
        """The steps that convert."""
        return tuple(step for step in self.steps if isinstance(step, CastStep))

    @property
    def tmp_bits(self) -> int:
        """Scratch memory per element that the steps need."""
        return max((cast.dst.bits for cast in self.casts if cast.target is Operand.TMP), default=0)

    @property
    def begins_truncating(self) -> bool:
        """The control bit that keeps low bits is set before the first part of a tile."""
        first = self.steps[0]
        return isinstance(first, CastStep) and first.truncates

    @property
    def ends_on_scratch(self) -> bool:
        """The last step uses the scratch, which the first of the next part then must wait for."""
        last = self.steps[-1]
        used = (last.scratch,) if isinstance(last, LowByteStep) else (last.source, last.target)
        return Operand.TMP in used


def resolve(
    src: Format,
    dst: Format,
    mode: RoundMode | None = None,
    *,
    saturate: bool = True,
    strict: bool = False,
) -> Resolution:
    """Decide how a cast is carried out.

    Args:
        src: source format.
        dst: destination format.
        mode: None takes the default of the pair.
        saturate: False asks for the low bits of an integer result instead of clamping it.
        strict: refuse a mode that the pair lacks, instead of a diagnostic.

    Raises:
        UnsupportedCastError: A2/A3 has no such pair.
        CastModeError: the pair lacks the mode, under `strict`.
    """
    rule = MATRIX.get((src, dst))
    if rule is None:
        raise unsupported(src.name, dst.name)
    diagnostics: list[tuple[type[UserWarning], str]] = []
    effective = rule.default if mode is None or not rule.modes else mode
    if rule.modes and effective not in rule.modes:
        lacks = (
            f"{rule} has no mode CAST_{mode}; it has {', '.join(f'CAST_{m}' for m in rule.modes)}"
        )
        if strict:
            raise CastModeError(lacks)
        effective = rule.default
        taken = f"{lacks}. The default CAST_{effective} is taken, as upstream does without a word"
        diagnostics.append((CastModeWarning, taken))
    if not saturate and not rule.off:
        pairs = ", ".join(str(row) for row in MATRIX.values() if row.off)
        diagnostics.append(
            (
                SaturationModeWarning,
                f"SaturationMode.OFF does not act on {rule}: values out of range are treated as "
                f"with ON. It acts on {pairs}",
            )
        )
    plain = (CastStep(src=src, dst=dst, takes_mode=bool(CAST_TABLE[src, dst].modes)),)
    steps = rule.off if rule.off and not saturate else plain
    return Resolution(
        rule=rule,
        mode=effective,
        steps=tuple(_with_mode(step, effective) for step in steps),
        diagnostics=tuple(diagnostics),
    )


def unsupported(src: str, dst: str) -> UnsupportedCastError:
    """The error for a pair outside the matrix, by the names of its formats."""
    targets = [rule.dst.name for rule in MATRIX.values() if rule.src.name == src]
    if targets:
        others = f"{src} converts to {', '.join(targets)}"
    else:
        sources = dict.fromkeys(rule.src.name for rule in MATRIX.values())
        others = f"{src} converts to nothing; sources are {', '.join(sources)}"
    return UnsupportedCastError(f"A2/A3 does not cast {src} -> {dst}: {others}")


def default_mode(src: Format | None, dst: Format | None) -> RoundMode:
    """The mode that CAST_NONE means where something is rounded."""
    to_integer = isinstance(src, FloatFormat) and isinstance(dst, IntFormat)
    return RoundMode.TRUNC if to_integer else RoundMode.RINT


def _with_mode(step: Step, mode: RoundMode | None) -> Step:
    if isinstance(step, CastStep) and step.takes_mode:
        return dataclasses.replace(step, mode=mode)
    return step
